//! Amounts with a sign: sums, and the lines of an invoice.

use super::{Money, UNIT, UNIT_DIGITS, units};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::Error as _};
use serde_json::value::RawValue;
use std::ops::{AddAssign, Neg};

/// An amount or a sum of amounts, negative where money is given back. Printed like [`Money`]: `-6.94`.
///
/// Stored in ten-thousandths. A file of any size that is accepted stays far below the largest value.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SignedMoney(i128);

impl SignedMoney {
    /// Parses the text of a JSON number with at most `digits` decimals, at most as far from 0 as [`Money::MAX`].
    ///
    /// # Errors
    /// A sentence for the caller that says which rule the number breaks.
    pub fn parse(text: &str, digits: u32) -> Result<Self, String> {
        units(text, digits, -Money::MAX.0).map(Self::of_units)
    }

    pub(super) fn of_units(units: i64) -> Self {
        Self(units.into())
    }

    /// The amount if it is above 0, else 0. At most [`Money::MAX`].
    #[must_use]
    pub fn above_zero(self) -> Money {
        Money(i64::try_from(self.0.max(0)).unwrap_or(Money::MAX.0).min(Money::MAX.0))
    }

    /// How far the amount is below 0: 10 for -10, and 0 for 10. At most [`Money::MAX`].
    #[must_use]
    pub fn below_zero(self) -> Money {
        (-self).above_zero()
    }
}

impl From<Money> for SignedMoney {
    fn from(money: Money) -> Self {
        Self(money.0.into())
    }
}

impl Neg for SignedMoney {
    type Output = Self;

    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl AddAssign for SignedMoney {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl std::fmt::Display for SignedMoney {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (units, unit) = (self.0.unsigned_abs(), u128::from(UNIT.unsigned_abs()));
        let sign = if self.0 < 0 { "-" } else { "" };
        let decimals = format!(".{:04}", units % unit);
        let decimals = decimals.trim_end_matches('0').trim_end_matches('.');
        write!(f, "{sign}{}{decimals}", units / unit)
    }
}

impl Serialize for SignedMoney {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_string()).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SignedMoney {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(raw.get(), UNIT_DIGITS).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_has_a_sign_and_no_needless_decimals() {
        for (amounts, expected) in [
            (&["6.94", "0.06"][..], "7"),
            (&["-6.94"], "-6.94"),
            (&["1", "-1.5"], "-0.5"),
            (&["10.5", "100"], "110.5"),
            (&[], "0"),
            (&["-0.0001"], "-0.0001"),
        ] {
            let mut sum = SignedMoney::default();
            for amount in amounts {
                let money = SignedMoney::from(Money::parse(amount.trim_start_matches('-'), 4).unwrap());
                sum += if amount.starts_with('-') { -money } else { money };
            }
            assert_eq!(serde_json::to_string(&sum).unwrap(), expected, "{amounts:?}");
        }
    }

    #[test]
    fn an_amount_with_a_sign_is_read_and_split() {
        for (text, above, below) in [("-10.5", "0", "10.5"), ("10.5", "10.5", "0"), ("-0", "0", "0")] {
            let amount = SignedMoney::parse(text, 2).unwrap();
            assert_eq!(
                (amount.above_zero().to_string(), amount.below_zero().to_string()),
                (above.into(), below.into())
            );
            assert_eq!(serde_json::from_str::<SignedMoney>(text).unwrap(), amount);
        }
        let refused = |text: &str, digits| SignedMoney::parse(text, digits).unwrap_err();
        assert_eq!(refused("-100000000000", 2), "must be at least -99999999999.9999");
        assert_eq!(refused("100000000000", 2), "must be at most 99999999999.9999");
        assert!(refused("-10.5", 0).contains("decimals") && refused("--1", 2) == "must be a number");
    }

    #[test]
    fn many_of_the_largest_amounts_add_up() {
        let mut sum = SignedMoney::default();
        for _ in 0..20_000 {
            sum += Money::MAX.into();
        }
        assert_eq!(sum.to_string(), "1999999999999998");
    }
}
