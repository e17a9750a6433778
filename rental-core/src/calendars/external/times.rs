//! Times as calendars write them: a day, or a local time with or without a zone.

use super::{
    reading::{Reading, Steps},
    zones::{ClockZone, Definition, Moment, public},
};
use crate::value::{Date, Timestamp, seconds_ahead};
use calcard::{
    common::PartialDateTime,
    icalendar::{ICalendar, ICalendarEntry, ICalendarProperty, ICalendarValue},
};
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime};
use std::{cell::RefCell, collections::BTreeMap};

/// A time of a calendar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Time {
    /// What a clock shows; midnight of a day.
    pub(super) wall: NaiveDateTime,
    /// Where that clock is. `None` if the calendar does not say it, or nobody knows the zone that it names.
    pub(super) zone: Option<ClockZone>,
    /// Whether it is a time and not a whole day.
    pub(super) has_time: bool,
}

impl Time {
    /// Another time of the same kind.
    pub(super) fn with(self, wall: NaiveDateTime) -> Self {
        Self { wall, ..self }
    }
}

const DAY: Moment = 24 * 3600;
/// Steps for looking up the name of a zone.
const LOOK_UP: usize = 100;

/// The zones of a calendar.
pub(super) struct Zones<'a> {
    defined: Vec<Definition>,
    /// Which zone each name means. `None`: the calendar does not define it, and no table has it.
    named: RefCell<BTreeMap<String, Option<ClockZone>>>,
    /// That of the organization, for times without one.
    pub(super) default: ClockZone,
    pub(super) reading: &'a Reading,
    pub(super) steps: &'a Steps,
}

impl<'a> Zones<'a> {
    /// The definition in a calendar decides, whatever its name.
    pub(super) fn of(calendar: &ICalendar, reading: &'a Reading, steps: &'a Steps) -> Result<Self, String> {
        let default = public(&reading.zone.to_string()).ok_or("its time zone is not known")?;
        let (mut defined, mut named) = (Vec::new(), BTreeMap::new());
        for zone in calendar.timezones() {
            let name = zone.property(&ICalendarProperty::Tzid).and_then(|entry| entry.values.first()?.as_text());
            steps.check()?;
            if let Some((name, definition)) = name.zip(Definition::of(calendar, zone, reading, steps)) {
                named.entry(name.trim().to_owned()).or_insert(Some(ClockZone::Defined(defined.len())));
                defined.push(definition);
            }
        }
        Ok(Self { defined, named: RefCell::new(named), default, reading, steps })
    }

    /// The names that nobody knows.
    pub(super) fn unknown(self) -> impl Iterator<Item = String> {
        self.named.into_inner().into_iter().filter(|(_, zone)| zone.is_none()).map(|(name, _)| name)
    }

    fn named(&self, name: &str) -> Option<ClockZone> {
        let name = name.trim();
        if let Some(known) = self.named.borrow().get(name) {
            return *known;
        }
        self.steps.take(LOOK_UP);
        let found = public(name);
        self.named.borrow_mut().insert(name.to_owned(), found);
        found
    }

    /// The times of a property, without what is no time.
    pub(super) fn times(&self, entry: &ICalendarEntry) -> Vec<Time> {
        let time = |value: &ICalendarValue| self.time(value.as_partial_date_time()?, entry.tz_id());
        entry.values.iter().filter_map(time).collect()
    }

    /// The first time of a property.
    pub(super) fn first(&self, entry: &ICalendarEntry) -> Option<Time> {
        let value = entry.values.first().and_then(ICalendarValue::as_partial_date_time)?;
        self.time(value, entry.tz_id())
    }

    pub(super) fn time(&self, value: &PartialDateTime, name: Option<&str>) -> Option<Time> {
        let parsed = value.to_date_time()?;
        let has_time = value.hour.is_some();
        let stated = parsed.offset.map(|offset| ClockZone::Offset(offset.local_minus_utc()));
        let zone = if has_time { stated.or_else(|| self.named(name?)) } else { None };
        Some(Time { wall: parsed.date_time, zone, has_time })
    }

    /// When it is: the first time if the clock shows it twice. If it never does so, because the clocks were set forward, by the
    /// offset before that (RFC 5545, 3.3.5). A day begins at midnight of the organization.
    pub(super) fn instant(&self, time: Time) -> Moment {
        let (zone, shown) = (time.zone.unwrap_or(self.default), time.wall.and_utc().timestamp());
        // Clocks are set once in these days.
        let (before, after) = (self.offset(zone, shown - DAY), self.offset(zone, shown + DAY));
        let is_after = self.offset(zone, shown - before) != before && self.offset(zone, shown - after) == after;
        shown - if is_after { after } else { before }
    }

    /// How many seconds the clocks of a zone are ahead of UTC.
    fn offset(&self, zone: ClockZone, at: Moment) -> Moment {
        match zone {
            ClockZone::Offset(seconds) => seconds.into(),
            ClockZone::Public(zone) => seconds_ahead(zone, at),
            ClockZone::Defined(number) => self.defined.get(number).map_or(0, |zone| zone.offset(at)),
        }
    }

    /// The time at an instant, in UTC.
    pub(super) fn utc(at: Moment) -> Option<Time> {
        Some(Time { wall: DateTime::from_timestamp(at, 0)?.naive_utc(), zone: Some(ClockZone::UTC), has_time: true })
    }

    /// What the clock of another time shows at this one.
    pub(super) fn wall_as(&self, time: Time, other: Time) -> NaiveDateTime {
        if !other.has_time {
            return time.wall.date().and_time(NaiveTime::MIN);
        }
        let zone = other.zone.unwrap_or(self.default);
        if !time.has_time || time.zone.unwrap_or(self.default) == zone {
            return time.wall;
        }
        self.wall_in(self.instant(time), zone).unwrap_or(time.wall)
    }

    pub(super) fn wall_in(&self, at: Moment, zone: ClockZone) -> Option<NaiveDateTime> {
        Some(DateTime::from_timestamp(at.checked_add(self.offset(zone, at))?, 0)?.naive_utc())
    }

    /// On which day of the organization it is. `None` for a year that no date has.
    pub(super) fn day(&self, time: Time) -> Option<Date> {
        if time.has_time {
            let millis = self.instant(time).checked_mul(1000)?;
            return Some(self.reading.zone.local(Timestamp::from_millis(millis)).date());
        }
        let day = time.wall.date();
        Date::from_ymd(day.year(), day.month(), day.day())
    }

    /// The days that can be meant by a time where a day belongs, the likeliest one first. A program that has all-day events at
    /// midnight of UTC, or of its own zone, names their occurrences so.
    pub(super) fn days(&self, time: Time) -> Vec<NaiveDate> {
        let written = time.wall.date();
        let local = self.wall_in(self.instant(time), self.default).map(|wall| wall.date());
        let in_utc = time.has_time && time.zone == Some(ClockZone::UTC);
        match local {
            Some(local) if in_utc && time.wall.time() != NaiveTime::MIN => vec![local, written],
            Some(local) => vec![written, local],
            None => vec![written],
        }
    }
}
