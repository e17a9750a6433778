//! Days and times as people type them: `today`, `tomorrow`, `+7d`, `-30d`, `2026-11-01`, `2h`.

use crate::config::values::duration;
use chrono::{Local, TimeZone as _};
use rental_core::value::{Date, Instants, LocalTime, Timestamp, Zone};
use std::{ffi::OsString, time::Duration};

/// A day or a time as it was typed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum When {
    /// A calendar day.
    Day(Date),
    /// So many days after the present one, or before it.
    FromToday(i64),
    /// A duration before now.
    Ago(Duration),
    /// An RFC 3339 time, or what the server refuses.
    Text(String),
}

impl When {
    /// What a text means; it is no duration.
    pub(crate) fn of(text: &str) -> Self {
        let days = match text.to_lowercase().as_str() {
            "today" => Some(0),
            "tomorrow" => Some(1),
            "yesterday" => Some(-1),
            _ => days_from_today(text),
        };
        match (days, Date::parse(text)) {
            (Some(days), _) => Self::FromToday(days),
            (None, Some(day)) => Self::Day(day),
            (None, None) => Self::Text(text.to_owned()),
        }
    }
}

/// `7` for `+7d`, and `-30` for `-30d`.
fn days_from_today(text: &str) -> Option<i64> {
    let (sign, count) = match text.split_at_checked(1)? {
        ("+", count) => (1, count),
        ("-", count) => (-1, count),
        _ => return None,
    };
    let days = duration(count).ok().filter(|_| count.ends_with('d'))?.as_secs() / 86_400;
    Some(sign * i64::try_from(days).ok()?)
}

/// The arguments of a command line, where `--from -30d` becomes `--from=-30d`: clap takes what begins with a hyphen for a flag.
pub(crate) fn joined(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    let mut are_flags = true;
    for arg in args {
        are_flags &= arg != "--";
        let days = arg.to_str().filter(|text| are_flags && text.starts_with('-') && days_from_today(text).is_some());
        match (days, joined.last_mut()) {
            (Some(days), Some(flag))
                if flag.to_str().is_some_and(|flag| flag.starts_with("--") && !flag.contains('=')) =>
            {
                flag.push(format!("={days}"));
            }
            _ => joined.push(arg),
        }
    }
    joined
}

/// Parses a time, a day or a duration before now: `2026-05-05T09:30:00Z`, `today`, `2h`.
pub(crate) fn since(text: &str) -> Result<When, String> {
    let form =
        "write a time like 2026-05-05T09:30:00Z, a day like 2026-05-05, today or -7d, or how long ago like 30m or 2h";
    match When::of(text) {
        When::Text(text) if Timestamp::parse_bound(&text).is_some() => Ok(When::Text(text)),
        When::Text(text) => {
            duration(&text).map(When::Ago).map_err(|_| Timestamp::no_zone(&text).unwrap_or_else(|| form.to_owned()))
        }
        when => Ok(when),
    }
}

/// Where days begin and end.
#[derive(Clone, Copy)]
pub(crate) enum Days {
    /// In this zone.
    Of(Zone),
    /// In the zone of this computer.
    Here,
}

impl Days {
    /// The day so many days after the present one.
    pub(crate) fn after_today(self, days: i64, now: Timestamp) -> Option<Date> {
        let today = match self {
            Self::Of(zone) => zone.local(now).date(),
            Self::Here => {
                let local = Local.timestamp_millis_opt(i64::try_from(now.millis()).ok()?).single()?;
                Date::parse(&local.format("%Y-%m-%d").to_string())?
            }
        };
        Date::from_day_number(u32::try_from(i64::from(today.day_number()) + days).ok()?)
    }

    /// The first instant of a day.
    pub(crate) fn midnight(self, day: Date) -> Option<Timestamp> {
        match self {
            Self::Of(zone) => match zone.instants(LocalTime::new(day, 0)?) {
                Instants::One(at) | Instants::Two(at, _) | Instants::Gap(at) => Some(at),
            },
            Self::Here => {
                let (year, month, day) = day.ymd();
                let local = Local.with_ymd_and_hms(year, month, day, 0, 0, 0).earliest()?;
                Some(Timestamp::from_millis(local.timestamp_millis()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_words_numbers_of_days_and_dates() {
        for (text, days) in [
            ("today", 0),
            ("Tomorrow", 1),
            ("yesterday", -1),
            ("+7d", 7),
            ("-30d", -30),
            ("+0d", 0),
            ("-36500d", -36_500),
        ] {
            assert_eq!(When::of(text), When::FromToday(days), "{text}");
        }
        assert_eq!(When::of("2026-11-01"), When::Day(Date::parse("2026-11-01").unwrap()));
        for text in ["", "7d", "+7", "+7h", "-d", "++7d", "2026-02-30", "2026-11-01T00:00:00Z", "soon", "-36501d", "é"]
        {
            assert_eq!(When::of(text), When::Text(text.into()), "{text}");
        }
    }

    #[test]
    fn a_number_of_days_after_a_flag_is_its_value() {
        for (line, expected) in [
            ("x list --from -30d --to today", "x list --from=-30d --to today"),
            ("x --from --to -1d -30d", "x --from --to=-1d -30d"),
            ("x -30d --limit=5 -7d -- --from -30d", "x -30d --limit=5 -7d -- --from -30d"),
            ("x --from -3 -h", "x --from -3 -h"),
        ] {
            let args = joined(line.split(' ').map(OsString::from));
            assert_eq!(args.join(" ".as_ref()), OsString::from(expected), "{line}");
        }
    }

    #[test]
    fn a_day_begins_at_midnight_of_its_zone() {
        let berlin = Days::Of(Zone::parse("Europe/Berlin").unwrap());
        let late = Timestamp::parse("2026-11-28T23:30:00Z").unwrap();
        let day = |days| berlin.after_today(days, late).unwrap();
        assert_eq!(day(0).to_string(), "2026-11-29");
        assert_eq!(berlin.midnight(day(-30)).unwrap().to_string(), "2026-10-29T23:00:00.000Z");
        assert_eq!(berlin.midnight(day(-60)).unwrap().to_string(), "2026-09-29T22:00:00.000Z");
        assert!(Days::Here.after_today(0, late).and_then(|day| Days::Here.midnight(day)).is_some());
        assert_eq!(berlin.after_today(-36_500_000, late), None);
    }

    #[test]
    fn since_is_a_time_a_day_or_how_long_ago() {
        for text in ["2026-05-05T09:30:00Z", "2026-05-05T09:30:00.123456+02:00"] {
            assert_eq!(since(text), Ok(When::Text(text.into())));
        }
        assert_eq!(since("2h"), Ok(When::Ago(Duration::from_secs(7200))));
        assert_eq!(since("-7d"), Ok(When::FromToday(-7)));
        for text in ["", "soon", "2", "-2h", "99999d"] {
            assert!(since(text).is_err_and(|problem| problem.contains("how long ago")), "{text}");
        }
        let zoneless = since("2026-05-05T09:30:00").unwrap_err();
        assert!(zoneless.contains("has no time zone; write 2026-05-05T09:30:00Z"), "{zoneless}");
    }
}
