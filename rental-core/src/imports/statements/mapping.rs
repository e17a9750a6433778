//! Mapping files: an operator describes the file of any agency or city as JSON.

use super::{
    cells, encoding,
    field::{Field, fields_of},
    header::normal,
    time::Dates,
};
use crate::{
    request::body::{Members, did_you_mean, shorten},
    value::{Name, Zone, folded},
};
use encoding_rs::Encoding;
use serde_json::value::RawValue;
use std::collections::HashSet;

/// Most bytes of a mapping file.
const MAX_BYTES: usize = 64 * 1024;
/// Most names in a list of a mapping file.
const MAX_NAMES: usize = 100;

/// The description of a file: columns, time zone, form of dates, and meaning of signs.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// The agency of every toll, or the issuer of every violation, when no column contains it.
    pub(super) agency: Option<Name>,
    pub(super) zone: Option<Zone>,
    pub(super) columns: Vec<(Field, Source)>,
    /// `None` when only dates of one meaning can be read.
    pub(super) dates: Option<Dates>,
    pub(super) charges: Charges,
    /// Of a format: the column that makes charges positive, and whether the file has it.
    pub(super) positive_with: Option<(&'static str, bool)>,
    /// A column, and the values in it that mark rows to skip, in NFC and small letters.
    pub(super) skip: Option<(String, Vec<String>)>,
    pub(super) encoding: Option<&'static Encoding>,
    /// Lines of the file before the part that is read.
    pub(super) skip_lines: u64,
    /// Whether a charge with a known number and another amount replaces the known one.
    pub(super) replaces: bool,
}

/// Where the value of a field is.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) names: Vec<String>,
    pub(super) take: Take,
    /// Whether a file can lack the columns.
    pub(super) is_optional: bool,
}

/// What is taken of several columns of one field.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Take {
    /// The first value.
    #[default]
    First,
    /// The sum of the amounts. All columns must be there.
    Sum,
    /// The texts with spaces between them. All columns must be there.
    Joined,
}

/// The meaning of an amount's sign.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Charges {
    /// `6.94` is a charge, `-6.94` a refund.
    Positive,
    /// `-6.94` is a charge, `6.94` a refund.
    Negative,
}

const MEMBERS: [&str; 12] = [
    "agency",
    "issuer",
    "time_zone",
    "columns",
    "optional",
    "date_order",
    "date_format",
    "charges",
    "skip",
    "encoding",
    "skip_lines",
    "repeated_number",
];
const ORDERS: [(&str, Dates); 3] = [("mdy", Dates::MDY), ("dmy", Dates::DMY), ("ymd", Dates::YMD)];
const CHARGES: [(&str, Charges); 2] = [("positive", Charges::Positive), ("negative", Charges::Negative)];

impl Mapping {
    /// Parses a mapping file (`docs/imports.md`, Mapping files) of at most 64 KiB of JSON: of a list of violations, which has one
    /// issuer, or of a statement of tolls.
    ///
    /// # Errors
    /// A sentence that says which member is missing, unknown or wrong.
    pub fn parse(text: &str, has_issuer: bool) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("must be at most {MAX_BYTES} bytes"));
        }
        let text = text.trim_start_matches('\u{feff}');
        let [agency, issuer, zone, columns, optional, order, format, charges, skip, encoding, lines, repeated] =
            object(text, "the mapping", MEMBERS)?;
        let mut names =
            columns_of(columns.ok_or("`columns` is missing: it says which column has what")?, has_issuer, false)?;
        for (field, source) in optional.map(|raw| columns_of(raw, has_issuer, true)).transpose()?.unwrap_or_default() {
            if names.iter().any(|(known, _)| *known == field) {
                return Err(format!("`{}` is in `columns` and in `optional`", source.names.join("`, `")));
            }
            names.push((field, source));
        }
        let order = order.map(|raw| one_of(raw, "date_order", &ORDERS)).transpose()?;
        let format = format.map(dates_of).transpose()?;
        if order.is_some() && format.is_some() {
            return Err("give `date_order` or `date_format`: a format says the order, too".into());
        }
        let mut mapping = Self {
            agency: None,
            zone: zone.map(zone_of).transpose()?,
            columns: names,
            dates: order.or(format),
            charges: Charges::Positive,
            positive_with: None,
            skip: skip.map(skip_of).transpose()?,
            encoding: encoding.map(encoding_of).transpose()?,
            skip_lines: lines.map(lines_of).transpose()?.unwrap_or_default(),
            replaces: repeated.map(|raw| one_of(raw, "repeated_number", &[("replaces", ())])).transpose()?.is_some(),
        };
        mapping.set_agency(agency.or(issuer), has_issuer)?;
        if let Some(raw) = charges {
            mapping.charges = one_of(raw, "charges", &CHARGES)?;
        }
        mapping.check(has_issuer, charges.is_some())?;
        Ok(mapping)
    }

    /// The authority that numbered the summonses of a list.
    #[must_use]
    pub fn issuer(&self) -> Option<&Name> {
        self.agency.as_ref()
    }

    /// Whether a charge with a known number and another amount replaces the known one. Otherwise both can be parts of one trip.
    #[must_use]
    pub fn replaces(&self) -> bool {
        self.replaces
    }

    /// Whether the number of a row is joined of several columns, so that equal rows can be parts of one trip.
    #[must_use]
    pub fn joins_number(&self) -> bool {
        self.columns.iter().any(|(field, source)| *field == Field::TransactionId && source.take == Take::Joined)
    }

    /// The names of all columns, each once.
    pub(super) fn names(&self) -> Vec<&str> {
        let columns = self.columns.iter().flat_map(|(_, source)| &source.names);
        let mut seen = HashSet::new();
        let all = columns.chain(self.skip.as_ref().map(|(column, _)| column)).map(String::as_str);
        all.filter(|name| seen.insert(normal(name))).collect()
    }

    fn set_agency(&mut self, raw: Option<&RawValue>, has_issuer: bool) -> Result<(), String> {
        match raw {
            Some(raw) if raw.get().starts_with('{') && !has_issuer => {
                let [column] = object(raw.get(), "`agency`", ["column"])?;
                let column = column.ok_or("`agency` needs `column`")?;
                let names = vec![string(column, "agency.column")?];
                self.columns.push((Field::Agency, Source { names, take: Take::First, is_optional: false }));
            }
            Some(raw) => {
                self.agency = Some(cells::name(&string(raw, if has_issuer { "issuer" } else { "agency" })?, "agency")?)
            }
            None if has_issuer => {}
            None => return Err("`agency` is missing: a name, or {\"column\": \"...\"}".into()),
        }
        Ok(())
    }

    /// Whether a field has columns.
    fn has(&self, field: Field) -> bool {
        self.columns.iter().any(|(known, _)| *known == field)
    }

    /// Checks the rules that concern several members.
    fn check(&self, has_issuer: bool, charges: bool) -> Result<(), String> {
        let has = |field| self.has(field);
        let of_both = [
            (
                !has(Field::OccurredAt) || !has(Field::Date),
                "`columns` needs either `occurred_at`, or `date` and `time`",
            ),
            (!has(Field::Time) || has(Field::Date), "`time` needs `date`"),
            (
                !has(Field::Date) || self.dates.is_some(),
                "`date_order` (\"mdy\", \"dmy\" or \"ymd\") or `date_format` goes with `date`",
            ),
        ];
        let of_tolls = [
            (
                has(Field::Amount) != has(Field::Debit),
                "`columns` needs either `amount`, or `debit` and if there is one `credit`",
            ),
            (!has(Field::Credit) || has(Field::Debit), "`credit` needs `debit`"),
            (
                charges == has(Field::Amount),
                "`charges` (\"positive\" or \"negative\") goes with `amount`: it says which sign a toll has",
            ),
            (has(Field::OccurredAt) || has(Field::Date), "`columns` needs either `occurred_at`, or `date` and `time`"),
            (
                has(Field::Plate) || has(Field::Transponder) || has(Field::TagOrPlate),
                "`columns` needs `plate`, `transponder_number` or `tag_or_plate`: what a toll finds its vehicle by",
            ),
        ];
        let of_violations = [
            (has(Field::SummonsNumber), "`columns` needs `summons_number`: it tells a violation from others"),
            (has(Field::Plate), "`columns` needs `plate`: what a violation finds its vehicle by"),
            (has(Field::AmountDue) || has(Field::Fine), "`columns` needs `amount_due` or `fine_amount`"),
            (!charges, "`charges` is for tolls; leave it out: the amount of a violation is never negative"),
        ];
        let own = if has_issuer { &of_violations[..] } else { &of_tolls };
        let broken = own.iter().chain(&of_both).find(|(holds, _)| !holds);
        broken.map_or(Ok(()), |(_, rule)| Err((*rule).to_owned()))
    }
}

/// The members of an object in the order of `known`. Other members and duplicates are errors.
fn object<'a, const N: usize>(
    text: &'a str,
    what: &str,
    known: [&str; N],
) -> Result<[Option<&'a RawValue>; N], String> {
    let mut found = [None; N];
    for (name, raw) in members(text, what)? {
        let Some(at) = known.iter().position(|known| *known == name) else {
            return Err(unknown(&name, what, &known));
        };
        if found[at].replace(raw).is_some() {
            return Err(format!("`{name}` is there twice"));
        }
    }
    // `null` is the same as absent.
    Ok(found.map(|raw| raw.filter(|raw| raw.get() != "null")))
}

fn members<'a>(text: &'a str, what: &str) -> Result<Vec<(String, &'a RawValue)>, String> {
    let members: Members<'a> =
        serde_json::from_str(text).map_err(|error| format!("{what} must be a JSON object: {error}"))?;
    Ok(members.0)
}

fn unknown(name: &str, what: &str, known: &[&str]) -> String {
    let near = did_you_mean(name, known.iter().copied());
    let near = if near.is_empty() { format!("; it takes {}", known.join(", ")) } else { near };
    format!("{what} has no member `{}`{near}", shorten(name))
}

fn columns_of(raw: &RawValue, has_issuer: bool, is_optional: bool) -> Result<Vec<(Field, Source)>, String> {
    let what = if is_optional { "`optional`" } else { "`columns`" };
    let mut columns: Vec<(Field, Source)> = Vec::new();
    for (name, raw) in members(raw.get(), what)? {
        if name == "agency" {
            return Err("the agency's column is written as \"agency\": {\"column\": \"...\"}, beside `columns`".into());
        }
        let Some((field, _)) = fields_of(has_issuer).find(|(_, names)| names.contains(&name.as_str())) else {
            let known: Vec<&str> = fields_of(has_issuer).flat_map(|(_, names)| names).copied().collect();
            return Err(unknown(&name, what, &known));
        };
        if columns.iter().any(|(known, _)| *known == field) {
            return Err(format!("`{name}` is there twice"));
        }
        columns.push((field, source_of(raw, &name, field, is_optional)?));
    }
    Ok(columns)
}

/// A column, a list of columns, `{"sum": [...]}` or `{"join": [...]}`.
fn source_of(raw: &RawValue, name: &str, field: Field, is_optional: bool) -> Result<Source, String> {
    let (names, take) = match raw.get().as_bytes().first() {
        Some(b'[') => (strings(raw, name)?, Take::First),
        Some(b'{') => match object(raw.get(), &format!("`{name}`"), ["sum", "join"])? {
            [Some(sum), None] if field.is_amount() => (strings(sum, name)?, Take::Sum),
            [None, Some(join)] if !field.is_amount() => (strings(join, name)?, Take::Joined),
            _ => {
                return Err(format!(
                    "`{name}` takes {}",
                    if field.is_amount() { "`sum`, which adds amounts" } else { "`join`, which puts texts together" }
                ));
            }
        },
        _ => (vec![string(raw, name)?], Take::First),
    };
    let mut known = HashSet::new();
    match names.iter().find(|name| !known.insert(normal(name))) {
        Some(again) if take != Take::First => Err(format!("`{name}` names the column {} twice", shorten(again))),
        _ => Ok(Source { names, take, is_optional }),
    }
}

fn skip_of(raw: &RawValue) -> Result<(String, Vec<String>), String> {
    let [column, values] = object(raw.get(), "`skip`", ["column", "values"])?;
    let column = string(column.ok_or("`skip` needs `column`")?, "skip.column")?;
    let values = strings(values.ok_or("`skip` needs `values`, a list of texts")?, "skip.values")?;
    Ok((column, values.iter().map(|value| folded(value)).collect()))
}

fn zone_of(raw: &RawValue) -> Result<Zone, String> {
    let name = string(raw, "time_zone")?;
    Zone::parse(&name).ok_or_else(|| {
        format!("`time_zone` must be a name of the IANA database such as America/Chicago, not {}", shorten(&name))
    })
}

fn dates_of(raw: &RawValue) -> Result<Dates, String> {
    let form = string(raw, "date_format")?;
    Dates::parse(&form).ok_or_else(|| {
        format!(
            "`date_format` must have a year, a month and a day once, such as \"DD.MM.YYYY\", \"DD MMM YYYY\" or \"DDMMYY\", not {}; \
             times are read in any form",
            shorten(&form)
        )
    })
}

fn encoding_of(raw: &RawValue) -> Result<&'static Encoding, String> {
    let name = string(raw, "encoding")?;
    encoding::named(&name).ok_or_else(|| {
        format!("`encoding` must be one such as windows-1252, iso-8859-1 or utf-16, not {}", shorten(&name))
    })
}

fn lines_of(raw: &RawValue) -> Result<u64, String> {
    serde_json::from_str(raw.get()).map_err(|_| "`skip_lines` must be a number of lines".into())
}

fn one_of<T: Copy>(raw: &RawValue, name: &str, values: &[(&str, T)]) -> Result<T, String> {
    let given = string(raw, name)?;
    let known = values.iter().find(|(value, _)| *value == given);
    let list = || values.iter().map(|(value, _)| format!("\"{value}\"")).collect::<Vec<_>>().join(", ");
    known.map(|(_, value)| *value).ok_or_else(|| format!("`{name}` must be one of {}", list()))
}

/// A text that is not blank, within the bounds of every text field.
fn string(raw: &RawValue, name: &str) -> Result<String, String> {
    let given: String = serde_json::from_str(raw.get()).map_err(|_| format!("`{name}` must be a text"))?;
    let filled = cells::filled(&given).ok_or_else(|| format!("`{name}` must not be blank"))?;
    cells::text(filled, name).map(String::from)
}

fn strings(raw: &RawValue, name: &str) -> Result<Vec<String>, String> {
    let items: Vec<&RawValue> =
        serde_json::from_str(raw.get()).map_err(|_| format!("`{name}` must be a list of texts"))?;
    if items.is_empty() || items.len() > MAX_NAMES {
        return Err(format!("`{name}` must have 1 to {MAX_NAMES} texts"));
    }
    items.into_iter().map(|item| string(item, name)).collect()
}
