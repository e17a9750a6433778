//! The time of a row, in a column or two.

use super::{
    field::Field,
    row::Values,
    time::{self, Dates, NoDate, Order},
};
use crate::{
    request::body::shorten,
    value::{Date, Timestamp, When},
};

/// The local date of a row, and the instant if there is a time of day. Nothing where the column of the date is blank. Midnight in the
/// column of the date is a date alone; in one of date and time it is one only if `is_midnight_a_day`.
///
/// # Errors
/// A sentence: the date or time cannot be read, or can be read in two ways.
pub(super) fn read(values: &Values<'_>, is_midnight_a_day: bool) -> Result<When, String> {
    let plan = values.plan;
    let field = if plan.layout.has(Field::Date) { Field::Date } else { Field::OccurredAt };
    let Some(given) = values.get(field) else { return Ok(When::default()) };
    let label = values.label(field);
    if let Some(at) = Timestamp::parse(&given) {
        // Without a time zone the local date is the date in the text.
        let written = given.get(..10).and_then(Date::parse);
        return Ok(When { at: Some(at), on: plan.zone.map(|zone| zone.local(at).date()).or(written), zone: None });
    }
    if plan.zone.is_none() {
        let or = |rule| format!("{rule}, or name the zone of the file, such as --time-zone {}", plan.home);
        let rule = Timestamp::no_zone(&given).map(or);
        let rule = rule.unwrap_or_else(|| "is not an RFC 3339 time such as 2026-06-02T14:03:00Z".into());
        return Err(format!("`{label}` is `{}`, which {rule}", shorten(&given)));
    }
    let (date, clock) =
        time::moment(&given, plan.mapping.dates).map_err(|why| no_date(why, label, &given, plan.mapping.dates))?;
    let seconds = match values.get(Field::Time) {
        Some(clock) if plan.is_new_york => time::time_of_day(&clock).filter(|_| !time::lost_its_half(&clock)),
        Some(clock) => Some(time::time_of_day(&clock).ok_or_else(|| no_time(values.label(Field::Time), &clock))?),
        None => clock.filter(|seconds| *seconds > 0 || field == Field::OccurredAt && !is_midnight_a_day),
    };
    Ok(local(values, date, seconds))
}

fn local(values: &Values<'_>, date: Date, seconds: Option<u32>) -> When {
    let zone = values.plan.zone;
    When { at: zone.zip(seconds).and_then(|(zone, seconds)| time::instant(zone, date, seconds)), on: Some(date), zone }
}

fn no_time(label: &str, given: &str) -> String {
    format!("`{label}` is `{}`, which is not a time such as 05:13:32 PM or 17:13", shorten(given))
}

/// The message for a date that cannot be read.
pub(super) fn no_date(why: NoDate, label: &str, given: &str, dates: Option<Dates>) -> String {
    let given = shorten(given);
    match why {
        NoDate::Ambiguous => format!(
            "`{label}` is `{given}`, where nothing says whether the day or the month comes first; choose a --format, or write \
             `date_order` (\"dmy\" or \"mdy\") in a mapping file"
        ),
        NoDate::WithoutMarks => format!(
            "`{label}` is `{given}`, which has no marks between day, month and year; write its `date_format`, such as \"DDMMYY\" or \
             \"YYMMDD\", in the mapping file"
        ),
        NoDate::Unreadable => format!("`{label}` is `{given}`, which is not {}", example(dates)),
    }
}

fn example(dates: Option<Dates>) -> &'static str {
    match dates.map(|dates| (dates.order, dates.is_compact)) {
        Some((Order::MonthDayYear, false)) => "a date with the month first, such as 12/29/2025",
        Some((Order::MonthDayYear, true)) => "a date with the month first, such as 122925",
        Some((Order::DayMonthYear, false)) => "a date with the day first, such as 29/12/2025",
        Some((Order::DayMonthYear, true)) => "a date with the day first, such as 291225",
        Some((Order::YearMonthDay, false)) | None => "a date such as 2025-12-29",
        Some((Order::YearMonthDay, true)) => "a date such as 251229",
    }
}
