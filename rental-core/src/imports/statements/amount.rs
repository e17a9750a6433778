//! Amounts as statements print them: `$1,234.56`, `-$6.94`, `$-2.01`, `($9.11)`, `USD 6.94`, `US$6.94`.

use crate::value::{Currency, Money};

/// An amount with its sign. The format defines the meaning of the sign.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Signed {
    pub(super) negative: bool,
    pub(super) money: Money,
}

/// Parses an amount with at most as many decimals as the currency has, and commas between thousands. The sign or code of another
/// currency is an error.
///
/// A minus may be before or after the currency sign. Parentheses mean a minus. An amount with both is an error.
pub(super) fn parse(text: &str, currency: Currency) -> Result<Signed, String> {
    let unreadable = || "must be an amount such as 6.94, -$6.94 or ($1,234.56)".to_owned();
    let without_code = without_code(text.trim(), currency)?;
    let trimmed = without_code.as_str();
    let inner = trimmed.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let (mut rest, mut signs) = (inner.unwrap_or(trimmed), usize::from(inner.is_some()));
    let mut currencies = 0;
    while let Some(first) = rest.chars().next().filter(|c| "-+$€£ ".contains(*c)) {
        signs += usize::from("-+".contains(first));
        if "$€£".contains(first) {
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
    let (whole, fraction) = rest.split_once('.').map_or((rest, None), |(whole, fraction)| (whole, Some(fraction)));
    let whole = without_commas(whole).ok_or_else(unreadable)?;
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

/// Codes of dollars before their sign, as in `US$`.
const DOLLARS: [(&str, &str); 8] = [
    ("US", "USD"),
    ("CA", "CAD"),
    ("C", "CAD"),
    ("AU", "AUD"),
    ("A", "AUD"),
    ("NZ", "NZD"),
    ("MX", "MXN"),
    ("HK", "HKD"),
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

/// `1,234,567` as `1234567`. `None` when the commas do not separate groups of three: `1,23` may mean `1.23`.
fn without_commas(whole: &str) -> Option<String> {
    let mut groups = whole.split(',');
    let first = groups.next()?;
    let rest: Vec<&str> = groups.collect();
    let grouped = rest.is_empty() || (1..=3).contains(&first.len());
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
    fn ambiguous_amounts_are_refused() {
        for text in [
            "", "-", "$", "1,23", "1.2.3", "6,94", "12,34.5", "--1", "(-1)", "$$1", "1e3", "5.", ".", "USD", "1 USD 5",
            "USX 5", "US 5", "1-", "(1", ",123", "１",
        ] {
            assert!(parse(text, 2).is_err(), "{text}");
        }
        assert!(parse("1.001", 2).is_err_and(|rule| rule.contains("decimals")));
        assert!(parse("1.5", 0).is_err());
        assert!(parse("123456789012", 2).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[-+$€£ (),.0-9]{0,12}|\\PC{0,12}") {
            let _ = parse(&text, 2);
        }
    }
}
