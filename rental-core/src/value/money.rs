//! Amounts of money: exact decimals in a currency's own precision.

mod signed;

pub use signed::SignedMoney;

use super::written::read_text;
use crate::value::{Decimal, DecimalError};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::Error as _};
use serde_json::value::RawValue;

/// An amount from 0 to 99,999,999,999.9999 of a currency's main unit, stored in ten-thousandths.
///
/// No currency of ISO 4217 has more than four decimals, so every amount is exact. It is parsed from the text of a JSON
/// number and printed as the shortest such number: `89.5`, never `89.50` or `"89.5"`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Money(i64);

/// The units in one: amounts and percentages are stored in ten-thousandths.
pub(super) const UNIT: i64 = 10_000;
/// Decimals of a unit.
pub(super) const UNIT_DIGITS: u32 = 4;

impl Money {
    /// The largest amount. It has fifteen significant digits, which a double-precision float represents exactly.
    pub const MAX: Self = Self(99_999_999_999 * UNIT + 9_999);

    /// Parses the text of a JSON number with at most `digits` decimals.
    ///
    /// # Errors
    /// A sentence for the caller that says which rule the number breaks.
    pub fn parse(text: &str, digits: u32) -> Result<Self, String> {
        units(text, digits, 0).map(Self)
    }

    /// This amount times `count`; `None` above [`Money::MAX`].
    #[must_use]
    pub fn times(self, count: u32) -> Option<Self> {
        self.0.checked_mul(i64::from(count)).filter(|units| *units <= Self::MAX.0).map(Self)
    }

    /// The sum of both amounts; `None` above [`Money::MAX`].
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).filter(|units| *units <= Self::MAX.0).map(Self)
    }

    /// This amount less `other`; `None` below 0.
    #[must_use]
    pub fn minus(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).filter(|units| *units >= 0).map(Self)
    }

    /// The share `part` / `whole` of this amount, rounded half up to `digits` decimals. `part` is 0 to `whole`, and `whole` at
    /// most the units of [`Money::MAX`].
    #[must_use]
    pub(super) fn share(self, part: i128, whole: i128, digits: u32) -> Self {
        let quantum = 10_i128.pow(UNIT_DIGITS.saturating_sub(digits));
        let divisor = whole.max(1) * quantum;
        let quanta = (2 * i128::from(self.0) * part + divisor) / (2 * divisor);
        Self(i64::try_from(quanta * quantum).unwrap_or(self.0).min(Self::MAX.0))
    }

    /// This amount times `part` / `whole`, rounded half up to `digits` decimals. `part` is at most `whole`.
    #[must_use]
    pub fn in_proportion(self, part: Self, whole: Self, digits: u32) -> Self {
        self.share(part.0.into(), whole.0.into(), digits)
    }

    /// Whether the amount has at most this many decimals.
    #[must_use]
    pub fn has_digits(self, digits: u32) -> bool {
        self.0 % 10_i64.pow(UNIT_DIGITS.saturating_sub(digits)) == 0
    }

    /// Whether the amount is 0.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }
}

/// Parses the text of a JSON number as so many ten-thousandths, from `least` to the largest amount. `least` is 0, or the largest amount below 0.
fn units(text: &str, digits: u32, least: i64) -> Result<i64, String> {
    let most = Money::MAX;
    let least_shown = || if least < 0 { format!("-{most}") } else { "0".to_owned() };
    let decimal = match Decimal::parse(text) {
        Ok(decimal) => decimal,
        Err(DecimalError::NotANumber) => return Err("must be a number".into()),
        Err(DecimalError::OutOfRange) => {
            return Err(format!("must be between {} and {most} with at most {digits} decimals", least_shown()));
        }
    };
    if decimal.coefficient < 0 && least == 0 {
        return Err("must be 0 or more".into());
    }
    if decimal.scale > digits.min(UNIT_DIGITS) {
        return Err(format!("has more decimals than the currency's {digits}; round it before sending"));
    }
    let units = decimal.coefficient * 10_i128.pow(UNIT_DIGITS - decimal.scale);
    match i64::try_from(units) {
        Ok(units) if (least..=most.0).contains(&units) => Ok(units),
        _ if units < 0 => Err(format!("must be at least {}", least_shown())),
        _ => Err(format!("must be at most {most}")),
    }
}

impl Money {
    /// The amount with at least `digits` decimals, for people: `89.50`. It has more where the amount needs them.
    #[must_use]
    pub fn with_digits(self, digits: u32) -> String {
        let (whole, fraction) = (self.0 / UNIT, format!("{:04}", self.0 % UNIT));
        let needed = fraction.trim_end_matches('0').len().max(digits.min(UNIT_DIGITS) as usize);
        if needed == 0 { whole.to_string() } else { format!("{whole}.{}", &fraction[..needed]) }
    }
}

impl std::fmt::Display for Money {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write_shortest(f, self.0)
    }
}

/// Writes so many units as the shortest number: `89.5`.
pub(super) fn write_shortest(f: &mut std::fmt::Formatter<'_>, units: i64) -> std::fmt::Result {
    let (whole, fraction) = (units / UNIT, units % UNIT);
    if fraction == 0 {
        return write!(f, "{whole}");
    }
    let fraction = format!("{fraction:04}");
    write!(f, "{whole}.{}", fraction.trim_end_matches('0'))
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_string()).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(raw.get(), UNIT_DIGITS).map_err(D::Error::custom)
    }
}

/// A currency of ISO 4217 that has at most four decimals, written as its three-letter code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Currency {
    code: iso_currency::Currency,
    digits: u32,
}

impl Currency {
    /// The dollar of the United States.
    pub const USD: Self = Self { code: iso_currency::Currency::USD, digits: 2 };

    /// Parses a code in capital letters, such as `USD`; `None` for unknown codes and for gold (`XAU`) and the like.
    #[must_use]
    pub fn parse(code: &str) -> Option<Self> {
        // Nearly every amount is in dollars, and the list of all codes is searched from its beginning.
        if code == "USD" {
            return Some(Self::USD);
        }
        let code = iso_currency::Currency::from_code(code)?;
        let digits = u32::from(code.exponent()?);
        (digits <= UNIT_DIGITS).then_some(Self { code, digits })
    }

    /// How many decimals an amount may have: 2 for USD, 0 for JPY, 3 for KWD.
    #[must_use]
    pub fn digits(self) -> u32 {
        self.digits
    }

    /// Whether amounts of this currency are written with this sign: `$` for USD and CAD, `€` for EUR.
    #[must_use]
    pub fn has_sign(self, sign: char) -> bool {
        self.code.symbol().symbol.contains(sign)
    }

    /// Whether statements in this currency have a point before decimals and commas between thousands.
    #[must_use]
    pub(crate) fn has_decimal_point(self) -> bool {
        const WITH_POINT: [&str; 23] = [
            "AED", "AUD", "CAD", "CNY", "EGP", "GBP", "HKD", "ILS", "INR", "JPY", "KES", "KRW", "MXN", "MYR", "NGN",
            "NZD", "PHP", "PKR", "SAR", "SGD", "THB", "TWD", "USD",
        ];
        WITH_POINT.binary_search(&self.code.code()).is_ok()
    }
}

impl std::fmt::Display for Currency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.code.code())
    }
}

impl Serialize for Currency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code.code())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_text(deserializer, Self::parse, "not an ISO 4217 currency")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn amounts_are_exact_decimals() {
        let sum = Money::parse("0.1", 2).unwrap().plus(Money::parse("0.2", 2).unwrap()).unwrap();
        assert_eq!(serde_json::to_string(&sum).unwrap(), "0.3");
        assert_eq!(Money::parse("89.50", 2).unwrap().to_string(), "89.5");
        assert_eq!(Money::parse("1e2", 0).unwrap().to_string(), "100");
        assert_eq!(Money::parse("99999999999.9999", 4).unwrap(), Money::MAX);
    }

    #[test]
    fn more_decimals_than_the_currency_has_are_refused_not_rounded() {
        assert!(Money::parse("10.001", 2).is_err_and(|message| message.contains("decimals")));
        assert!(Money::parse("10.5", 0).is_err());
        assert!(Money::parse("10.001", 3).is_ok());
        assert!(Money::parse("10.500", 2).is_ok(), "the same value as 10.5");
    }

    #[test]
    fn negative_and_huge_amounts_are_refused() {
        for text in ["-1", "-0.01", "1e400", "100000000000", "1e11", "true"] {
            assert!(Money::parse(text, 2).is_err(), "{text}");
        }
        assert_eq!(Money::parse("-0", 2), Ok(Money::default()));
    }

    #[test]
    fn products_past_the_maximum_are_none() {
        assert_eq!(Money::MAX.times(2), None);
        assert_eq!(Money::parse("89.5", 2).unwrap().times(4).unwrap().to_string(), "358");
    }

    #[test]
    fn a_difference_below_zero_is_none() {
        let (small, large) = (Money::parse("0.1", 2).unwrap(), Money::parse("89.5", 2).unwrap());
        assert_eq!(large.minus(small).unwrap().to_string(), "89.4");
        assert_eq!(small.minus(large), None);
        assert!(small.minus(small).is_some_and(Money::is_zero) && !small.is_zero());
    }

    #[test]
    fn people_read_all_decimals_of_the_currency() {
        for (text, digits, shown) in [("89.5", 2, "89.50"), ("358", 0, "358"), ("0.125", 2, "0.125"), ("7", 3, "7.000")]
        {
            assert_eq!(Money::parse(text, 4).unwrap().with_digits(digits), shown);
        }
    }

    #[test]
    fn currencies_know_their_digits() {
        for (code, digits) in [("USD", 2), ("JPY", 0), ("KWD", 3), ("CLF", 4)] {
            assert_eq!(Currency::parse(code).map(Currency::digits), Some(digits), "{code}");
        }
        for code in ["usd", "XXX", "ABC", "", "US"] {
            assert_eq!(Currency::parse(code), None, "{code}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(units in 0..=Money::MAX.0) {
            let money = Money(units);
            let json = serde_json::to_string(&money).unwrap();
            prop_assert_eq!(serde_json::from_str::<Money>(&json).unwrap(), money);
            prop_assert_eq!(json.parse::<f64>().unwrap().to_string(), json, "a float reader keeps it");
        }
    }
}
