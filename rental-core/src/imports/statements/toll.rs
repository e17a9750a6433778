//! Statements of toll agencies, row by row.

use super::{
    Failed, NoRecord, Refused, Row, Settings, amount,
    cells::{identifier, is_spoilt, spoilt, text},
    formats::{GENERIC, NOT_TOLLS, NYC_OPEN, Profile, TOLL_FORMATS, TOLL_PROFILES, VIOLATION_PROFILES},
    header::Header,
    input::Source,
    layout::{Field, Layout},
    mapping::{Charges, Mapping},
    table::Table,
    time::{self, Order},
};
use crate::{
    body::{did_you_mean, shorten},
    value::{Date, Money, Plate, Timestamp, Zone, tag_digits},
};
use std::io::Read;

/// A toll or a credit of an agency's statement.
#[derive(Clone, Debug, PartialEq)]
pub struct TollRow {
    /// More than 0, whatever its direction.
    pub amount: Money,
    /// Money back: a correction or a refund of a toll.
    pub credit: bool,
    /// Who took the toll.
    pub agency: String,
    /// The agency's number, where its format has one.
    pub transaction_id: Option<String>,
    /// The local day.
    pub occurred_on: Option<Date>,
    /// The instant, when the time of day is known too. Of an hour that clocks showed twice, the earlier one.
    pub occurred_at: Option<Timestamp>,
    /// Where it was.
    pub plaza: Option<String>,
    /// As reported; from a column for tags and plates, the number without its state.
    pub plate: Option<String>,
    /// As reported, or what was split off the plate.
    pub plate_state: Option<String>,
    /// As reported; from a column for tags and plates, the digits alone.
    pub transponder_number: Option<String>,
}

/// The rows of one file, each with the line where it begins. After an error there are no more.
pub struct TollReader<R> {
    table: Table<R>,
    plan: Plan,
    ended: bool,
}

/// Transponder, plate and the plate's state.
type Identifiers = (Option<String>, Option<String>, Option<String>);

/// How the rows of one file are read.
struct Plan {
    mapping: Mapping,
    layout: Layout,
    zone: Option<Zone>,
    digits: u32,
    own: bool,
}

/// Opens a statement: CSV in the generic format, in a known one, or in one that a mapping describes.
///
/// # Errors
/// [`Failed::Refused`] when it is not such a file: its sentence names the missing column, or the format that fits.
pub fn tolls<R: Read>(
    input: R,
    format: Option<&str>,
    mapping: Option<&Mapping>,
    settings: &Settings,
) -> Result<TollReader<R>, Failed> {
    let refused = |reason: String| Failed::from(Refused(reason));
    if format.is_some() && mapping.is_some() {
        return Err(refused("give either a format or a mapping file, not both".into()));
    }
    let name = format.unwrap_or(GENERIC.name);
    let profiles: Vec<&Profile> = TOLL_PROFILES.iter().filter(|profile| profile.name == name).copied().collect();
    if profiles.is_empty() {
        return Err(refused(unknown_format(name, TOLL_FORMATS)));
    }
    let source = Source::open(input)?;
    if source.head().trim_ascii_start().starts_with(b"[") || source.head().trim_ascii_start().starts_with(b"{") {
        return Err(refused("expected CSV, but the file looks like JSON; download the statement as CSV".into()));
    }
    let table = Table::open(source)?;
    let (mapping, layout, own) = match mapping {
        Some(mapping) => {
            let layout = Layout::resolve(mapping, &[], &table.header).map_err(|why| {
                refused(format!("expected the columns of the mapping file, but {why}. Found: {}", table.header.shown()))
            })?;
            (mapping.clone(), layout, false)
        }
        None => choose(&profiles, &table.header).map_err(refused)?,
    };
    let zone = settings.zone.or(mapping.zone);
    if zone.is_none() && mapping.has(Field::Date) {
        return Err(refused(
            "the times of this file are local: give `time_zone` in the mapping, or --time-zone".into(),
        ));
    }
    let table = if own { table.forgiving() } else { table };
    let plan = Plan { mapping, layout, zone, digits: settings.digits, own };
    Ok(TollReader { table, plan, ended: false })
}

/// What to say of a format that does not exist.
pub(super) fn unknown_format(name: &str, formats: &[(&str, &str)]) -> String {
    let near = did_you_mean(name, formats.iter().map(|(known, _)| *known));
    let names = formats.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
    format!("there is no format `{}`{near}. Known formats: {names}", shorten(name))
}

/// The profile whose columns are there, or what is missing and which other format would fit.
fn choose(profiles: &[&Profile], header: &Header) -> Result<(Mapping, Layout, bool), String> {
    let mut why = String::new();
    for profile in profiles {
        match fits(profile, header) {
            Ok((mapping, layout)) => return Ok((mapping, layout, profile.own)),
            Err(reason) => why = reason,
        }
    }
    let name = profiles.first().map_or("", |profile| profile.name);
    let other = TOLL_PROFILES.iter().find(|other| other.name != name && fits(other, header).is_ok());
    let hint = match other {
        Some(other) => format!("this looks like {0}; use --format {0}", other.name),
        None if VIOLATION_PROFILES.iter().any(|other| header.find(other.columns[0][0]).is_some()) => {
            format!("this looks like a list of violations ({}); import it as violations", NYC_OPEN.name)
        }
        None => "choose another --format, or describe the file in a mapping file and give --mapping".into(),
    };
    Err(format!("expected the columns of {name}, but {why}; {hint}. Found: {}", header.shown()))
}

fn fits(profile: &Profile, header: &Header) -> Result<(Mapping, Layout), String> {
    if let Some(mark) = profile.mark.filter(|mark| header.find(mark).is_none()) {
        return Err(format!("there is no column `{mark}`{}", header.near(mark)));
    }
    let mapping = profile.mapping();
    let layout = Layout::resolve(&mapping, profile.optional, header)?;
    if profile.own {
        let known: Vec<&str> = profile.columns.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        if let Some(name) = header.others(&known).next() {
            let near = did_you_mean(&name.to_lowercase(), known.iter().copied());
            return Err(format!("`{name}` is none of them{near}"));
        }
        if !layout.has(Field::Plate) && !layout.has(Field::Transponder) {
            return Err("there is no column `transponder_number` or `plate` to find a vehicle by".into());
        }
    }
    Ok((mapping, layout))
}

impl<R: Read> Iterator for TollReader<R> {
    type Item = Result<(u64, Row<TollRow>), Failed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let read = self.table.next();
        self.ended = !matches!(read, Ok(Some(_)));
        match read {
            Ok(Some((line, Ok(fields)))) => Some(Ok((line, self.plan.row(&fields).into()))),
            Ok(Some((line, Err(why)))) => Some(Ok((line, Row::Invalid(why)))),
            Ok(None) => None,
            Err(failed) => Some(Err(failed)),
        }
    }
}

impl Plan {
    fn row(&self, row: &[&str]) -> Result<TollRow, NoRecord> {
        self.skip(row)?;
        let (amount, credit) = self.amount(row)?;
        if amount.is_zero() {
            return Err(NoRecord::Skipped("no charge: the amount is 0"));
        }
        let agency = self.agency(row, credit)?;
        let (occurred_on, occurred_at) = self.occurred(row)?;
        let (transponder_number, plate, plate_state) = self.vehicle(row)?;
        let named = |field| self.layout.get(row, field).map(|given| identifier(given, self.layout.label(field)));
        Ok(TollRow {
            amount,
            credit,
            agency,
            transaction_id: named(Field::TransactionId).transpose()?,
            occurred_on,
            occurred_at,
            plaza: self.text(row, Field::Plaza)?,
            plate,
            plate_state,
            transponder_number,
        })
    }

    fn text(&self, row: &[&str], field: Field) -> Result<Option<String>, String> {
        self.layout.get(row, field).map(|given| text(given, self.layout.label(field))).transpose()
    }

    /// Rows that say of themselves that they are no tolls.
    fn skip(&self, row: &[&str]) -> Result<(), NoRecord> {
        let same = |given: &str, value: &str| given.to_lowercase() == value.to_lowercase();
        let by_mapping = self.mapping.skip.iter().flat_map(|(_, values)| values);
        if let Some(given) = self.layout.skipped_by(row)
            && by_mapping.into_iter().any(|value| same(given, value))
        {
            return Err(NoRecord::Skipped("a kind of row that the mapping file skips"));
        }
        let other = |given: &str| NOT_TOLLS.iter().any(|word| given.to_lowercase().contains(word));
        if self.layout.all(row, Field::Kind).any(other) {
            return Err(NoRecord::Skipped("a payment or a fee of the account, not a toll"));
        }
        Ok(())
    }

    /// The amount, and whether it is money back.
    fn amount(&self, row: &[&str]) -> Result<(Money, bool), String> {
        let signed = |field| {
            let parse = |given| amount::parse(given, self.digits);
            let labelled = |rule| format!("`{}` {rule}", self.layout.label(field));
            self.layout.get(row, field).map(|given| parse(given).map_err(labelled)).transpose()
        };
        if !self.layout.has(Field::Debit) {
            let label = self.layout.label(Field::Amount);
            let signed = signed(Field::Amount)?.ok_or_else(|| format!("`{label}` is blank"))?;
            return Ok((signed.money, signed.negative == (self.mapping.charges == Charges::Positive)));
        }
        let (debit, credit) = (signed(Field::Debit)?, signed(Field::Credit)?);
        if [debit, credit].into_iter().flatten().any(|signed| signed.negative) {
            return Err("has a negative debit or credit, which could mean either; correct the row".into());
        }
        match (debit.map(|signed| signed.money), credit.map(|signed| signed.money)) {
            (None, None) => Err(format!("`{}` is blank", self.layout.label(Field::Debit))),
            (Some(debit), Some(credit)) if !debit.is_zero() && !credit.is_zero() => {
                Err("has both a debit and a credit; correct the row".into())
            }
            (Some(debit), credit) if !debit.is_zero() || credit.is_none() => Ok((debit, false)),
            (_, credit) => Ok((credit.unwrap_or_default(), true)),
        }
    }

    fn agency(&self, row: &[&str], credit: bool) -> Result<String, NoRecord> {
        if let Some(agency) = &self.mapping.agency {
            return Ok(agency.clone());
        }
        match self.text(row, Field::Agency)? {
            Some(agency) => Ok(agency),
            // A toll that is given back names the agency that took it.
            None if credit && !self.own => {
                Err(NoRecord::Skipped("money that came in without an agency: a payment, not a toll"))
            }
            None => Err(NoRecord::Invalid(format!("`{}` is blank", self.layout.label(Field::Agency)))),
        }
    }

    /// The local day, and the instant when the time of day is there.
    fn occurred(&self, row: &[&str]) -> Result<(Option<Date>, Option<Timestamp>), String> {
        let field = if self.layout.has(Field::Date) { Field::Date } else { Field::OccurredAt };
        let label = self.layout.label(field);
        let Some(given) = self.layout.get(row, field) else {
            return if self.own { Ok((None, None)) } else { Err(format!("`{label}` is blank")) };
        };
        let order = self.mapping.order.unwrap_or(Order::YearMonthDay);
        let unreadable = |label: &str, given: &str, example: &str| {
            format!("`{label}` is `{}`, which is not {example}", shorten(given))
        };
        if field == Field::Date {
            let date = time::date(given, order).ok_or_else(|| unreadable(label, given, example(order)))?;
            let Some(clock) = self.layout.get(row, Field::Time) else { return Ok((Some(date), None)) };
            let seconds = time::time_of_day(clock).ok_or_else(|| {
                unreadable(self.layout.label(Field::Time), clock, "a time such as 05:13:32 PM or 17:13")
            })?;
            return Ok((Some(date), self.zone.and_then(|zone| time::instant(zone, date, seconds))));
        }
        if let Some(at) = Timestamp::parse(given) {
            // Without a zone the day is the one that was written, whatever its offset.
            let written = given.get(..10).and_then(Date::parse);
            return Ok((self.zone.map(|zone| zone.local(at).date()).or(written), Some(at)));
        }
        let (day, clock) = given.split_once(['T', ' ']).map_or((given, None), |(day, clock)| (day, Some(clock)));
        let wanted = if self.zone.is_some() { example(order) } else { "an RFC 3339 time such as 2026-06-02T14:03:00Z" };
        let wrong = || unreadable(label, given, wanted);
        let zone = self.zone.ok_or_else(wrong)?;
        let date = time::date(day, order).ok_or_else(wrong)?;
        let Some(clock) = clock else { return Ok((Some(date), None)) };
        let seconds = time::time_of_day(clock).ok_or_else(wrong)?;
        Ok((Some(date), time::instant(zone, date, seconds)))
    }

    /// What a vehicle is found by. A transponder that a spreadsheet has spoilt is left out if there is a plate.
    fn vehicle(&self, row: &[&str]) -> Result<Identifiers, String> {
        let layout = &self.layout;
        let mut plate = self.text(row, Field::Plate)?;
        let mut state = self.text(row, Field::PlateState)?;
        let (mut tag, mut lost) = (None, None);
        if let Some(given) = layout.get(row, Field::Transponder) {
            match identifier(given, layout.label(Field::Transponder)) {
                Ok(given) => tag = Some(given),
                Err(why) => lost = Some(why),
            }
        }
        if let Some(given) = layout.get(row, Field::TagOrPlate) {
            let label = layout.label(Field::TagOrPlate);
            let given = text(given.trim_matches(['\'', '"']), label)?;
            if let Some(digits) = tag_digits(&given) {
                tag = tag.or(Some(digits));
            } else if is_spoilt(&given) {
                lost = Some(spoilt(&given, label));
            } else if let (None, Some(found)) = (&plate, Plate::parse(&given, state.as_deref())) {
                plate = Some(found.number);
                state = found.state.or(state);
            }
        }
        match lost {
            Some(why) if plate.is_none() && tag.is_none() => Err(why),
            _ => Ok((tag, plate, state)),
        }
    }
}

fn example(order: Order) -> &'static str {
    match order {
        Order::MonthDayYear => "a date with the month first, such as 12/29/2025",
        Order::DayMonthYear => "a date with the day first, such as 29/12/2025",
        Order::YearMonthDay => "a date such as 2025-12-29",
    }
}
