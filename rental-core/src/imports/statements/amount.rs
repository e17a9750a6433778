//! Amounts as statements print them: `$1,234.56`, `-$6.94`, `$-2.01`, `($9.11)`, `USD 6.94`, `US$6.94`, `€1.234,56`.

use crate::{
    request::body::shorten,
    value::{Currency, Money},
};
use std::borrow::Cow;

/// An amount with its sign. The format defines the meaning of the sign.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Signed {
    pub(super) negative: bool,
    pub(super) money: Money,
}

impl Signed {
    /// The sum of two amounts; `None` when it is more than any amount.
    pub(super) fn plus(self, other: Self) -> Option<Self> {
        if self.negative == other.negative {
            return Some(Self { money: self.money.plus(other.money)?, ..self });
        }
        let rest = self.money.minus(other.money).map(|money| Self { money, ..self });
        rest.or_else(|| other.money.minus(self.money).map(|money| Self { money, ..other }))
    }
}

/// Signs of currencies before or behind an amount.
const SIGNS: [char; 12] = ['$', '€', '£', '¥', '₹', '₩', '₪', '₫', '₱', '₺', '₴', '฿'];

/// Parses an amount with at most as many decimals as the currency has. The sign or code of another currency is an error.
///
/// Decimals follow a point, and commas are between thousands, in the currencies of countries that write it so. In all others either
/// mark can be either, and an amount that can have two meanings is an error.
///
/// A minus may be before or after the currency sign, or behind the amount. Parentheses mean a minus. An amount with both is an error.
pub(super) fn parse(text: &str, currency: Currency) -> Result<Signed, String> {
    let unreadable = || {
        let examples = match (currency.digits(), currency.has_decimal_point()) {
            (0, _) => "694 or -694",
            (_, true) if currency.has_sign('$') => "6.94, -$6.94 or ($1,234.56)",
            (_, true) => "6.94, -6.94 or (1,234.56)",
            (_, false) => "6.94, -6,94 or 1.234,56",
        };
        format!("is `{}`, which is no amount such as {examples}", shorten(text))
    };
    let plain = plain(text.trim());
    let without_code = without_code(&plain, currency)?;
    let with_sign_first = minus_first(sign_first(&without_code));
    let trimmed = with_sign_first.as_ref();
    let inner = trimmed.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let (mut rest, mut signs) = (inner.unwrap_or(trimmed), usize::from(inner.is_some()));
    let mut currencies = 0;
    while let Some(first) = rest.chars().next().filter(|c| "-+ ".contains(*c) || SIGNS.contains(c)) {
        signs += usize::from("-+".contains(first));
        if SIGNS.contains(&first) {
            currencies += 1;
            if !currency.has_sign(first) {
                return Err(format!("is an amount in {first}, and the organization's currency is {currency}"));
            }
        }
        rest = &rest[first.len_utf8()..];
    }
    let negative = inner.is_some() || trimmed[..trimmed.len() - rest.len()].contains('-');
    if signs > 1 || currencies > 1 {
        return Err(unreadable());
    }
    let rest = ungrouped(rest).ok_or_else(unreadable)?;
    let (whole, fraction) = parts(&rest, currency)?;
    let whole = whole.ok_or_else(unreadable)?;
    let are_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    // `.50` is an amount; `5.` and `.` are not.
    let fine = fraction.is_none_or(are_digits) && (are_digits(&whole) || whole.is_empty() && fraction.is_some());
    if !fine {
        return Err(unreadable());
    }
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let plain = fraction.map_or_else(|| whole.to_owned(), |fraction| format!("{whole}.{fraction}"));
    Ok(Signed { negative, money: Money::parse(&plain, currency.digits())? })
}

/// The text with a hyphen for every other minus and a space for those that do not break.
fn plain(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let plain = text.chars().map(|c| match c {
        '\u{2212}' | '\u{2013}' | '\u{fe63}' | '\u{ff0d}' => '-',
        '\u{a0}' | '\u{2009}' | '\u{202f}' => ' ',
        '\u{ffe5}' => '¥',
        c => c,
    });
    Cow::Owned(plain.collect())
}

/// The amount with its minus before it: `-2.50` for `2.50-`.
fn minus_first(text: Cow<'_, str>) -> Cow<'_, str> {
    match text.strip_suffix('-') {
        Some(amount) => Cow::Owned(format!("-{}", amount.trim_end())),
        None => text,
    }
}

/// A number without spaces and apostrophes between its thousands. `None` when they are elsewhere.
fn ungrouped(number: &str) -> Option<Cow<'_, str>> {
    let Some(mark) = number.chars().find(|c| matches!(c, ' ' | '\'' | '\u{2019}')) else {
        return Some(Cow::Borrowed(number));
    };
    let (whole, fraction) = number.split_at(number.rfind(['.', ',']).unwrap_or(number.len()));
    Some(Cow::Owned(without(mark, whole)? + fraction))
}

/// The amount with its currency sign before it: `€6,94` for `6,94 €`.
fn sign_first(text: &str) -> Cow<'_, str> {
    let (open, inner) = match text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        Some(inner) => (true, inner.trim()),
        None => (false, text),
    };
    let Some((sign, amount)) = SIGNS.into_iter().find_map(|sign| Some((sign, inner.strip_suffix(sign)?))) else {
        return Cow::Borrowed(text);
    };
    let amount = amount.trim_end();
    Cow::Owned(if open { format!("({sign}{amount})") } else { format!("{sign}{amount}") })
}

/// Codes of dollars before their sign, as in `US$`.
const DOLLARS: [(&str, &str); 9] = [
    ("US", "USD"),
    ("CA", "CAD"),
    ("C", "CAD"),
    ("AU", "AUD"),
    ("A", "AUD"),
    ("NZ", "NZD"),
    ("MX", "MXN"),
    ("HK", "HKD"),
    ("R", "BRL"),
];

/// The amount without the code of its currency, which can be before it, behind it, or behind its minus: `USD 6.94`, `6.94 USD`,
/// `-US$6.94`.
fn without_code(text: &str, currency: Currency) -> Result<String, String> {
    let letters: String = text.chars().filter(char::is_ascii_alphabetic).collect();
    let Some(rest) =
        text.find(&letters).filter(|_| !letters.is_empty()).map(|at| (&text[..at], &text[at + letters.len()..]))
    else {
        return Ok(text.to_owned());
    };
    let (before, after) = rest;
    let is_beside = before.chars().all(|c| "-+( ".contains(c)) || after.chars().all(|c| ") ".contains(c));
    let upper = letters.to_ascii_uppercase();
    let of_sign = DOLLARS.iter().find(|(short, _)| after.starts_with('$') && *short == upper).map(|(_, code)| *code);
    let Some(code) = Currency::parse(of_sign.unwrap_or(&upper)).filter(|_| is_beside) else {
        return Ok(text.to_owned());
    };
    if code != currency {
        return Err(format!("is an amount in {code}, and the organization's currency is {currency}"));
    }
    let after = if of_sign.is_some() { &after[1..] } else { after };
    Ok(format!("{}{}", before.trim_end(), after.trim_start()).trim().to_owned())
}

/// The digits before the decimals, without delimiters of thousands, and the decimals. No digits when the delimiters are not between
/// thousands.
fn parts(number: &str, currency: Currency) -> Result<(Option<String>, Option<&str>), String> {
    let is_with_point = currency.has_decimal_point();
    let last = number.rfind(['.', ',']);
    let split = |at: usize| (&number[..at], &number[at + 1..]);
    let other = |mark: char| if mark == '.' { ',' } else { '.' };
    let Some((mark, (before, after))) = last.map(|at| (char::from(number.as_bytes()[at]), split(at))) else {
        return Ok((Some(number.to_owned()), None));
    };
    let is_one_group = !before.contains(['.', ',']) && !matches!(before, "" | "0");
    match without(mark, number) {
        Some(_) if is_one_group && can_be_both(mark, after, currency) => {
            let digits = currency.digits();
            Err(format!(
                "can be {before}{after} or {before}.{after}; write it without a delimiter of thousands and with at most {digits} \
                 decimals"
            ))
        }
        // A comma, or the same mark twice, is between thousands.
        whole if is_with_point && mark == ',' => Ok((whole, None)),
        Some(whole) if !is_with_point && (before.contains(mark) || is_one_group && currency.digits() == 0) => {
            Ok((Some(whole), None))
        }
        _ => Ok((without(other(mark), before), Some(after))),
    }
}

/// Whether three digits after this mark can be thousands as well as decimals.
fn can_be_both(mark: char, after: &str, currency: Currency) -> bool {
    // A currency without decimals can have only those that say nothing.
    let can_be_decimals = currency.digits() > 0 || after == "000";
    match (mark, currency.has_decimal_point()) {
        ('.', true) => currency.digits() == 0 && can_be_decimals,
        ('.', false) => currency.digits() < 3 && can_be_decimals,
        (_, true) => false,
        (_, false) => can_be_decimals,
    }
}

/// `1,234,567` as `1234567`. `None` when the mark does not separate groups of three: `1,23` may mean `1.23`.
fn without(mark: char, whole: &str) -> Option<String> {
    let mut groups = whole.split(mark);
    let first = groups.next()?;
    let rest: Vec<&str> = groups.collect();
    // No number of thousands begins with 0: `0,500` is none.
    let grouped = rest.is_empty() || ((1..=3).contains(&first.len()) && !first.starts_with('0'));
    (grouped && rest.iter().all(|group| group.len() == 3)).then(|| format!("{first}{}", rest.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn in_currency(code: &str) -> Currency {
        Currency::parse(code).unwrap()
    }

    fn parse(text: &str, digits: u32) -> Result<Signed, String> {
        super::parse(text, in_currency(if digits == 0 { "JPY" } else { "USD" }))
    }

    #[test]
    fn the_sign_of_another_currency_is_refused() {
        for (text, code) in [("€6.94", "USD"), ("-£6.94", "USD"), ("$6.94", "EUR"), ("($6.94)", "GBP")] {
            let why = super::parse(text, in_currency(code)).unwrap_err();
            assert!(why.contains(&format!("the organization's currency is {code}")), "{text}: {why}");
        }
        for (text, code) in [("EUR 6.94", "USD"), ("CA$6.94", "USD"), ("6.94 CAD", "USD"), ("-US$6.94", "CAD")] {
            let why = super::parse(text, in_currency(code)).unwrap_err();
            assert!(why.contains(&format!("the organization's currency is {code}")), "{text}: {why}");
        }
        for (text, code) in [("€6.94", "EUR"), ("£6.94", "GBP"), ("$6.94", "CAD"), ("$6.94", "MXN"), ("6.94", "EUR")]
        {
            assert!(super::parse(text, in_currency(code)).is_ok(), "{text} {code}");
        }
    }

    #[track_caller]
    fn check(text: &str, negative: bool, amount: &str) {
        let expected = Signed { negative, money: Money::parse(amount, 2).unwrap() };
        assert_eq!(parse(text, 2), Ok(expected), "{text}");
    }

    #[test]
    fn statements_write_amounts_in_many_ways() {
        check("6.94", false, "6.94");
        check("$-2.01", true, "2.01");
        check("-$6.94", true, "6.94");
        check("($9.11)", true, "9.11");
        check(" ( 9.11 )".replace(" )", ")").as_str(), true, "9.11");
        check("$1,234.56", false, "1234.56");
        check("-$12,345,678", true, "12345678");
        check("+4.00", false, "4");
        check("$ 4", false, "4");
        check("$.50", false, "0.5");
        check("007.10", false, "7.1");
        check("-0.00", true, "0");
        check("1.500", false, "1.5");
        check("USD 6.94", false, "6.94");
        check("6.94 USD", false, "6.94");
        check("-US$1,234.50", true, "1234.5");
        check("(usd 6.94)", true, "6.94");
        check("US$ 4", false, "4");
    }

    #[test]
    fn a_minus_has_many_forms_and_places() {
        for text in ["\u{2212}$2.50", "2.50-", "$2.50 -", "\u{2013}2.50", "2.50\u{2212}", "$\u{2212}2.50", "USD 2.50-"]
        {
            check(text, true, "2.50");
        }
    }

    #[test]
    fn thousands_can_have_spaces_or_apostrophes_between_them() {
        for (text, code, amount) in [
            ("1\u{a0}234,56 €", "EUR", "1234.56"),
            ("1\u{202f}350,00", "EUR", "1350"),
            ("1'234.50", "CHF", "1234.5"),
            ("$1 234.50", "USD", "1234.5"),
            ("2,50- €", "EUR", "2.5"),
        ] {
            let read = super::parse(text, in_currency(code)).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!(read.money, Money::parse(amount, 2).unwrap(), "{text}");
        }
    }

    #[test]
    fn the_signs_of_yen_and_other_currencies_are_read() {
        for (text, code) in [
            ("¥250", "JPY"),
            ("\u{ffe5}250", "JPY"),
            ("250¥", "JPY"),
            ("¥250", "CNY"),
            ("₹250", "INR"),
            ("₩250", "KRW"),
        ] {
            let read = super::parse(text, in_currency(code)).unwrap_or_else(|why| panic!("{text} {code}: {why}"));
            assert_eq!(read, Signed { negative: false, money: Money::parse("250", 0).unwrap() }, "{text}");
        }
        assert!(super::parse("¥250", in_currency("USD")).is_err_and(|why| why.contains("currency is USD")));
    }

    #[test]
    fn a_sum_is_exact_and_has_the_sign_of_the_larger_part() {
        let parsed = |text| parse(text, 2).unwrap();
        for (one, other, sum) in
            [("0.10", "0.20", "0.30"), ("-1", "0.25", "-0.75"), ("5", "-6.94", "-1.94"), ("-1", "-1", "-2")]
        {
            assert_eq!(parsed(one).plus(parsed(other)), Some(parsed(sum)), "{one} {other}");
        }
    }

    #[test]
    fn ambiguous_amounts_are_refused() {
        for text in [
            "",
            "-",
            "$",
            "1,23",
            "1.2.3",
            "6,94",
            "12,34.5",
            "--1",
            "(-1)",
            "$$1",
            "1e3",
            "5.",
            ".",
            "USD",
            "1 USD 5",
            "USX 5",
            "US 5",
            "-1-",
            "(1)-",
            "1 23",
            "12 34.5",
            "(1",
            ",123",
            "１",
            "0,500",
            "$0,123",
            "01,500",
            "0,500.00",
            "0,500,000",
        ] {
            assert!(parse(text, 2).is_err(), "{text}");
        }
        assert!(parse("1.001", 2).is_err_and(|rule| rule.contains("decimals")));
        assert!(parse("1.5", 0).is_err());
        assert!(parse("123456789012", 2).is_err());
    }

    #[test]
    fn a_decimal_comma_is_read_where_people_write_one() {
        for (text, amount) in [
            ("6,94", "6.94"),
            ("6.94", "6.94"),
            ("-€1.234,56", "1234.56"),
            ("(1,234.56)", "1234.56"),
            ("1.234.567", "1234567"),
            ("1,234,567.5", "1234567.5"),
            ("12,5 EUR", "12.5"),
            ("6,94 €", "6.94"),
            ("-6,94€", "6.94"),
            ("(1.234,56 €)", "1234.56"),
            ("EUR 1.234,56", "1234.56"),
            ("0,500", "0.5"),
            (",50", "0.5"),
            ("1234", "1234"),
        ] {
            let read = super::parse(text, in_currency("EUR")).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!(read.money, Money::parse(amount, 2).unwrap(), "{text}");
        }
        for (text, code) in [
            ("1.500", "EUR"),
            ("1,500", "EUR"),
            ("12.000", "CLP"),
            ("1.000", "JPY"),
            ("1,234", "KWD"),
            ("-1.500 EUR", "EUR"),
        ] {
            let why = super::parse(text, in_currency(code)).unwrap_err();
            assert!(why.starts_with("can be "), "{text} {code}: {why}");
        }
        for text in [
            "1.23.4",
            "1,2,3",
            "1.234,56,7",
            "1,234.567,8",
            "12,34.5",
            "1.2,345",
            "5,",
            ",",
            "1,234.567",
            "0.500,00",
            "0,500,000",
        ] {
            assert!(super::parse(text, in_currency("EUR")).is_err(), "{text}");
        }
        assert!(
            super::parse("1,000", in_currency("JPY")).is_ok_and(|read| read.money == Money::parse("1000", 0).unwrap())
        );
        assert!(
            super::parse("1.500", in_currency("KWD")).is_ok_and(|read| read.money == Money::parse("1.5", 3).unwrap())
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[-+$€£¥\u{2212}' (),.0-9]{0,12}|\\PC{0,12}") {
            let _ = parse(&text, 2);
        }
    }
}
