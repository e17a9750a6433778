//! Percentages: exact decimals with at most four digits after the point.

use super::{
    Decimal, Money,
    money::{UNIT, UNIT_DIGITS, write_shortest},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::Error as _};
use serde_json::value::RawValue;

/// A percentage from 0 to 100, stored in ten-thousandths of a percent. Printed as the shortest number: `8.875`.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Percent(u32);

/// A hundred percent, as the divisor of a product with [`Percent`].
const WHOLE: i128 = 100 * UNIT as i128;

impl Percent {
    /// Parses the text of a JSON number.
    ///
    /// # Errors
    /// A sentence for the caller that says the rule.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rule = || "must be a percentage from 0 to 100 with at most 4 decimals, such as 19 or 8.875".to_owned();
        let decimal = Decimal::parse(text).ok().filter(|decimal| decimal.scale <= UNIT_DIGITS).ok_or_else(rule)?;
        let units = decimal.coefficient * 10_i128.pow(UNIT_DIGITS - decimal.scale);
        u32::try_from(units).ok().filter(|units| i128::from(*units) <= WHOLE).map(Self).ok_or_else(rule)
    }

    /// The tax on an amount to which it is added, rounded half up to `digits` decimals.
    #[must_use]
    pub fn added_to(self, net: Money, digits: u32) -> Money {
        net.share(i128::from(self.0), WHOLE, digits)
    }

    /// The tax that an amount contains, rounded half up to `digits` decimals. Less than the amount, or both are 0.
    #[must_use]
    pub fn within(self, gross: Money, digits: u32) -> Money {
        gross.share(i128::from(self.0), WHOLE + i128::from(self.0), digits)
    }
}

impl std::fmt::Display for Percent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write_shortest(f, self.0.into())
    }
}

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_string()).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(raw.get()).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn money(text: &str) -> Money {
        Money::parse(text, 4).unwrap()
    }

    #[test]
    fn a_percentage_has_at_most_four_decimals_and_is_at_most_100() {
        for (text, shown) in [("19", "19"), ("8.875", "8.875"), ("0", "0"), ("100.0", "100"), ("0.0001", "0.0001")] {
            assert_eq!(Percent::parse(text).map(|rate| rate.to_string()).as_deref(), Ok(shown));
        }
        for text in ["-1", "100.0001", "0.00001", "1e3", "x", "", "\"19\""] {
            assert!(Percent::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn half_a_unit_is_rounded_up() {
        let check = |rate: &str, amount: &str, digits: u32, added: &str, within: &str| {
            let (rate, amount) = (Percent::parse(rate).unwrap(), money(amount));
            let found = (rate.added_to(amount, digits).to_string(), rate.within(amount, digits).to_string());
            assert_eq!(found, (added.to_owned(), within.to_owned()), "{rate} % of {amount}");
        };
        check("19", "100", 2, "19", "15.97");
        check("10", "0.05", 2, "0.01", "0");
        check("10", "0.04", 2, "0", "0");
        check("10", "0.11", 2, "0.01", "0.01");
        check("7.5", "1005", 0, "75", "70");
        check("10", "1005", 0, "101", "91");
        check("8.875", "99999999999.9999", 2, "8875000000", "8151549942.59");
    }

    proptest! {
        #[test]
        fn a_tax_is_the_nearest_unit_and_never_more_than_half_a_unit_off(units in 0i64..1_000_000_000, rate in 0u32..=1_000_000) {
            let (amount, rate) = (money(&format!("{}.{:02}", units / 100, units % 100)), Percent(rate));
            let cents = |money: Money| (money.to_string().parse::<f64>().unwrap() * 100.0).round() as i128;
            let (added, within) = (cents(rate.added_to(amount, 2)), cents(rate.within(amount, 2)));
            let (units, part) = (i128::from(units), i128::from(rate.0));
            // The rounded tax t of the exact n / d: 2n - d < 2td <= 2n + d.
            for (tax, n, d) in [(added, units * part, WHOLE), (within, units * part, WHOLE + part)] {
                prop_assert!(2 * n - d < 2 * tax * d && 2 * tax * d <= 2 * n + d);
            }
            prop_assert!(rate.within(amount, 2) <= amount);
        }

        #[test]
        fn more_money_has_never_less_tax(a in 0i64..1_000_000_000, b in 0i64..1_000_000, rate in 0u32..=1_000_000) {
            let (less, more) = (money(&a.to_string()), money(&(a + b).to_string()));
            let rate = Percent(rate);
            prop_assert!(rate.added_to(less, 2) <= rate.added_to(more, 2));
            prop_assert!(rate.within(less, 2) <= rate.within(more, 2));
        }
    }
}
