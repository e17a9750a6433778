//! Lists of violations, row by row: CSV or JSON.

use super::{
    Failed, NoRecord, Refused, Row, Settings, amount,
    cells::{filled, identifier, text},
    formats::{NYC_OPEN, VIOLATION_FORMATS, VIOLATION_PROFILES, ViolationProfile},
    header::{Header, normal},
    input::Source,
    json::Json,
    table::Table,
    time::{self, Order},
    toll::unknown_format,
};
use crate::{
    body::Members,
    value::{Date, Money, Timestamp, Zone},
};
use serde_json::value::RawValue;
use std::{borrow::Cow, io::Read};

/// A violation as a list reports it.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each field but the last two is documented in the SPEC of violations")]
pub struct ViolationRow {
    pub summons_number: String,
    pub amount_due: Money,
    pub plate: Option<String>,
    pub state: Option<String>,
    pub issue_date: Option<String>,
    pub violation_time: Option<String>,
    pub violation: Option<String>,
    pub fine_amount: Option<Money>,
    pub penalty_amount: Option<Money>,
    pub interest_amount: Option<Money>,
    pub reduction_amount: Option<Money>,
    pub payment_amount: Option<Money>,
    pub issuing_agency: Option<String>,
    /// The day that `issue_date` is, when it is one: real lists have `51/71/2004`.
    pub issued_on: Option<Date>,
    /// The instant, when `violation_time` is a time of day too.
    pub issued_at: Option<Timestamp>,
}

/// What a column can be for a violation.
#[derive(Clone, Copy)]
enum Field {
    Summons,
    AmountDue,
    Plate,
    State,
    IssueDate,
    Time,
    Violation,
    Fine,
    Penalty,
    Interest,
    Reduction,
    Payment,
    Agency,
}

/// How many fields there are.
pub(super) const FIELDS: usize = Field::Agency as usize + 1;

/// The filled values of one row, by field.
type Values<'a> = [Option<Cow<'a, str>>; FIELDS];

/// The rows of one file. A row of CSV is numbered by the line where it begins, an object of JSON by its place, from 1.
/// After an error there are no more.
pub struct ViolationReader<R> {
    rows: Rows<R>,
    plan: Plan,
    ended: bool,
}

enum Rows<R> {
    Csv { table: Box<Table<R>>, places: [Option<usize>; FIELDS] },
    Json { json: Box<Json<R>>, names: [Vec<String>; FIELDS] },
}

struct Plan {
    /// The name of each field in this file, for messages.
    labels: [String; FIELDS],
    zone: Zone,
    digits: u32,
}

/// Opens a list of violations: CSV or JSON, told apart by the first byte that is not blank.
///
/// # Errors
/// [`Failed::Refused`] when it is not such a file: its sentence names the missing column, or the format that fits.
pub fn violations<R: Read>(input: R, format: Option<&str>, settings: &Settings) -> Result<ViolationReader<R>, Failed> {
    let name = format.unwrap_or(NYC_OPEN.name);
    let Some(profile) = VIOLATION_PROFILES.iter().find(|profile| profile.name == name) else {
        return Err(Refused(unknown_format(name, VIOLATION_FORMATS)).into());
    };
    let source = Source::open(input)?;
    let zone = settings.zone.unwrap_or(Zone::NEW_YORK);
    let mut labels = profile.columns.map(|names| names.first().map_or_else(String::new, |name| (*name).to_owned()));
    let rows =
        if source.head().trim_ascii_start().starts_with(b"[") || source.head().trim_ascii_start().starts_with(b"{") {
            let names = profile.columns.map(|names| names.iter().map(|name| normal(name)).collect());
            Rows::Json { json: Box::new(Json::open(source)?), names }
        } else {
            let table = Box::new(Table::open(source)?);
            let places = places(profile, &table.header).map_err(Refused)?;
            for (label, at) in labels.iter_mut().zip(places) {
                if let Some(at) = at {
                    table.header.name(at).clone_into(label);
                }
            }
            Rows::Csv { table, places }
        };
    Ok(ViolationReader { rows, plan: Plan { labels, zone, digits: settings.digits }, ended: false })
}

/// Where each field stands; summons, plate and an amount must be there.
fn places(profile: &ViolationProfile, header: &Header) -> Result<[Option<usize>; FIELDS], String> {
    let found = profile.columns.map(|names| names.iter().find_map(|name| header.find(name)));
    let has = |field: Field| found[field as usize].is_some();
    let missing = [Field::Summons, Field::Plate, Field::AmountDue].into_iter().find(|field| match field {
        Field::AmountDue => !has(Field::AmountDue) && !has(Field::Fine),
        field => !has(*field),
    });
    let Some(missing) = missing else {
        let all: Vec<usize> = found.iter().flatten().copied().collect();
        return match header.repeated(&all) {
            Some(name) => Err(format!("expected each column once, but there are two columns `{name}`; remove one")),
            None => Ok(found),
        };
    };
    let name = profile.columns[missing as usize].first().copied().unwrap_or("");
    let near = header.near(name);
    let other = VIOLATION_PROFILES.iter().find(|other| other.name != profile.name && places_fit(other, header));
    let hint = match (other, missing) {
        (Some(other), _) => format!("this looks like {0}; use --format {0}", other.name),
        // A violation of 0 would say that it was paid, and would overwrite what is known of it.
        (None, Field::AmountDue) if header.find("violation_code").is_some() => {
            "this looks like a list of a fiscal year, \
            which has no amounts; download Open Parking and Camera Violations for the same plates"
                .into()
        }
        _ => "choose another --format, or rename the columns".into(),
    };
    Err(format!(
        "expected the columns of {}, but there is no column `{name}`{near}; {hint}. Found: {}",
        profile.name,
        header.shown()
    ))
}

fn places_fit(profile: &ViolationProfile, header: &Header) -> bool {
    let has = |field: Field| profile.columns[field as usize].iter().any(|name| header.find(name).is_some());
    has(Field::Summons) && has(Field::Plate) && has(Field::AmountDue)
}

impl<R: Read> Iterator for ViolationReader<R> {
    type Item = Result<(u64, Row<ViolationRow>), Failed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let read = self.rows.next(&self.plan);
        self.ended = !matches!(read, Ok(Some(_)));
        read.transpose()
    }
}

impl<R: Read> Rows<R> {
    fn next(&mut self, plan: &Plan) -> Result<Option<(u64, Row<ViolationRow>)>, Failed> {
        match self {
            Self::Csv { table, places } => {
                let Some((line, fields)) = table.next()? else { return Ok(None) };
                let row = match fields {
                    Ok(fields) => {
                        let value = |at: usize| Some(Cow::Borrowed(filled(fields.get(at)?)?));
                        plan.row(&places.map(|at| at.and_then(value))).into()
                    }
                    Err(why) => Row::Invalid(why),
                };
                Ok(Some((line, row)))
            }
            Self::Json { json, names } => {
                let Some((number, element)) = json.next()? else { return Ok(None) };
                let Ok(element) = std::str::from_utf8(element) else {
                    return Ok(Some((number, Row::Invalid("is not UTF-8 text".into()))));
                };
                let members: Members<'_> = match serde_json::from_str(element) {
                    Ok(members) => members,
                    Err(error) => {
                        let why = format!("there is something else: {error}");
                        return Err(Refused(format!(
                            "expected a JSON array of objects, or one object in each line, but at object {number} \
                             {why}; download the file again"
                        ))
                        .into());
                    }
                };
                let values = json_values(&members, names);
                let known = |name: &String| names.iter().flatten().any(|known| *known == normal(name));
                if number == 1 && !members.0.iter().any(|(name, _)| known(name)) {
                    return Err(Refused(
                        "expected objects with summons_number, plate, amount_due and so on, but the first one has none \
                         of them; download the rows themselves, not a page or a description of them"
                            .into(),
                    )
                    .into());
                }
                let row = values.map_err(NoRecord::from).and_then(|values| plan.row(&values));
                Ok(Some((number, row.into())))
            }
        }
    }
}

/// The values of an object's members by field: texts and numbers; `null` is none.
fn json_values<'a>(members: &Members<'a>, names: &[Vec<String>; FIELDS]) -> Result<Values<'a>, String> {
    let mut values: Values<'a> = std::array::from_fn(|_| None);
    // How early in its field's list the name of a value stands: `plate` goes before `plate_id`.
    let mut ranks = [usize::MAX; FIELDS];
    for (name, raw) in &members.0 {
        let key = normal(name);
        let place =
            names.iter().enumerate().find_map(|(at, known)| Some((at, known.iter().position(|one| *one == key)?)));
        let Some((at, rank)) = place else { continue };
        if ranks[at] == rank {
            return Err(format!("`{}` is there twice", names[at][rank]));
        }
        if let Some(value) = scalar(raw).map_err(|rule| format!("`{name}` {rule}"))?
            && rank < ranks[at]
        {
            (values[at], ranks[at]) = (Some(Cow::Owned(value)), rank);
        }
    }
    Ok(values)
}

fn scalar(raw: &RawValue) -> Result<Option<String>, String> {
    let json = raw.get();
    let value = match json.as_bytes().first() {
        Some(b'"') => serde_json::from_str(json).map_err(|_| "is not a text that can be read".to_owned())?,
        Some(b'-' | b'0'..=b'9') if json.contains(['e', 'E']) => {
            return Err("has an exponent, so its digits may be lost; write it in full".into());
        }
        Some(b'-' | b'0'..=b'9') => json.to_owned(),
        Some(b'n') => return Ok(None),
        _ => return Err("must be a text or a number".into()),
    };
    Ok(filled(&value).map(str::to_owned))
}

impl Plan {
    fn row(&self, values: &Values<'_>) -> Result<ViolationRow, NoRecord> {
        let summons = values[Field::Summons as usize].as_deref();
        let label = &self.labels[Field::Summons as usize];
        let summons = summons.ok_or_else(|| NoRecord::Invalid(format!("`{label}` is blank")))?;
        let summons_number = identifier(summons, label)?;
        let (issue_date, violation_time) = (self.text(values, Field::IssueDate)?, self.text(values, Field::Time)?);
        let issued_on = issue_date.as_deref().and_then(|given| time::date(given, Order::MonthDayYear));
        let seconds = violation_time.as_deref().and_then(time::time_of_day);
        let issued_at = issued_on.zip(seconds).and_then(|(date, seconds)| time::instant(self.zone, date, seconds));
        let mut row = ViolationRow {
            summons_number,
            amount_due: Money::default(),
            plate: self.text(values, Field::Plate)?,
            state: self.text(values, Field::State)?,
            issue_date,
            violation_time,
            violation: self.text(values, Field::Violation)?,
            fine_amount: self.money(values, Field::Fine)?,
            penalty_amount: self.money(values, Field::Penalty)?,
            interest_amount: self.money(values, Field::Interest)?,
            reduction_amount: self.money(values, Field::Reduction)?,
            payment_amount: self.money(values, Field::Payment)?,
            issuing_agency: self.text(values, Field::Agency)?,
            issued_on,
            issued_at,
        };
        row.amount_due = match self.money(values, Field::AmountDue)? {
            Some(due) => due,
            None => row.due().ok_or_else(|| {
                let label = &self.labels[Field::AmountDue as usize];
                format!("`{label}` is blank, and there is no fine to compute it from")
            })?,
        };
        Ok(row)
    }

    fn text(&self, values: &Values<'_>, field: Field) -> Result<Option<String>, String> {
        let given = values[field as usize].as_deref();
        given.map(|given| text(given, &self.labels[field as usize])).transpose()
    }

    fn money(&self, values: &Values<'_>, field: Field) -> Result<Option<Money>, String> {
        let Some(given) = values[field as usize].as_deref() else { return Ok(None) };
        let label = &self.labels[field as usize];
        let signed = amount::parse(given, self.digits).map_err(|rule| format!("`{label}` {rule}"))?;
        if signed.negative && !signed.money.is_zero() {
            return Err(format!("`{label}` must be 0 or more"));
        }
        Ok(Some(signed.money))
    }
}

impl ViolationRow {
    /// Fine + penalty + interest - reduction - payment, at least 0: on the city's rows that is what is due.
    fn due(&self) -> Option<Money> {
        let or_zero = Option::unwrap_or_default;
        let owed = self.fine_amount?.plus(or_zero(self.penalty_amount))?.plus(or_zero(self.interest_amount))?;
        let less = or_zero(self.reduction_amount).plus(or_zero(self.payment_amount))?;
        Some(owed.minus(less).unwrap_or_default())
    }
}
