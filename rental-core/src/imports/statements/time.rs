//! Parses local dates and times of day in the formats of statements.

use crate::value::{Date, Instants, LocalTime, Timestamp, Zone, folded};

/// The order of day, month and year. The format defines it; a row never changes it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Order {
    MonthDayYear,
    DayMonthYear,
    YearMonthDay,
}

/// The form of the dates of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Dates {
    pub(super) order: Order,
    /// Whether six digits are a date.
    pub(super) is_compact: bool,
}

impl Dates {
    pub(super) const MDY: Self = Self { order: Order::MonthDayYear, is_compact: false };
    pub(super) const DMY: Self = Self { order: Order::DayMonthYear, is_compact: false };
    pub(super) const YMD: Self = Self { order: Order::YearMonthDay, is_compact: false };

    /// Parses a form such as `DD.MM.YYYY`, `DD-MMM-YY`, `DDMMYY` or `%d/%m/%Y`: year, month and day, each once.
    pub(super) fn parse(form: &str) -> Option<Self> {
        let letters = form.chars().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_uppercase());
        let mut parts: Vec<char> = letters.map(|c| if c == 'B' { 'M' } else { c }).collect();
        parts.dedup();
        // `MON` and `MMM` are a month.
        let parts: String = parts.into_iter().collect::<String>().replace("MON", "M");
        let order = match parts.as_str() {
            "MDY" => Order::MonthDayYear,
            "DMY" => Order::DayMonthYear,
            "YMD" => Order::YearMonthDay,
            _ => return None,
        };
        Some(Self { order, is_compact: form.chars().all(|c| c.is_ascii_alphabetic() || c == '%') })
    }
}

/// Why a text is no date.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum NoDate {
    Unreadable,
    /// Nothing says whether the day or the month comes first.
    Ambiguous,
    /// Six digits, and the format does not say that they are a date.
    WithoutMarks,
}

/// Valid years of a date. Other years are typing errors, such as `01/02/0204`.
const YEARS: std::ops::RangeInclusive<i32> = 1971..=9998;

/// The beginnings of the names of months in the languages of the countries whose formats are known.
const MONTHS: [&[&str]; 12] = [
    &["jan", "ene", "gen"],
    &["feb", "fév", "fev"],
    &["mar", "mär", "mrz", "maa"],
    &["apr", "avr", "abr"],
    &["may", "mai", "mei", "mag"],
    &["jun", "juin", "giu"],
    &["jul", "juil", "lug"],
    &["aug", "aoû", "aou", "ago"],
    &["sep", "set"],
    &["oct", "okt", "out", "ott"],
    &["nov"],
    &["dec", "dez", "déc", "dic"],
];
/// The beginnings of names that begin as another month of [`MONTHS`] does: November in Finnish, June in Irish.
const OTHER_MONTHS: [&str; 2] = ["marras", "meith"];

/// Parses a date and the time of day behind it, if there is one, as seconds since midnight: `2026-06-02 00:25:00`,
/// `06/02/2026 05:07:00 PM`, `2 Jun 2026`.
pub(super) fn moment(text: &str, dates: Option<Dates>) -> Result<(Date, Option<u32>), NoDate> {
    let text = text.trim();
    let whole = date(text, dates);
    if let Ok(date) = whole {
        return Ok((date, None));
    }
    let ends = text.match_indices(|c: char| c == 'T' || c == ',' || c.is_whitespace());
    for (at, separator) in ends.filter(|(at, _)| *at >= SHORTEST_DATE) {
        let Some(seconds) = time_of_day(&text[at + separator.len()..]) else { continue };
        match date(text[..at].trim_end_matches(','), dates) {
            Ok(date) => return Ok((date, Some(seconds))),
            Err(NoDate::Unreadable) => {}
            Err(why) => return Err(why),
        }
    }
    whole.map(|date| (date, None))
}

/// The length of `1/2/26` and `020626`.
const SHORTEST_DATE: usize = 6;

/// Parses a date: three numbers with one mark between them, a name for the month, or digits alone. A leading number of four digits
/// means `YYYY-MM-DD`. A year of two digits is in this century. Without a form only dates of one meaning are read.
pub(super) fn date(text: &str, dates: Option<Dates>) -> Result<Date, NoDate> {
    let text = text.trim();
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return digits(text, dates);
    }
    let is_mark = |c: char| matches!(c, '/' | '-' | '.' | ',' | '年' | '月' | '日') || c.is_whitespace();
    let Some(mark) = text.chars().find(|c| is_mark(*c)) else { return Err(NoDate::Unreadable) };
    let words: Vec<&str> = text.split(is_mark).filter(|part| !part.is_empty()).collect();
    if let Some((at, month)) = words.iter().enumerate().find_map(|(at, word)| Some((at, month_named(word)?))) {
        let [first, second] =
            *words.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, word)| *word).collect::<Vec<_>>()
        else {
            return Err(NoDate::Unreadable);
        };
        let is_year_first =
            first.len() == 4 || second.len() < 4 && dates.is_some_and(|dates| dates.order == Order::YearMonthDay);
        let (year, day) = if is_year_first { (first, second) } else { (second, first) };
        return of(year, month, number(day)).ok_or(NoDate::Unreadable);
    }
    let parts: Vec<&str> = if mark.is_ascii() { text.split(mark).collect() } else { words };
    let [first, second, third] = parts.as_slice() else { return Err(NoDate::Unreadable) };
    ordered([first, second, third], dates)
}

/// Parses a date of three numbers.
fn ordered([first, second, third]: [&str; 3], dates: Option<Dates>) -> Result<Date, NoDate> {
    let small = |part: &str| if part.len() <= 2 { number(part) } else { None };
    let day_first = || of(third, small(second), small(first));
    let month_first = || of(third, small(first), small(second));
    let year_first = || of(first, small(second), small(third));
    let order = if first.len() == 4 { Some(Order::YearMonthDay) } else { dates.map(|dates| dates.order) };
    let read = match order {
        Some(Order::YearMonthDay) => year_first(),
        Some(Order::DayMonthYear) => day_first(),
        Some(Order::MonthDayYear) => month_first(),
        None if third.len() == 4 => match (day_first(), month_first()) {
            (Some(one), Some(other)) if one != other => return Err(NoDate::Ambiguous),
            (one, other) => one.or(other),
        },
        None => {
            return [day_first(), month_first(), year_first()]
                .iter()
                .flatten()
                .next()
                .map_or(Err(NoDate::Unreadable), |_| Err(NoDate::Ambiguous));
        }
    };
    read.ok_or(NoDate::Unreadable)
}

/// Parses a date of eight digits, or of six where the form says so. Of eight digits only one end can be a year.
fn digits(text: &str, dates: Option<Dates>) -> Result<Date, NoDate> {
    match text.len() {
        8 => ordered([&text[..4], &text[4..6], &text[6..]], dates)
            .or_else(|_| ordered([&text[..2], &text[2..4], &text[4..]], dates)),
        6 if dates.is_some_and(|dates| dates.is_compact) => ordered([&text[..2], &text[2..4], &text[4..]], dates),
        6 => Err(NoDate::WithoutMarks),
        _ => Err(NoDate::Unreadable),
    }
}

/// The number of the month with this name, from 1.
fn month_named(word: &str) -> Option<Option<u32>> {
    let lower = folded(word);
    if OTHER_MONTHS.iter().any(|name| lower.starts_with(name)) {
        return Some(None);
    }
    let at = MONTHS.iter().position(|names| names.iter().any(|name| lower.starts_with(name)))?;
    Some(u32::try_from(at + 1).ok())
}

/// The date of a year of two or four digits, a month and a day.
fn of(year: &str, month: Option<u32>, day: Option<u32>) -> Option<Date> {
    let year = match year.len() {
        4 => number(year)?,
        2 => 2000 + number(year)?,
        _ => return None,
    };
    let date = Date::from_ymd(i32::try_from(year).ok()?, month?, day?)?;
    YEARS.contains(&date.year()).then_some(date)
}

/// Parses a time of day as seconds since midnight: `17:13:32`, `05:13 PM`, `08:43A`, `0752A`, `1743`, `845`, `171332`, `14h30`.
///
/// With A or P the hours are 0 to 12, and `00` with A is the hour after midnight. `00` with P is ambiguous, so `None`.
pub(super) fn time_of_day(text: &str) -> Option<u32> {
    let upper = text.trim().to_ascii_uppercase().replace("A.M.", "AM").replace("P.M.", "PM");
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
    matches!(text.len(), 3 | 4) && number(text).is_some_and(|clock| (100..1300).contains(&clock))
}

/// Hour, minute and second of `7:52`, `07:52:10`, `07:52:10.000`, `7.52`, `7H52`, `0752`, `752`, `075210`.
fn parts_of_time(clock: &str) -> Option<(u32, u32, u32)> {
    if clock.bytes().all(|byte| byte.is_ascii_digit()) {
        let (hour, rest) = clock.split_at_checked(if clock.len() == 3 { 1 } else { 2 })?;
        return match rest.len() {
            2 => Some((number(hour)?, number(rest)?, 0)),
            4 => Some((number(hour)?, number(&rest[..2])?, number(&rest[2..])?)),
            _ => None,
        };
    }
    let marks: &[char] = if clock.contains(':') { &[':'] } else { &['.', 'H'] };
    let parts: Vec<&str> = clock.split(marks).collect();
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
    fn check_date(text: &str, dates: Dates, expected: Option<&str>) {
        assert_eq!(date(text, Some(dates)).ok().map(|date| date.to_string()).as_deref(), expected, "{text}");
    }

    #[test]
    fn the_order_of_a_date_is_a_setting() {
        check_date("3/4/2026", Dates::MDY, Some("2026-03-04"));
        check_date("3/4/2026", Dates::DMY, Some("2026-04-03"));
        check_date("13/4/2026", Dates::MDY, None);
        check_date("2026-03-04", Dates::DMY, Some("2026-03-04"));
        check_date("04/06/25", Dates::MDY, Some("2025-04-06"));
        check_date("26.03.04", Dates::YMD, Some("2026-03-04"));
    }

    #[test]
    fn a_date_with_the_name_of_its_month_or_without_marks_is_read_where_it_has_one_meaning() {
        for text in [
            "02 Jun 2026",
            "2-JUN-2026",
            "Jun 2, 2026",
            "2. Juni 2026",
            "2 juin 2026",
            "20260602",
            "2026年6月2日",
            "2026/06/02",
        ] {
            assert_eq!(date(text, None).map(|date| date.to_string()).as_deref(), Ok("2026-06-02"), "{text}");
        }
        for november_or_june in ["2. marraskuuta 2026", "2 Meitheamh 2026"] {
            assert_eq!(date(november_or_june, None).ok(), None, "{november_or_june}");
        }
        for (text, form, expected) in [
            ("020626", "DDMMYY", "2026-06-02"),
            ("020626", "%m%d%y", "2026-02-06"),
            ("260602", "YYMMDD", "2026-06-02"),
            ("02062026", "DDMMYYYY", "2026-06-02"),
            ("02-Jun-26", "DD-MON-YY", "2026-06-02"),
            ("26-Jun-02", "YY-MMM-DD", "2026-06-02"),
            ("2.6.2026", "dd.mm.yyyy", "2026-06-02"),
        ] {
            let dates = Dates::parse(form).unwrap();
            assert_eq!(date(text, Some(dates)).map(|date| date.to_string()).as_deref(), Ok(expected), "{text} {form}");
        }
        for form in ["", "DDMM", "DD.MM.YYYY HH:MM", "YYYY", "DMD"] {
            assert_eq!(Dates::parse(form), None, "{form}");
        }
    }

    #[test]
    fn a_date_of_two_meanings_is_none() {
        for text in ["02/06/2026", "2-6-2026", "02.06.26", "02062026"] {
            assert_eq!(date(text, None), Err(NoDate::Ambiguous), "{text}");
        }
        assert_eq!(date("020626", Some(Dates::MDY)), Err(NoDate::WithoutMarks));
        for (text, expected) in
            [("25/06/2026", "2026-06-25"), ("06/25/2026", "2026-06-25"), ("06/06/2026", "2026-06-06")]
        {
            assert_eq!(date(text, None).map(|date| date.to_string()).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_time_of_day_can_follow_a_date() {
        for (text, seconds) in [
            ("2026-06-02 00:25:00", 1_500),
            ("06/02/2026 05:07:00 PM", 61_620),
            ("2026-06-02T17:07", 61_620),
            ("2 Jun 2026, 17h07", 61_620),
            ("20260602 1707", 61_620),
            ("2026-06-02T00:00:00.000", 0),
        ] {
            let expected = Date::parse("2026-06-02").map(|date| (date, Some(seconds)));
            assert_eq!(moment(text, Some(Dates::MDY)).ok(), expected, "{text}");
        }
        assert_eq!(moment("02/06/2026 05:07:00 PM", None), Err(NoDate::Ambiguous));
        assert_eq!(moment("6/2/2026 25:00", Some(Dates::MDY)), Err(NoDate::Unreadable));
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
            check_date(text, Dates::MDY, None);
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
            ("752A", 7, 52, 0),
            ("02:33P", 14, 33, 0),
            ("12:05A", 0, 5, 0),
            ("0015A", 0, 15, 0),
            ("12:00 PM", 12, 0, 0),
            ("23:59:59", 23, 59, 59),
            ("17:13:32.000", 17, 13, 32),
            ("1743", 17, 43, 0),
            ("7:52", 7, 52, 0),
            ("845", 8, 45, 0),
            ("171332", 17, 13, 32),
            ("14h30", 14, 30, 0),
            ("17.13.32", 17, 13, 32),
            ("5:07 p.m.", 17, 7, 0),
        ] {
            assert_eq!(time_of_day(text), Some(hour * 3600 + minute * 60 + second), "{text}");
        }
        for text in ["", "-", "24:00", "13:00 PM", "00:15P", "12:60", "1:2", "AM", "1:00:61", "x", "0７52"] {
            assert_eq!(time_of_day(text), None, "{text}");
        }
    }

    #[test]
    fn four_digits_without_a_or_p_can_be_in_the_morning_or_in_the_evening() {
        for text in ["0843", " 0100 ", "1259", "843"] {
            assert!(lost_its_half(text), "{text}");
        }
        for text in ["0843A", "0015", "1300", "1743", "08:43", "", "-843"] {
            assert!(!lost_its_half(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_them_panic(text in "[0-9/.:T APM-]{0,24}|\\PC{0,12}") {
            let _ = time_of_day(&text).map(|seconds| assert!(seconds < 86_400));
            for dates in [None, Some(Dates::MDY), Some(Dates::DMY), Some(Dates::YMD), Dates::parse("DDMMYY")] {
                let _ = moment(&text, dates);
            }
        }
    }
}
