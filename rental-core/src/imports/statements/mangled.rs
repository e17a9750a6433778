//! Numbers of transactions that a spreadsheet took for another value: a date, a time, a truth value, a percentage, or a number with a
//! fraction.

use std::ops::RangeInclusive;

/// Digits from which on a number with a fraction is the number of a transaction that something was computed with. Shorter ones, such
/// as `12.5`, can be numbers that an agency gave.
const LONG: usize = 7;
const DAYS: RangeInclusive<u32> = 1..=31;
const YEARS: RangeInclusive<u32> = 1900..=2199;

/// Whether a number became a date (`6/2/2026`, `Jun-26`), a time (`12:30`), a truth value (`TRUE`), a percentage (`612%`) or a
/// fraction (`61231234567.5`).
pub(super) fn is_other_value(text: &str) -> bool {
    is_truth_value(text) || is_percentage(text) || is_fraction(text) || is_time(text) || is_date(text)
}

fn is_percentage(text: &str) -> bool {
    let number = text.strip_suffix('%').map(str::trim_end);
    number.is_some_and(|number| are_digits(&number.replace(['.', ',', '-', '+'], "")))
}

/// `12:30`, `12:30:00` or `9:05 PM`.
fn is_time(text: &str) -> bool {
    let upper = text.to_ascii_uppercase();
    let digits = upper.strip_suffix("AM").or_else(|| upper.strip_suffix("PM")).unwrap_or(&upper).trim_end();
    let parts: Vec<&str> = digits.split(':').collect();
    matches!(parts.len(), 2..=3)
        && is_small(parts[0])
        && parts[1..].iter().all(|part| part.len() == 2 && is_small(part))
}

/// In the languages of the countries whose formats are known.
fn is_truth_value(text: &str) -> bool {
    ["true", "false", "verdadero", "falso", "vrai", "faux", "wahr", "falsch"].contains(&text.to_lowercase().as_str())
}

fn is_fraction(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let parts = text.split_once(['.', ',']);
    parts.is_some_and(|(whole, fraction)| whole.len() >= LONG && are_digits(whole) && are_digits(fraction))
}

/// A date, also with a time behind it.
fn is_date(text: &str) -> bool {
    let (day, time) = text.split_once(' ').unwrap_or((text, ""));
    let of_time = |c: char| c.is_ascii_digit() || ": AaPpMm.".contains(c);
    let is_time = time.is_empty()
        || time.starts_with(|c: char| c.is_ascii_digit()) && time.contains(':') && time.chars().all(of_time);
    let separator = day.chars().find(|c| !c.is_ascii_alphanumeric());
    let parts: Vec<&str> = separator.map(|separator| day.split(separator).collect()).unwrap_or_default();
    is_time
        && match (separator, parts.as_slice()) {
            (Some('/'), [day, month]) => are_of(day, month),
            (Some('/' | '-' | '.'), [first, second, third]) => {
                let ends_with_year =
                    are_of(first, second) && (is_year(third) || separator == Some('/') && is_short_year(third));
                ends_with_year || is_year(first) && are_of(second, third) || is_named(first, second, third)
            }
            (Some('-'), [first, second]) => {
                is_month(first) && (is_small(second) || is_year(second)) || is_small(first) && is_month(second)
            }
            _ => false,
        }
}

/// `2-Jun-26` or `Jun-2-2026`.
fn is_named(first: &str, second: &str, third: &str) -> bool {
    let is_day_and_month = is_small(first) && is_month(second) || is_month(first) && is_small(second);
    is_day_and_month && (is_year(third) || is_short_year(third))
}

/// Whether these are a day and a month, in any order.
fn are_of(one: &str, other: &str) -> bool {
    let months = 1..=12;
    let (one, other) = (small(one), small(other));
    one.zip(other).is_some_and(|(one, other)| {
        DAYS.contains(&one) && DAYS.contains(&other) && (months.contains(&one) || months.contains(&other))
    })
}

fn is_small(text: &str) -> bool {
    small(text).is_some()
}

/// A number of one or two digits.
fn small(text: &str) -> Option<u32> {
    if text.len() <= 2 && are_digits(text) { text.parse().ok() } else { None }
}

fn is_short_year(text: &str) -> bool {
    text.len() == 2 && are_digits(text)
}

fn is_year(text: &str) -> bool {
    text.len() == 4 && are_digits(text) && text.parse().is_ok_and(|year| YEARS.contains(&year))
}

/// Whether a text is the name of a month in English, in three letters or in full.
fn is_month(text: &str) -> bool {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let lower = text.to_ascii_lowercase();
    MONTHS.iter().any(|month| lower == *month || month.get(..3) == Some(&lower))
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_a_time_a_truth_value_a_percentage_and_a_fraction_are_no_numbers() {
        for text in [
            "TRUE",
            "False",
            "falso",
            "6/2/2026",
            "6/2/26",
            "06/02",
            "13/6/2026",
            "2026-06-02",
            "2026/6/2",
            "2.6.2026",
            "6-2-2026",
            "Jun-26",
            "2-Jun",
            "2-Jun-26",
            "June-2026",
            "Jun/2/2026",
            "6/2/2026 0:00",
            "6/2/2026 12:00:00 AM",
            "2026-06-02 10:00",
            "61231234567.5",
            "-61231234567.25",
            "61231234567,5",
            "612%",
            "6,123.00 %",
            "12:30",
            "0:00:00",
            "9:05 pm",
        ] {
            assert!(is_other_value(text), "{text}");
        }
        for text in [
            "61231234567",
            "1234-567",
            "12-3456",
            "1,23",
            "12.5",
            "123456.5",
            "12-34-5678",
            "2026-123",
            "6-2-26",
            "13/14/2026",
            "Jun26",
            "JUN-1234",
            "MAX-26",
            "TRUE1",
            "T/1/2026",
            "1/2/3/4",
            "6/2/2026X",
            "2026.0602.77",
            "6/2/2026 A12",
            "99/12345",
            "12:345",
            "1:2:3:4",
            "A:12",
            "%",
            "12%A",
            "",
        ] {
            assert!(!is_other_value(text), "{text}");
        }
    }
}
