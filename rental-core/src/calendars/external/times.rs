//! Times as calendars write them: a day, or a local time with or without a zone.

use super::reading::{Reading, TOO_LONG};
use crate::value::{Date, Timestamp};
use calcard::{
    common::{PartialDateTime, timezone::Tz},
    icalendar::{
        ICalendar, ICalendarComponent, ICalendarComponentType, ICalendarEntry, ICalendarProperty, ICalendarValue,
        timezone::TzResolver,
    },
};
use chrono::{
    DateTime, Datelike, FixedOffset, MappedLocalTime, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone,
};
use std::{collections::HashMap, str::FromStr};

/// A time of a calendar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Time {
    /// What a clock shows; midnight of a day.
    pub(super) wall: NaiveDateTime,
    /// Where that clock is. `None` if the calendar does not say it.
    pub(super) zone: Option<Tz>,
    /// Whether it is a time and not a whole day.
    pub(super) has_time: bool,
}

impl Time {
    /// Another time of the same kind.
    pub(super) fn with(self, wall: NaiveDateTime) -> Self {
        Self { wall, ..self }
    }
}

/// Seconds since 1970.
pub(super) type Moment = i64;

/// The zones of a calendar, resolved once for all of its events.
pub(super) struct Zones<'a> {
    named: TzResolver<&'a str>,
    /// Those that only the calendar knows.
    own: HashMap<&'a str, Tz>,
    /// That of the organization, for times without one.
    pub(super) default: Tz,
    reading: &'a Reading<'a>,
}

impl<'a> Zones<'a> {
    pub(super) fn of(calendar: &'a ICalendar, reading: &'a Reading<'a>) -> Result<Self, String> {
        let default = Tz::from_str(&reading.zone.to_string()).map_err(|()| "its time zone is not known".to_owned())?;
        let named = calendar.build_tz_resolver().with_default(default);
        let unknown = calendar.timezones().filter(|zone| zone.timezone().is_none());
        let own = unknown.filter_map(|zone| Some((name_of(zone)?, standard_time(calendar, zone)?))).collect();
        Ok(Self { named, own, default, reading })
    }

    /// Fails when there is no time left.
    pub(super) fn goes_on(&self) -> Result<(), String> {
        if (self.reading.goes_on)() { Ok(()) } else { Err(TOO_LONG.into()) }
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
        let own = |name| self.own.get(name).copied();
        let named = || name.map(|name| own(name).unwrap_or_else(|| self.named.resolve_or_default(Some(name))));
        let zone = if has_time { parsed.tz().or_else(named) } else { None };
        Some(Time { wall: parsed.date_time, zone, has_time })
    }

    /// When it is. A day begins at midnight of the organization.
    pub(super) fn instant(&self, time: Time) -> Moment {
        instant(time.wall, time.zone.unwrap_or(self.default))
    }

    /// The time at an instant, in UTC.
    pub(super) fn utc(at: Moment) -> Option<Time> {
        Some(Time { wall: DateTime::from_timestamp(at, 0)?.naive_utc(), zone: Some(Tz::UTC), has_time: true })
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

    pub(super) fn wall_in(&self, at: Moment, zone: Tz) -> Option<NaiveDateTime> {
        Some(DateTime::from_timestamp(at, 0)?.with_timezone(&zone).naive_local())
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
        let in_utc = time.has_time && time.zone.is_some_and(|zone| zone.is_utc());
        match local {
            Some(local) if in_utc && time.wall.time() != NaiveTime::MIN => vec![local, written],
            Some(local) => vec![written, local],
            None => vec![written],
        }
    }
}

/// The name of a time zone of a calendar.
fn name_of(zone: &ICalendarComponent) -> Option<&str> {
    zone.property(&ICalendarProperty::Tzid)?.values.first()?.as_text()
}

/// The standard time of a zone that is no public one, and its only one nearly always.
fn standard_time(calendar: &ICalendar, zone: &ICalendarComponent) -> Option<Tz> {
    let parts = || zone.component_ids.iter().filter_map(|id| calendar.component_by_id(*id));
    let is_standard = |part: &&ICalendarComponent| part.component_type == ICalendarComponentType::Standard;
    let part = parts().find(is_standard).or_else(|| parts().next())?;
    let offset = part.property(&ICalendarProperty::Tzoffsetto)?.values.first()?.as_partial_date_time()?;
    let seconds = i32::from(offset.tz_hour?) * 3600 + i32::from(offset.tz_minute.unwrap_or_default()) * 60;
    FixedOffset::east_opt(if offset.tz_minus { -seconds } else { seconds }).map(Tz::Fixed)
}

/// When a clock in a zone shows this: the first time if it does so twice. If it never does so, because the clocks were set forward,
/// by the offset before that (RFC 5545, 3.3.5).
fn instant(wall: NaiveDateTime, zone: Tz) -> Moment {
    match zone.from_local_datetime(&wall) {
        MappedLocalTime::Single(at) | MappedLocalTime::Ambiguous(at, _) => at.timestamp(),
        MappedLocalTime::None => {
            // Samoa left out a whole day.
            let before = wall.checked_sub_signed(TimeDelta::days(2)).unwrap_or(wall);
            let at = zone
                .from_local_datetime(&before)
                .earliest()
                .map_or_else(|| before.and_utc().timestamp(), |at| at.timestamp());
            at + (wall - before).num_seconds()
        }
    }
}
