//! Sums of amounts, with a sign.

use super::{Money, UNIT};
use serde::{Serialize, Serializer, ser::Error as _};
use serde_json::value::RawValue;
use std::ops::{AddAssign, Neg};

/// A sum of amounts, negative where money was given back. Printed like [`Money`]: `-6.94`.
///
/// Stored in ten-thousandths. A file of any size that is accepted stays far below the largest value.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SignedMoney(i128);

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
    fn many_of_the_largest_amounts_add_up() {
        let mut sum = SignedMoney::default();
        for _ in 0..20_000 {
            sum += Money::MAX.into();
        }
        assert_eq!(sum.to_string(), "1999999999999998");
    }
}
