//! Points in time: milliseconds, written as RFC 3339 in UTC.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

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
}

fn millis_of(text: &str) -> Option<i64> {
    // The longest spelling has nanoseconds and an offset.
    if text.len() > 40 { None } else { Some(DateTime::parse_from_rfc3339(text).ok()?.timestamp_millis()) }
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
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("not an RFC 3339 time"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
