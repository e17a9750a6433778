//! Parses local dates and times of day in the formats of statements.

use crate::value::{Date, Instants, LocalTime, Timestamp, Zone};

/// The order of day, month and year. The format defines it; a row never changes it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Order {
    MonthDayYear,
    DayMonthYear,
    YearMonthDay,
}

/// Valid years of a date. Other years are typing errors, such as `01/02/0204`.
const YEARS: std::ops::RangeInclusive<i32> = 1971..=9998;

/// Parses a date of three numbers separated by `/`, `-` or `.`. A leading number of four digits means `YYYY-MM-DD`. A
/// year of two digits is in this century. A time of midnight after the date (`2026-06-02T00:00:00.000`) is ignored.
pub(super) fn date(text: &str, order: Order) -> Option<Date> {
    let text = text.trim();
    let day =
        text.split_once(['T', ' ']).map_or(Some(text), |(day, rest)| (time_of_day(rest) == Some(0)).then_some(day))?;
    let separator = day.chars().find(|c| "/-.".contains(*c))?;
    let parts: Vec<&str> = day.split(separator).collect();
    let [first, second, third] = parts.as_slice() else { return None };
    let order = if first.len() == 4 { Order::YearMonthDay } else { order };
    let (year, month, day) = match order {
        Order::YearMonthDay => (first, second, third),
        Order::MonthDayYear => (third, first, second),
        Order::DayMonthYear => (third, second, first),
    };
    let year = match year.len() {
        4 => number(year)?,
        2 => 2000 + number(year)?,
        _ => return None,
    };
    let small = |part: &str| if part.len() <= 2 { number(part) } else { None };
    let date = Date::from_ymd(i32::try_from(year).ok()?, small(month)?, small(day)?)?;
    YEARS.contains(&date.year()).then_some(date)
}

/// Parses a time of day as seconds since midnight: `17:13:32`, `05:13 PM`, `08:43A`, `0752A`, `1743`.
///
/// With A or P the hours are 0 to 12, and `00` with A is the hour after midnight. `00` with P is ambiguous, so `None`.
pub(super) fn time_of_day(text: &str) -> Option<u32> {
    let upper = text.trim().to_ascii_uppercase();
    let bare = upper.strip_suffix('M').filter(|rest| rest.ends_with(['A', 'P'])).unwrap_or(&upper);
    let (clock, half) = match bare.strip_suffix(['A', 'P']) {
        Some(clock) => (clock.trim_end(), bare.chars().last()),
        None => (bare, None),
    };
    let (hour, minute, second) = parts_of_time(clock)?;
    let hour = match (half, hour) {
        (None, 0..=23) => hour,
        (Some('A'), 0..=11) | (Some('P'), 12) => hour,
        (Some('A'), 12) => 0,
        (Some('P'), 1..=11) => hour + 12,
        _ => return None,
    };
    (minute < 60 && second < 60).then_some(hour * 3600 + minute * 60 + second)
}

/// Whether a time of New York's lists lost its A or P: of `0843` nobody knows whether it is in the morning or in the evening. `0015` and
/// `1743` are times of a clock with 24 hours.
pub(super) fn lost_its_half(text: &str) -> bool {
    let text = text.trim();
    text.len() == 4 && number(text).is_some_and(|clock| (100..1300).contains(&clock))
}

/// Hour, minute and second of `7:52`, `07:52:10`, `07:52:10.000`, `0752`.
fn parts_of_time(clock: &str) -> Option<(u32, u32, u32)> {
    if clock.len() == 4 && !clock.contains(':') {
        return Some((number(clock.get(..2)?)?, number(clock.get(2..)?)?, 0));
    }
    let parts: Vec<&str> = clock.split(':').collect();
    let pair = |part: &str| if part.len() == 2 { number(part) } else { None };
    let hour = |part: &str| if part.len() <= 2 { number(part) } else { None };
    match parts.as_slice() {
        [h, m] => Some((hour(h)?, pair(m)?, 0)),
        [h, m, s] => {
            let (s, fraction) = s.split_once('.').unwrap_or((s, "0"));
            number(fraction)?;
            Some((hour(h)?, pair(m)?, pair(s)?))
        }
        _ => None,
    }
}

/// Parses 1 to 9 digits.
fn number(text: &str) -> Option<u32> {
    let fine = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if fine { text.parse().ok() } else { None }
}

/// The instant of a local time. A local time that occurred twice gets the earlier instant.
pub(super) fn instant(zone: Zone, date: Date, seconds: u32) -> Option<Timestamp> {
    Some(match zone.instants(LocalTime::new(date, seconds)?) {
        Instants::One(at) | Instants::Two(at, _) | Instants::Gap(at) => at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check_date(text: &str, order: Order, expected: Option<&str>) {
        assert_eq!(date(text, order).map(|date| date.to_string()).as_deref(), expected, "{text}");
    }

    #[test]
    fn the_order_of_a_date_is_a_setting() {
        check_date("3/4/2026", Order::MonthDayYear, Some("2026-03-04"));
        check_date("3/4/2026", Order::DayMonthYear, Some("2026-04-03"));
        check_date("13/4/2026", Order::MonthDayYear, None);
        check_date("2026-03-04", Order::DayMonthYear, Some("2026-03-04"));
        check_date("04/06/25", Order::MonthDayYear, Some("2025-04-06"));
        check_date("26.03.04", Order::YearMonthDay, Some("2026-03-04"));
        check_date("2026-06-02T00:00:00.000", Order::MonthDayYear, Some("2026-06-02"));
    }

    #[test]
    fn garbage_is_no_date() {
        for text in [
            "51/71/2004",
            "41/17/2011",
            "29/06/2014",
            "",
            "-",
            "1/2",
            "1/2/3/4",
            "1/2/206",
            "01/02/0204",
            "1-2/2026",
            "006/1/2026",
            "+1/2/2026",
            "6/2/2026 05:13 PM",
            "10000-01-01",
        ] {
            check_date(text, Order::MonthDayYear, None);
        }
    }

    #[test]
    fn times_of_day_have_many_spellings() {
        for (text, hour, minute, second) in [
            ("05:13:32 PM", 17, 13, 32),
            ("5:13 pm", 17, 13, 0),
            ("3:16:01 PM", 15, 16, 1),
            ("08:43A", 8, 43, 0),
            ("0752A", 7, 52, 0),
            ("02:33P", 14, 33, 0),
            ("12:05A", 0, 5, 0),
            ("0015A", 0, 15, 0),
            ("12:00 PM", 12, 0, 0),
            ("23:59:59", 23, 59, 59),
            ("17:13:32.000", 17, 13, 32),
            ("1743", 17, 43, 0),
            ("7:52", 7, 52, 0),
        ] {
            assert_eq!(time_of_day(text), Some(hour * 3600 + minute * 60 + second), "{text}");
        }
        for text in ["", "-", "24:00", "13:00 PM", "00:15P", "12:60", "1:2", "752A", "AM", "1:00:61", "x", "0７52"] {
            assert_eq!(time_of_day(text), None, "{text}");
        }
    }

    #[test]
    fn four_digits_without_a_or_p_can_be_in_the_morning_or_in_the_evening() {
        for text in ["0843", " 0100 ", "1259"] {
            assert!(lost_its_half(text), "{text}");
        }
        for text in ["0843A", "0015", "1300", "1743", "08:43", "843", "", "-843"] {
            assert!(!lost_its_half(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_them_panic(text in "[0-9/.:T APM-]{0,24}|\\PC{0,12}") {
            let _ = time_of_day(&text).map(|seconds| assert!(seconds < 86_400));
            for order in [Order::MonthDayYear, Order::DayMonthYear, Order::YearMonthDay] {
                let _ = date(&text, order);
            }
        }
    }
}
