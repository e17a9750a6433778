//! When the occurrences of a rule begin. `calcard` expands it, without zones.

use super::times::{Time, Zones};
use calcard::{
    common::{PartialDateTime, timezone::Tz},
    icalendar::{
        ICalendar, ICalendarComponent, ICalendarComponentType as Component, ICalendarEntry, ICalendarFrequency,
        ICalendarProperty as Property, ICalendarRecurrenceRule as Rule, ICalendarValue,
    },
};
use chrono::{Datelike, NaiveDateTime, NaiveTime, Timelike};

/// Most occurrences of the events with one UID, from their beginning to the end of the window.
pub(super) const MOST_OCCURRENCES: usize = 20_000;
/// Most occurrences of a rule on a day.
const MOST_OF_A_DAY: usize = 24;

/// Why a rule cannot be expanded: what follows the name of its event.
pub(super) type Why = String;

/// What the clock shows when the occurrences of a rule begin, up to `end`. The first one begins at `start`, also when the rule says
/// something else.
pub(super) fn starts(
    rule: &Rule,
    start: Time,
    zones: &Zones<'_>,
    end: NaiveDateTime,
) -> Result<Vec<NaiveDateTime>, Why> {
    let a_day = [&rule.byhour, &rule.byminute, &rule.bysecond].iter().map(|list| list.len().max(1)).product::<usize>();
    if rule.freq > ICalendarFrequency::Daily || a_day > MOST_OF_A_DAY {
        return Err("recurs more than once a day".into());
    }
    let until = match &rule.until {
        Some(until) => {
            until_of(until, start, zones).ok_or("has an RRULE that cannot be read: its UNTIL is no time")?.min(end)
        }
        None => end,
    };
    if until < start.wall {
        return Ok(vec![start.wall]);
    }
    let rule = Rule { until: Some(local(until)), ..rule.clone() };
    let entry = |name, value| ICalendarEntry { name, params: Vec::new(), values: vec![value] };
    let entries = vec![
        entry(Property::Dtstart, ICalendarValue::PartialDateTime(Box::new(local(start.wall)))),
        entry(Property::Rrule, ICalendarValue::RecurrenceRule(Box::new(rule))),
    ];
    let event = ICalendarComponent { component_type: Component::VEvent, entries, component_ids: Vec::new() };
    let expanded = ICalendar { components: vec![event] }.expand_dates(Tz::Floating, MOST_OCCURRENCES);
    if let Some(error) = expanded.errors.first() {
        return Err(format!("has an RRULE that cannot be read: {}", error.error));
    }
    if expanded.events.len() >= MOST_OCCURRENCES {
        return Err(too_many());
    }
    let mut found: Vec<_> = expanded.events.iter().map(|one| one.start.naive_local()).collect();
    if found.first() != Some(&start.wall) {
        found.insert(0, start.wall);
    }
    Ok(found)
}

pub(super) fn too_many() -> Why {
    format!("has too many occurrences, more than {MOST_OCCURRENCES}")
}

/// The last time at which an occurrence can begin. The longer reading counts where there are two: a day ends at its end, and a time
/// in UTC where a day belongs can mean that day, or the one of the organization.
fn until_of(until: &PartialDateTime, start: Time, zones: &Zones<'_>) -> Option<NaiveDateTime> {
    let until = zones.time(until, None)?;
    if !until.has_time {
        return until.wall.date().and_hms_opt(23, 59, 59);
    }
    if !start.has_time {
        return zones.days(until).into_iter().max().map(|day| day.and_time(NaiveTime::MIN));
    }
    match until.zone {
        Some(_) => zones.wall_in(zones.instant(until), start.zone.unwrap_or(zones.default)),
        None => Some(until.wall),
    }
}

fn local(wall: NaiveDateTime) -> PartialDateTime {
    let part = |number: u32| u8::try_from(number).ok();
    PartialDateTime {
        year: u16::try_from(wall.year()).ok(),
        month: part(wall.month()),
        day: part(wall.day()),
        hour: part(wall.hour()),
        minute: part(wall.minute()),
        second: part(wall.second()),
        tz_hour: None,
        tz_minute: None,
        tz_minus: false,
    }
}
