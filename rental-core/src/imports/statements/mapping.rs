//! Mapping files: an operator describes the file of any other agency as JSON.

use super::{
    cells,
    field::{Field, TOLL_FIELDS},
    time::Order,
};
use crate::{
    request::body::{Members, did_you_mean, shorten},
    value::{Name, Zone},
};
use serde_json::value::RawValue;

/// Most bytes of a mapping file.
const MAX_BYTES: usize = 64 * 1024;
/// Most names in a list of a mapping file.
const MAX_NAMES: usize = 100;

/// The format of a toll agency's file: columns, time zone, order of dates, and meaning of signs.
#[derive(Clone, Debug)]
pub struct Mapping {
    pub(super) agency: Option<Name>,
    pub(super) zone: Option<Zone>,
    pub(super) columns: Vec<(Field, Vec<String>)>,
    pub(super) order: Option<Order>,
    pub(super) charges: Charges,
    /// A column, and the values in it that mark rows to skip.
    pub(super) skip: Option<(String, Vec<String>)>,
}

/// The meaning of an amount's sign.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Charges {
    /// `6.94` is a charge, `-6.94` a refund.
    Positive,
    /// `-6.94` is a charge, `6.94` a refund.
    Negative,
}

impl Mapping {
    /// Parses a mapping file (`docs/imports.md`, Mapping files) of at most 64 KiB of JSON.
    ///
    /// # Errors
    /// A sentence that says which member is missing, unknown or wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("must be at most {MAX_BYTES} bytes"));
        }
        let known = ["agency", "time_zone", "columns", "date_order", "charges", "skip"];
        let [agency, zone, columns, order, charges, skip] = object(text, "the mapping", known)?;
        let columns = columns.ok_or("`columns` is missing: it says which column has what")?;
        let names = columns_of(columns)?;
        let mut mapping = Self {
            agency: None,
            zone: zone.map(zone_of).transpose()?,
            columns: names,
            order: order.map(|raw| one_of(raw, "date_order", &ORDERS)).transpose()?,
            charges: Charges::Positive,
            skip: skip.map(skip_of).transpose()?,
        };
        match agency.ok_or("`agency` is missing: a name, or {\"column\": \"...\"}")? {
            raw if raw.get().starts_with('{') => {
                let [column] = object(raw.get(), "`agency`", ["column"])?;
                let column = column.ok_or("`agency` needs `column`")?;
                mapping.columns.push((Field::Agency, vec![string(column, "agency.column")?]));
            }
            raw => mapping.agency = Some(cells::name(&string(raw, "agency")?, "agency")?),
        }
        if let Some(raw) = charges {
            mapping.charges = one_of(raw, "charges", &CHARGES)?;
        }
        mapping.check(charges.is_some())?;
        Ok(mapping)
    }

    /// Whether dates and times are in separate columns, which have local times.
    pub(super) fn has_local_dates(&self) -> bool {
        self.has(Field::Date)
    }

    /// Whether a field has columns.
    fn has(&self, field: Field) -> bool {
        self.columns.iter().any(|(known, _)| *known == field)
    }

    /// Checks the rules that concern several members.
    fn check(&self, charges: bool) -> Result<(), String> {
        let has = |field| self.has(field);
        let rules = [
            (
                has(Field::Amount) != has(Field::Debit),
                "`columns` needs either `amount`, or `debit` and if there is one `credit`",
            ),
            (!has(Field::Credit) || has(Field::Debit), "`credit` needs `debit`"),
            (
                charges == has(Field::Amount),
                "`charges` (\"positive\" or \"negative\") goes with `amount`: it says which sign a toll has",
            ),
            (has(Field::OccurredAt) != has(Field::Date), "`columns` needs either `occurred_at`, or `date` and `time`"),
            (!has(Field::Time) || has(Field::Date), "`time` needs `date`"),
            (!has(Field::Date) || self.order.is_some(), "`date_order` (\"mdy\", \"dmy\" or \"ymd\") goes with `date`"),
            (
                has(Field::Plate) || has(Field::Transponder) || has(Field::TagOrPlate),
                "`columns` needs `plate`, `transponder_number` or `tag_or_plate`: what a toll finds its vehicle by",
            ),
        ];
        rules.iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, rule)| Err((*rule).to_owned()))
    }
}

const ORDERS: [(&str, Order); 3] =
    [("mdy", Order::MonthDayYear), ("dmy", Order::DayMonthYear), ("ymd", Order::YearMonthDay)];
const CHARGES: [(&str, Charges); 2] = [("positive", Charges::Positive), ("negative", Charges::Negative)];

/// The members of an object in the order of `known`. Other members and duplicates are errors.
fn object<'a, const N: usize>(
    text: &'a str,
    what: &str,
    known: [&str; N],
) -> Result<[Option<&'a RawValue>; N], String> {
    let members: Members<'a> =
        serde_json::from_str(text).map_err(|error| format!("{what} must be a JSON object: {error}"))?;
    let mut found = [None; N];
    for (name, raw) in members.0 {
        let Some(at) = known.iter().position(|known| *known == name) else {
            let near = did_you_mean(&name, known.iter().copied());
            let near = if near.is_empty() { format!("; it takes {}", known.join(", ")) } else { near };
            return Err(format!("{what} has no member `{}`{near}", shorten(&name)));
        };
        if found[at].replace(raw).is_some() {
            return Err(format!("`{name}` is there twice"));
        }
    }
    // `null` is the same as absent.
    Ok(found.map(|raw| raw.filter(|raw| raw.get() != "null")))
}

fn columns_of(raw: &RawValue) -> Result<Vec<(Field, Vec<String>)>, String> {
    let names = TOLL_FIELDS.map(|(_, name)| name);
    if object(raw.get(), "`columns`", names)?[Field::Agency as usize].is_some() {
        return Err("the agency's column is written as \"agency\": {\"column\": \"...\"}, beside `columns`".into());
    }
    let found = object(raw.get(), "`columns`", names)?;
    let mut columns = Vec::new();
    for ((field, name), raw) in TOLL_FIELDS.into_iter().zip(found) {
        if let Some(raw) = raw {
            let list = raw.get().starts_with('[');
            columns.push((field, if list { strings(raw, name)? } else { vec![string(raw, name)?] }));
        }
    }
    Ok(columns)
}

fn skip_of(raw: &RawValue) -> Result<(String, Vec<String>), String> {
    let [column, values] = object(raw.get(), "`skip`", ["column", "values"])?;
    let column = string(column.ok_or("`skip` needs `column`")?, "skip.column")?;
    Ok((column, strings(values.ok_or("`skip` needs `values`, a list of texts")?, "skip.values")?))
}

fn zone_of(raw: &RawValue) -> Result<Zone, String> {
    let name = string(raw, "time_zone")?;
    Zone::parse(&name).ok_or_else(|| {
        format!("`time_zone` must be a name of the IANA database such as America/Chicago, not {}", shorten(&name))
    })
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
