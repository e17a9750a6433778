//! Plain calendar dates, without a time or a zone.

use super::written::read_text;
use chrono::{Datelike, NaiveDate};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A day from 0001-01-01 to 9999-12-31, written `YYYY-MM-DD` (spec, Resources).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Date(NaiveDate);

impl Date {
    /// The last supported day: 9999-12-31.
    pub const LAST: Self = Self(match NaiveDate::from_ymd_opt(9999, 12, 31) {
        Some(date) => date,
        None => NaiveDate::MAX,
    });

    /// Parses exactly `YYYY-MM-DD`; `None` for any other spelling and for days that do not exist.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let shape = bytes.len() == 10
            && bytes.iter().enumerate().all(|(at, byte)| match at {
                4 | 7 => *byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        if !shape {
            return None;
        }
        Self::from_ymd(text[..4].parse().ok()?, text[5..7].parse().ok()?, text[8..].parse().ok()?)
    }

    /// The day with this year (1 to 9999), month and day; `None` when it does not exist.
    #[must_use]
    pub fn from_ymd(year: i32, month: u32, day: u32) -> Option<Self> {
        Self::from_calendar(NaiveDate::from_ymd_opt(year, month, day)?)
    }

    /// The year, 1 to 9999.
    #[must_use]
    pub fn year(self) -> i32 {
        self.0.year()
    }

    /// The year, the month (1 to 12) and the day of the month.
    #[must_use]
    pub fn ymd(self) -> (i32, u32, u32) {
        (self.0.year(), self.0.month(), self.0.day())
    }

    pub(super) fn from_calendar(date: NaiveDate) -> Option<Self> {
        (1..=9999).contains(&date.year()).then_some(Self(date))
    }

    pub(super) fn calendar(self) -> NaiveDate {
        self.0
    }

    /// Nights from this day to `end`; negative when `end` is earlier.
    #[must_use]
    pub fn nights_until(self, end: Self) -> i64 {
        end.0.signed_duration_since(self.0).num_days()
    }

    /// The date this many days later; `None` after the last one.
    #[must_use]
    pub fn plus_days(self, days: u32) -> Option<Self> {
        Self::from_day_number(self.day_number().checked_add(days)?)
    }

    /// Days since 0001-01-01, 0 to 3652058.
    #[must_use]
    pub fn day_number(self) -> u32 {
        u32::try_from(self.0.num_days_from_ce() - 1).unwrap_or(0)
    }

    /// The day with this number (see [`Date::day_number`]); `None` after year 9999.
    #[must_use]
    pub fn from_day_number(days: u32) -> Option<Self> {
        Self::from_calendar(NaiveDate::from_num_days_from_ce_opt(i32::try_from(days).ok()?.checked_add(1)?)?)
    }
}

impl std::fmt::Display for Date {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.0.year(), self.0.month(), self.0.day())
    }
}

impl Serialize for Date {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Date {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_text(deserializer, Self::parse, "not a calendar date")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_days_that_exist_are_dates() {
        for text in
            ["2026-02-29", "2026-00-10", "2026-1-01", "2026-01-01T00:00:00Z", "+026-01-01", "0000-01-01", "２026-01-01"]
        {
            assert_eq!(Date::parse(text), None, "{text}");
        }
        for text in ["2024-02-29", "0001-01-01", "9999-12-31"] {
            assert_eq!(Date::parse(text).map(|date| date.to_string()).as_deref(), Some(text));
        }
    }

    proptest! {
        #[test]
        fn day_numbers_keep_the_order_and_come_back(a in 0u32..3_652_059, b in 0u32..3_652_059) {
            let (left, right) = (Date::from_day_number(a).unwrap(), Date::from_day_number(b).unwrap());
            prop_assert_eq!(left.day_number(), a);
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
            prop_assert_eq!(left.nights_until(right), i64::from(b) - i64::from(a));
            prop_assert_eq!(Date::parse(&left.to_string()), Some(left));
        }
    }
}
