//! Dates and amounts as people write them in four languages (Unicode CLDR, long dates and currency formats).

use rental_core::{
    resources::organization::InvoiceLanguage,
    value::{Currency, Date, Money, SignedMoney},
};

const NO_BREAK_SPACE: char = '\u{a0}';
const NARROW_NO_BREAK_SPACE: char = '\u{202f}';

const ENGLISH: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const SPANISH: [&str; 12] = [
    "enero",
    "febrero",
    "marzo",
    "abril",
    "mayo",
    "junio",
    "julio",
    "agosto",
    "septiembre",
    "octubre",
    "noviembre",
    "diciembre",
];
const FRENCH: [&str; 12] = [
    "janvier",
    "février",
    "mars",
    "avril",
    "mai",
    "juin",
    "juillet",
    "août",
    "septembre",
    "octobre",
    "novembre",
    "décembre",
];
const GERMAN: [&str; 12] = [
    "Januar",
    "Februar",
    "März",
    "April",
    "Mai",
    "Juni",
    "Juli",
    "August",
    "September",
    "Oktober",
    "November",
    "Dezember",
];

/// A date with the name of its month.
pub(super) fn date(date: Date, language: InvoiceLanguage) -> String {
    let plain = date.to_string();
    let mut parts = plain.split('-').map(|part| part.parse::<usize>().unwrap_or_default());
    let (Some(year), Some(month), Some(day)) = (parts.next(), parts.next(), parts.next()) else { return plain };
    let named = |names: [&'static str; 12]| names.get(month.wrapping_sub(1)).copied().unwrap_or_default();
    match language {
        InvoiceLanguage::English => format!("{} {day}, {year}", named(ENGLISH)),
        InvoiceLanguage::Spanish => format!("{day} de {} de {year}", named(SPANISH)),
        InvoiceLanguage::French => {
            let ordinal = if day == 1 { "er" } else { "" };
            format!("{day}{ordinal} {} {year}", named(FRENCH))
        }
        InvoiceLanguage::German => format!("{day}. {} {year}", named(GERMAN)),
    }
}

/// An amount without its currency.
pub(super) fn number(amount: Money, digits: u32, language: InvoiceLanguage) -> String {
    let plain = amount.with_digits(digits);
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let (group, point) = match language {
        InvoiceLanguage::English => (',', '.'),
        InvoiceLanguage::Spanish | InvoiceLanguage::German => ('.', ','),
        InvoiceLanguage::French => (NARROW_NO_BREAK_SPACE, ','),
    };
    // Spanish does not group four digits.
    let grouped = whole.len() > if language == InvoiceLanguage::Spanish { 4 } else { 3 };
    let mut text = String::with_capacity(plain.len() + 8);
    for (at, digit) in whole.chars().enumerate() {
        if grouped && at > 0 && (whole.len() - at).is_multiple_of(3) {
            text.push(group);
        }
        text.push(digit);
    }
    if !fraction.is_empty() {
        text.push(point);
        text.push_str(fraction);
    }
    text
}

/// An amount with a sign, without its currency.
pub(super) fn signed_number(amount: SignedMoney, digits: u32, language: InvoiceLanguage) -> String {
    let below = amount.below_zero();
    if below.is_zero() {
        return number(amount.above_zero(), digits, language);
    }
    format!("-{}", number(below, digits, language))
}

/// An amount with its currency: the sign of the euro and the pound, and in English of the dollar of the United States; the
/// code of all others, because many currencies share a sign.
pub(super) fn money(amount: Money, currency: Currency, language: InvoiceLanguage) -> String {
    let (number, code) = (number(amount, currency.digits(), language), currency.to_string());
    let sign = match (code.as_str(), language) {
        ("EUR", _) => Some('€'),
        ("GBP", _) => Some('£'),
        ("USD", InvoiceLanguage::English) => Some('$'),
        _ => None,
    };
    match (language, sign) {
        (InvoiceLanguage::English, Some(sign)) => format!("{sign}{number}"),
        (InvoiceLanguage::English, None) => format!("{code}{NO_BREAK_SPACE}{number}"),
        (_, Some(sign)) => format!("{number}{NO_BREAK_SPACE}{sign}"),
        (_, None) => format!("{number}{NO_BREAK_SPACE}{code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use InvoiceLanguage::{English, French, German, Spanish};

    #[test]
    fn dates_are_written_as_in_their_language() {
        let check = |text: &str, expected: [&str; 4]| {
            let day = Date::parse(text).unwrap();
            assert_eq!([English, Spanish, French, German].map(|language| date(day, language)), expected);
        };
        check("2026-03-01", ["March 1, 2026", "1 de marzo de 2026", "1er mars 2026", "1. März 2026"]);
        check("2026-12-31", ["December 31, 2026", "31 de diciembre de 2026", "31 décembre 2026", "31. Dezember 2026"]);
    }

    #[test]
    fn amounts_are_written_as_in_their_language() {
        let check = |(amount, currency): (&str, &str), expected: [&str; 4]| {
            let currency = Currency::parse(currency).unwrap();
            let amount = Money::parse(amount, currency.digits()).unwrap();
            let found = [English, Spanish, French, German].map(|language| money(amount, currency, language));
            assert_eq!(found.map(|text| text.replace('\u{a0}', " ").replace('\u{202f}', "_")), expected);
        };
        check(("1234567.5", "EUR"), ["€1,234,567.50", "1.234.567,50 €", "1_234_567,50 €", "1.234.567,50 €"]);
        check(("1234.5", "USD"), ["$1,234.50", "1234,50 USD", "1_234,50 USD", "1.234,50 USD"]);
        check(("100", "GBP"), ["£100.00", "100,00 £", "100,00 £", "100,00 £"]);
        check(("12345", "JPY"), ["JPY 12,345", "12.345 JPY", "12_345 JPY", "12.345 JPY"]);
        check(("0.5", "KWD"), ["KWD 0.500", "0,500 KWD", "0,500 KWD", "0,500 KWD"]);
    }
}
