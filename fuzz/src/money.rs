//! Amounts against a second, simpler reading: a JSON number as two strings of digits.

use rental_core::value::{Decimal, Money};
use serde_json::value::RawValue;

/// The first byte chooses the currency's digits, the rest is a number's text.
pub fn check(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let digits = usize::from(*first) % 5;
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let model = Plain::read(text);
    let expected = model.as_ref().filter(|number| number.is_amount(digits)).map(Plain::print);
    let found = Money::parse(text, digits as u32);
    assert_eq!(found.as_ref().ok().map(ToString::to_string), expected, "{text:?} with {digits} digits");
    if let Err(rule) = &found {
        assert!(!rule.is_empty());
    }
    if let Ok(money) = found {
        assert_eq!(Money::parse(&money.to_string(), digits as u32), Ok(money), "printed and read again");
    }
    if let Ok(decimal) = Decimal::parse(text) {
        let model = model.expect("only JSON numbers are read");
        let mut whole = decimal.coefficient.unsigned_abs().to_string();
        let scale = decimal.scale as usize;
        whole = format!("{whole:0>width$}", width = scale + 1);
        let (whole, fraction) = whole.split_at(whole.len() - scale);
        assert_eq!(
            (whole, fraction, decimal.coefficient < 0),
            (model.whole(), model.fraction.as_str(), model.negative)
        );
    }
}

/// Digits before and after the point, without zeros that say nothing; zero is never negative.
struct Plain {
    negative: bool,
    whole: String,
    fraction: String,
}

/// Exponents past this are out of every range; beyond it no digits are written out.
const FAR: i64 = 60_000;

impl Plain {
    /// serde_json decides what is a number; `None` for other text.
    fn read(text: &str) -> Option<Self> {
        let raw: &RawValue = serde_json::from_str(text).ok()?;
        if raw.get() != text || !text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
            return None;
        }
        let (negative, text) = (text.starts_with('-'), text.trim_start_matches('-'));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let (mut whole, mut fraction) = (whole.to_owned(), fraction.to_owned());
        if [&whole, &fraction].iter().all(|digits| digits.bytes().all(|digit| digit == b'0')) {
            return Some(Self { negative: false, whole: String::new(), fraction: String::new() });
        }
        let exponent = exponent.trim_start_matches('+');
        let far = if exponent.starts_with('-') { -FAR } else { FAR };
        let exponent: i64 = exponent.parse().unwrap_or(far).clamp(-FAR, FAR);
        for _ in 0..exponent {
            whole.push(if fraction.is_empty() { '0' } else { fraction.remove(0) });
        }
        if exponent < 0 {
            let shift = exponent.unsigned_abs() as usize;
            let padded = format!("{whole:0>shift$}");
            let (left, right) = padded.split_at(padded.len() - shift);
            (whole, fraction) = (left.to_owned(), format!("{right}{fraction}"));
        }
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        Some(Self { negative, whole: whole.to_owned(), fraction: fraction.to_owned() })
    }

    fn whole(&self) -> &str {
        if self.whole.is_empty() { "0" } else { &self.whole }
    }

    /// 0 to 99,999,999,999.9999 with at most `digits` decimals.
    fn is_amount(&self, digits: usize) -> bool {
        !self.negative && self.whole.len() <= 11 && self.fraction.len() <= digits.min(4)
    }

    fn print(&self) -> String {
        let point = if self.fraction.is_empty() { "" } else { "." };
        format!("{}{point}{}", self.whole(), self.fraction)
    }
}
