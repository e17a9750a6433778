//! Time zones: conversion between local times and instants.

use super::written::read_text;
use crate::value::{Date, Timestamp};
use chrono::{FixedOffset, NaiveDateTime, Offset, TimeDelta, Timelike, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Seconds in a day.
const DAY: u32 = 86_400;

/// A time zone of the IANA database, written by its name: `America/New_York`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Zone(Tz);

/// A calendar day and a time of day, to the second, in a time zone that is not part of the value.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct LocalTime {
    date: Date,
    seconds: u32,
}

/// The instants at which a clock shows a local time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Instants {
    /// The local time occurred once.
    One(Timestamp),
    /// The clocks were set back, so the local time occurred twice: the earlier and the later instant.
    Two(Timestamp, Timestamp),
    /// The clocks were set forward, so the local time did not occur: the instant by the offset before the change.
    Gap(Timestamp),
}

impl LocalTime {
    /// The local time `seconds` after midnight of `date`; `None` for 86,400 seconds or more.
    #[must_use]
    pub fn new(date: Date, seconds: u32) -> Option<Self> {
        (seconds < DAY).then_some(Self { date, seconds })
    }

    /// The calendar day of this local time.
    #[must_use]
    pub fn date(self) -> Date {
        self.date
    }

    /// Seconds since midnight, 0 to 86,399.
    #[must_use]
    pub fn seconds(self) -> u32 {
        self.seconds
    }
}

impl Zone {
    /// `America/New_York`.
    pub const NEW_YORK: Self = Self(Tz::America__New_York);

    /// Parses a name of the IANA database, in the case of the database; `None` for unknown names.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        name.parse().ok().map(Self)
    }

    /// The instants at which clocks of this zone show `local`, each limited to the years 1970 to 9999.
    #[must_use]
    pub fn instants(self, local: LocalTime) -> Instants {
        let midnight = local.date.calendar().and_time(chrono::NaiveTime::MIN);
        let shown = midnight.and_utc().timestamp() + i64::from(local.seconds);
        // No offset reaches a day, and the longest gap is one: Samoa skipped 2011-12-30.
        let day = i64::from(DAY);
        let offsets = [shown - day, shown, shown + day].map(|near| seconds_ahead(self.0, near));
        let is_shown = |at: &i64| at + seconds_ahead(self.0, *at) == shown;
        let mut found = offsets.into_iter().map(|offset| shown - offset).filter(is_shown);
        let instant = |seconds: i64| Timestamp::from_millis(seconds * 1000);
        match found.next() {
            Some(one) => match found.find(|other| *other != one) {
                Some(other) => Instants::Two(instant(one.min(other)), instant(one.max(other))),
                None => Instants::One(instant(one)),
            },
            None => Instants::Gap(instant(shown - offsets[0])),
        }
    }

    /// The local time of this zone at an instant.
    #[must_use]
    pub fn local(self, at: Timestamp) -> LocalTime {
        let shown = self.shown_at(at).1;
        // East of Greenwich the last hours of UTC's year 9999 belong to year 10000, which `Date` does not have.
        let date = Date::from_calendar(shown.date()).unwrap_or(Date::LAST);
        LocalTime { date, seconds: shown.time().num_seconds_from_midnight() }
    }

    /// The local time at an instant as people read it, to the minute, with the offset from UTC: `2026-06-05 13:00 -04:00`.
    #[must_use]
    pub fn shown(self, at: Timestamp) -> String {
        let (local, minutes) = (self.local(at), self.local(at).seconds / 60);
        let offset = self.shown_at(at).0;
        format!("{} {:02}:{:02} {offset}", local.date, minutes / 60, minutes % 60)
    }

    /// The offset from UTC at an instant, and what clocks show.
    fn shown_at(self, at: Timestamp) -> (FixedOffset, NaiveDateTime) {
        let utc = chrono::DateTime::from_timestamp_millis(i64::try_from(at.millis()).unwrap_or(0)).unwrap_or_default();
        let seconds = i32::try_from(seconds_ahead(self.0, utc.timestamp())).unwrap_or(0);
        let offset = FixedOffset::east_opt(seconds).unwrap_or_else(|| Utc.fix());
        (offset, utc.naive_utc() + TimeDelta::seconds(i64::from(seconds)))
    }
}

/// The offset of a zone from UTC, in seconds, at an instant in seconds since 1970.
///
/// The tables of `tzdb_data` have the rules of the database, those of `chrono-tz` each change of clocks up to 2099: 3.7 MB more.
pub(crate) fn seconds_ahead(zone: Tz, at: i64) -> i64 {
    let table = tzdb_data::find_tz(zone.name().as_bytes());
    table.and_then(|table| table.find_local_time_type(at).ok()).map_or(0, |found| found.ut_offset().into())
}

impl std::fmt::Display for Zone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name())
    }
}

impl Serialize for Zone {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_text(deserializer, Self::parse, "not a time zone of the IANA database")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeZone;
    use proptest::prelude::*;

    fn local(date: &str, seconds: u32) -> LocalTime {
        LocalTime::new(Date::parse(date).unwrap(), seconds).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn a_local_time_has_an_offset_of_its_season() {
        let noon = 12 * 3600;
        let zone = Zone::NEW_YORK;
        assert_eq!(zone.instants(local("2026-01-15", noon)), Instants::One(at("2026-01-15T12:00:00-05:00")));
        assert_eq!(zone.instants(local("2026-07-15", noon)), Instants::One(at("2026-07-15T12:00:00-04:00")));
    }

    #[test]
    fn people_read_which_of_two_hours_it_was() {
        let shown = |zone: &str, time: &str| Zone::parse(zone).unwrap().shown(at(time));
        assert_eq!(shown("America/New_York", "2026-11-01T05:30:59Z"), "2026-11-01 01:30 -04:00");
        assert_eq!(shown("America/New_York", "2026-11-01T06:30:00Z"), "2026-11-01 01:30 -05:00");
        assert_eq!(shown("Asia/Kathmandu", "2026-06-05T20:00:00Z"), "2026-06-06 01:45 +05:45");
        assert_eq!(shown("UTC", "2026-06-05T20:00:00Z"), "2026-06-05 20:00 +00:00");
    }

    #[test]
    fn an_hour_that_clocks_show_twice_is_two_instants() {
        let found = Zone::NEW_YORK.instants(local("2026-11-01", 5_400));
        assert_eq!(found, Instants::Two(at("2026-11-01T01:30:00-04:00"), at("2026-11-01T01:30:00-05:00")));
    }

    #[test]
    fn an_hour_that_clocks_leave_out_counts_by_the_offset_before() {
        let found = Zone::NEW_YORK.instants(local("2026-03-08", 9_000));
        assert_eq!(found, Instants::Gap(at("2026-03-08T02:30:00-05:00")));
        let samoa = Zone::parse("Pacific/Apia").unwrap();
        assert_eq!(samoa.instants(local("2011-12-30", 86_399)), Instants::Gap(at("2011-12-30T23:59:59-10:00")));
    }

    #[test]
    fn zones_are_names_of_the_iana_database() {
        let zone: Zone = serde_json::from_str("\"Europe/Berlin\"").unwrap();
        assert_eq!(serde_json::to_string(&zone).unwrap(), "\"Europe/Berlin\"");
        for name in ["", "Mars/Olympus", "america/new_york", "+05:00"] {
            assert_eq!(Zone::parse(name), None, "{name}");
        }
    }

    #[test]
    fn the_ends_of_the_calendar_do_not_panic() {
        for name in ["Pacific/Kiritimati", "Pacific/Pago_Pago"] {
            let zone = Zone::parse(name).unwrap();
            for date in ["0001-01-01", "9999-12-31"] {
                let _ = zone.instants(local(date, 86_399));
            }
            assert!(zone.local(Timestamp::from_millis(i64::MAX)).date().year() >= 9999);
            assert!(zone.local(Timestamp::from_millis(0)).date().year() >= 1969);
        }
    }

    /// Their rules differ between the versions of the database that the two tables were made from.
    const CORRECTED: [&str; 8] = [
        "America/Ensenada",
        "America/Santa_Isabel",
        "America/Tijuana",
        "America/Vancouver",
        "Canada/Pacific",
        "Europe/Chisinau",
        "Europe/Tiraspol",
        "Mexico/BajaNorte",
    ];

    #[test]
    fn offsets_are_those_of_the_tables_of_chrono_tz() {
        let mut differing = Vec::new();
        for zone in chrono_tz::TZ_VARIANTS {
            assert!(tzdb_data::find_tz(zone.name().as_bytes()).is_some(), "{zone}");
            // From 1970 to 2037, each 18 hours.
            let differs = (0..33_100i64).map(|step| step * 64_800).find(|at| {
                let utc = chrono::DateTime::from_timestamp(*at, 0).unwrap().naive_utc();
                i64::from(zone.offset_from_utc_datetime(&utc).fix().local_minus_utc()) != seconds_ahead(zone, *at)
            });
            differing.extend(differs.map(|_| zone.name()));
        }
        assert_eq!(differing, CORRECTED);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn what_a_clock_shows_leads_back_to_the_instant(
            seconds in 0i64..2_145_916_800,
            zone in prop::sample::select(vec!["America/New_York", "America/Chicago", "America/Los_Angeles", "Europe/Berlin", "UTC"]),
        ) {
            let (zone, instant) = (Zone::parse(zone).unwrap(), Timestamp::from_millis(seconds * 1000));
            let shown = zone.local(instant);
            match zone.instants(shown) {
                Instants::One(found) => prop_assert_eq!(found, instant),
                Instants::Two(earlier, later) => {
                    prop_assert!(earlier < later && (earlier == instant || later == instant));
                    prop_assert_eq!((zone.local(earlier), zone.local(later)), (shown, shown));
                }
                Instants::Gap(_) => prop_assert!(false, "a clock showed it"),
            }
        }

        #[test]
        fn every_hour_around_a_change_of_clocks_leads_back(year in 1970i32..2038, hour in 0i64..48, minute in 0i64..60) {
            // Around the last Sundays of March and October, and the first ones of April and November.
            for (month, day) in [(3, 7), (3, 25), (4, 1), (4, 24), (10, 24), (11, 1)] {
                for name in ["America/New_York", "America/Los_Angeles", "Europe/Berlin"] {
                    let zone = Zone::parse(name).unwrap();
                    let start = Date::from_ymd(year, month, day).unwrap().calendar().and_time(chrono::NaiveTime::MIN);
                    for shift in 0..7 {
                        let instant = start.and_utc().timestamp() + (shift * 24 + hour) * 3600 + minute * 60;
                        let instant = Timestamp::from_millis(instant * 1000);
                        let back = match zone.instants(zone.local(instant)) {
                            Instants::One(found) => vec![found],
                            Instants::Two(earlier, later) => vec![earlier, later],
                            Instants::Gap(_) => vec![],
                        };
                        prop_assert!(back.contains(&instant), "{} {}", name, instant);
                    }
                }
            }
        }
    }
}
