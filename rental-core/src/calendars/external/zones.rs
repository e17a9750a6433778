//! Time zones: those that a calendar defines (RFC 5545, 3.6.5), and those of public tables.

use super::{
    reading::{Reading, Steps},
    rules::{self, ClockRange},
};
use calcard::{
    common::{PartialDateTime, timezone},
    icalendar::{ICalendar, ICalendarComponent, ICalendarProperty as Property, ICalendarValue},
};
use chrono::{DateTime, Days, NaiveDateTime, TimeDelta};
use chrono_tz::Tz;
use std::iter::successors;

/// Seconds since 1970.
pub(super) type Moment = i64;

/// Where a clock is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ClockZone {
    /// So many seconds ahead of UTC.
    Offset(i32),
    /// In a zone of the IANA database.
    Public(Tz),
    /// In a zone that the calendar defines: its number.
    Defined(usize),
}

impl ClockZone {
    pub(super) const UTC: Self = Self::Offset(0);
}

/// Most names in a path that can be the name of a zone.
const LONGEST_PATH: usize = 8;

/// The zone of a name in public tables: the IANA database, also with a path before it (`/mozilla.org/20050126_1/Europe/Berlin`), and
/// the names of Windows and Outlook.
pub(super) fn public(name: &str) -> Option<ClockZone> {
    let paths = || successors(Some(name), |path| Some(path.split_once('/')?.1)).take(LONGEST_PATH);
    let iana = paths().find_map(|path| path.parse::<Tz>().ok());
    // "(UTC+01:00) Amsterdam, Berlin, Bern, Rome, Stockholm, Vienna": the offset says nothing about summer time.
    let shown = name.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(name, |(_, places)| places.trim());
    let other = || match shown {
        // What the table of `calcard` lacks.
        "Dublin, Edinburgh, Lisbon, London" => Some(Tz::Europe__London),
        "South Sudan Standard Time" => Some(Tz::Africa__Juba),
        _ => match shown.parse() {
            Ok(timezone::Tz::Tz(zone)) => Some(zone),
            _ => None,
        },
    };
    let zone =
        iana.or_else(other).or_else(|| paths().any(|path| path.eq_ignore_ascii_case("UTC")).then_some(Tz::UTC))?;
    let is_utc = matches!(zone, Tz::UTC | Tz::Etc__UTC | Tz::GMT | Tz::Etc__GMT);
    Some(if is_utc { ClockZone::UTC } else { ClockZone::Public(zone) })
}

/// A zone that a calendar defines.
pub(super) struct Definition {
    /// In their order, at least one.
    changes: Vec<Change>,
}

/// A time at which clocks are set.
struct Change {
    at: Moment,
    before: Moment,
    after: Moment,
}

impl Definition {
    /// `None` if it says nothing, or something that cannot be read: then a table may know its name.
    pub(super) fn of(
        calendar: &ICalendar,
        zone: &ICalendarComponent,
        reading: &Reading,
        steps: &Steps,
    ) -> Option<Self> {
        let mut changes = Vec::new();
        for part in zone.component_ids.iter().filter_map(|id| calendar.component_by_id(*id)) {
            changes.extend(changes_of(part, reading, steps)?);
        }
        changes.sort_by_key(|change| change.at);
        (!changes.is_empty()).then_some(Self { changes })
    }

    pub(super) fn offset(&self, at: Moment) -> Moment {
        let next = self.changes.partition_point(|change| change.at <= at);
        match next.checked_sub(1).and_then(|last| self.changes.get(last)) {
            Some(last) => last.after,
            None => self.changes.first().map_or(0, |first| first.before),
        }
    }
}

/// When the clocks are set to the standard or summer time of a zone, from 1970 on.
fn changes_of(part: &ICalendarComponent, reading: &Reading, steps: &Steps) -> Option<Vec<Change>> {
    let first = |name| part.property(&name).and_then(|entry| entry.values.first());
    let wall = |value: &ICalendarValue| value.as_partial_date_time()?.to_date_time().map(|time| time.date_time);
    let after = seconds(first(Property::Tzoffsetto)?)?;
    let before = first(Property::Tzoffsetfrom).map_or(Some(after), seconds)?;
    let start = wall(first(Property::Dtstart)?)?;
    let mut walls = vec![start];
    for entry in &part.entries {
        match (&entry.name, entry.values.first()) {
            (Property::Rdate, _) => walls.extend(entry.values.iter().filter_map(wall)),
            (Property::Rrule, Some(ICalendarValue::RecurrenceRule(rule))) => {
                // An event of the last day can end much later.
                let end = reading.end().checked_add_days(Days::new(400))?;
                let to = rule.until.as_ref().map_or(Some(end), |until| until_of(until, before))?.min(end);
                let range = ClockRange { from: DateTime::UNIX_EPOCH.naive_utc(), to };
                walls.extend(rules::starts(rule, start, range, steps).ok()?);
            }
            (Property::Rrule, _) => return None,
            _ => {}
        }
    }
    steps.take(walls.len());
    let change = |wall: NaiveDateTime| Change { at: wall.and_utc().timestamp() - before, before, after };
    Some(walls.into_iter().map(change).collect())
}

/// The last time at which a rule sets clocks, as they show it before. It is written in UTC.
fn until_of(until: &PartialDateTime, offset: Moment) -> Option<NaiveDateTime> {
    let time = until.to_date_time()?;
    if until.hour.is_none() {
        return time.date_time.date().and_hms_opt(23, 59, 59);
    }
    time.date_time.checked_add_signed(TimeDelta::seconds(if time.offset.is_some() { offset } else { 0 }))
}

/// An offset in seconds.
fn seconds(offset: &ICalendarValue) -> Option<Moment> {
    let offset = offset.as_partial_date_time()?;
    let seconds = Moment::from(offset.tz_hour?) * 3600 + Moment::from(offset.tz_minute.unwrap_or_default()) * 60;
    (seconds < 86_400).then_some(if offset.tz_minus { -seconds } else { seconds })
}
