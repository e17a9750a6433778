//! Points in time: milliseconds, written as RFC 3339 in UTC.

use super::written::read_text;
use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds since 1970-01-01T00:00:00Z, from year 1970 to 9999. Written `2026-11-21T19:13:32.000Z`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Timestamp(i64);

/// The last millisecond of year 9999: RFC 3339 has no later one.
const LAST: i64 = 253_402_300_799_999;

impl Timestamp {
    /// The first supported millisecond: the beginning of year 1970.
    pub const FIRST: Self = Self(0);
    /// The last millisecond of year 9999.
    pub const LAST: Self = Self(LAST);

    /// The time `millis` milliseconds after the epoch, limited to the years 1970 to 9999.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(0, LAST))
    }

    /// Milliseconds since the epoch, 0 to 253402300799999.
    #[must_use]
    pub fn millis(self) -> u64 {
        self.0.unsigned_abs()
    }

    /// Whole seconds since the epoch.
    #[must_use]
    pub fn seconds(self) -> u64 {
        self.millis() / 1000
    }

    /// The day in UTC, as [`Date::day_number`](crate::value::Date::day_number) counts days.
    #[must_use]
    pub fn day_number(self) -> u32 {
        // 1970-01-01 is day 719162 since 0001-01-01.
        719_162 + u32::try_from(self.seconds() / 86_400).unwrap_or(0)
    }

    /// This time plus `millis` milliseconds, limited to the years 1970 to 9999.
    #[must_use]
    pub fn plus_millis(self, millis: i64) -> Self {
        Self::from_millis(self.0.saturating_add(millis))
    }

    /// Parses RFC 3339 with any offset; `None` for other text and for times outside the years 1970 to 9999.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let millis = millis_of(text)?;
        (0..=LAST).contains(&millis).then_some(Self(millis))
    }

    /// Parses RFC 3339 with any offset, as the bound of a search: rounded up to a millisecond and limited to the years
    /// 1970 to 9999.
    #[must_use]
    pub fn parse_bound(text: &str) -> Option<Self> {
        let millis = millis_of(text)?;
        let exact = DateTime::parse_from_rfc3339(text).ok()?.timestamp_subsec_nanos() % 1_000_000 == 0;
        Some(Self::from_millis(if exact { millis } else { millis + 1 }))
    }

    /// Why a text is no time, for a message after the name of a field: its zone is missing, or it has another form.
    #[must_use]
    pub fn rule(text: &str) -> String {
        Self::no_zone(text).unwrap_or_else(|| "must be an RFC 3339 time, such as 2026-05-05T09:30:00Z".into())
    }

    /// Says of a time without a zone that the zone is missing, with the same time in UTC as an example; `None` for other text.
    #[must_use]
    pub fn no_zone(text: &str) -> Option<String> {
        let text = text.trim().replacen(' ', "T", 1);
        let in_utc = ["Z", ":00Z"].map(|rest| format!("{text}{rest}"));
        let in_utc = in_utc.into_iter().find(|time| millis_of(time).is_some())?;
        Some(format!("has no time zone; write {in_utc} if it is UTC, or an offset such as -04:00 instead of Z"))
    }
}

fn millis_of(text: &str) -> Option<i64> {
    if let Some(millis) = text.as_bytes().try_into().ok().and_then(millis_of_own) {
        return Some(millis);
    }
    // The longest spelling has nanoseconds and an offset.
    if text.len() > 40 { None } else { Some(DateTime::parse_from_rfc3339(text).ok()?.timestamp_millis()) }
}

/// The milliseconds of a time as this program writes it, `2026-11-21T19:13:32.000Z`; `None` for all that needs a second look, such
/// as a leap second. Each record has several times, so it takes a part of the time of a parser for all spellings.
fn millis_of_own(text: &[u8; 24]) -> Option<i64> {
    const SHAPE: &[u8; 24] = b"0000-00-00T00:00:00.000Z";
    let fits = |(byte, shape): (&u8, &u8)| if *shape == b'0' { byte.is_ascii_digit() } else { byte == shape };
    if !text.iter().zip(SHAPE).all(fits) {
        return None;
    }
    let number =
        |from: usize, to: usize| text[from..to].iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
    let (hour, minute, second) = (number(11, 13), number(14, 16), number(17, 19));
    // Days that not every month has are left to the other parser.
    if year < 1970 || !(1..=12).contains(&month) || !(1..=28).contains(&day) || hour > 23 || minute > 59 || second > 59
    {
        return None;
    }
    // Years begin in March here, so that a leap day is the last day of one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 719_469;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + number(20, 23))
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let time = DateTime::<Utc>::from_timestamp_millis(self.0).unwrap_or_default();
        f.write_str(&time.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_text(deserializer, Self::parse, "not an RFC 3339 time")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn of_a_time_without_a_zone_the_rule_shows_the_same_time_in_utc() {
        for (text, shown) in [
            ("2026-01-01T10:00:00", "write 2026-01-01T10:00:00Z if"),
            ("2026-01-01 10:00:00.5", "write 2026-01-01T10:00:00.5Z if"),
            ("2026-01-01T10:00", "write 2026-01-01T10:00:00Z if"),
        ] {
            let rule = Timestamp::rule(text);
            assert!(rule.starts_with("has no time zone; ") && rule.contains(shown), "{text}: {rule}");
        }
        for text in [
            "",
            "Z",
            "now",
            "2026-01-01",
            "2026-13-01T10:00:00",
            "2026-01-01T25:00:00",
            "10:00:00",
            "2026-01-01T10:00:00+2",
        ] {
            let rule = Timestamp::rule(text);
            assert!(rule.contains("RFC 3339"), "{text}: {rule}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(millis in 0..=LAST) {
            let written = Timestamp::from_millis(millis);
            prop_assert_eq!(Timestamp::parse(&written.to_string()), Some(written));
        }

        #[test]
        fn each_text_of_the_written_shape_is_read_as_any_parser_reads_it(
            text in "(19[67][0-9]|[0-9]{4})-(0[0-9]|1[0-3])-([0-2][0-9]|3[0-2])T([01][0-9]|2[0-5]):[0-6][0-9]:[0-6][0-9]\\.[0-9]{3}[Zz]",
        ) {
            let expected = DateTime::parse_from_rfc3339(&text).ok().map(|time| time.timestamp_millis());
            prop_assert_eq!(millis_of(&text), expected);
            let expected = expected.filter(|millis| (0..=LAST).contains(millis)).map(Timestamp);
            prop_assert_eq!(Timestamp::parse(&text), expected);
        }
    }

    #[test]
    fn times_are_written_in_utc_with_milliseconds() {
        assert_eq!(Timestamp::from_millis(1_795_288_412_007).to_string(), "2026-11-21T19:13:32.007Z");
        let parsed = Timestamp::parse("2026-11-21T20:13:32.007+01:00");
        assert_eq!(parsed, Some(Timestamp::from_millis(1_795_288_412_007)));
    }

    #[test]
    fn times_outside_the_supported_years_are_refused() {
        for text in ["1969-12-31T23:59:59Z", "2026-11-21", "2026-13-01T00:00:00Z", "", "now"] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }
}
