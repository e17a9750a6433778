//! What can be credited of the lines of an invoice.
//!
//! A line with a negative amount is a discount. The discounts are spread over the other lines in proportion to their amounts, and a
//! line can be credited up to its amount less its part of them: the customer paid no more for it.

use super::Invoice;
use crate::value::{Money, SignedMoney};

/// A line of an invoice, as far as credit notes see it. Nothing of a discount can be credited.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Creditable {
    /// The amount of the line; 0 of a discount.
    pub(crate) billed: Money,
    /// Its part of the discounts.
    pub(crate) discount: Money,
    /// What earlier credit notes credit of it.
    pub(crate) credited: Money,
}

impl Creditable {
    /// What all credit notes together can credit of it.
    pub(crate) fn most(self) -> Money {
        self.billed.minus(self.discount).unwrap_or_default()
    }

    /// What is left to credit of it.
    pub(crate) fn left(self) -> Money {
        self.most().minus(self.credited).unwrap_or_default()
    }

    /// The part of its discount that goes with a further credit of `amount`. Those of all credits are its discount exactly, when
    /// nothing is left.
    pub(crate) fn discount_with(self, amount: Money, digits: u32) -> Money {
        let up_to = |sum: Money| self.discount.in_proportion(sum, self.most(), digits);
        let all = self.credited.plus(amount).unwrap_or(Money::MAX).min(self.most());
        up_to(all).minus(up_to(self.credited)).unwrap_or_default()
    }
}

impl Invoice {
    /// Its lines before the first credit note.
    pub(crate) fn creditable(&self) -> Vec<Creditable> {
        let amounts: Vec<SignedMoney> = self.lines.iter().map(|line| line.amount.unwrap_or_default()).collect();
        spread(&amounts, self.currency.digits())
    }
}

/// Spreads the negative amounts over the others, each part rounded half up to `digits` decimals with what earlier roundings left.
/// So the parts are the discounts exactly, and none is above its line.
fn spread(amounts: &[SignedMoney], digits: u32) -> Vec<Creditable> {
    let add = |sum: Money, amount: Money| sum.plus(amount).unwrap_or(Money::MAX);
    let all = amounts.iter().map(|amount| amount.above_zero()).fold(Money::default(), add);
    let discounts = amounts.iter().map(|amount| amount.below_zero()).fold(Money::default(), add);
    let mut sum = Money::default();
    let line = |amount: &SignedMoney| {
        let (billed, before) = (amount.above_zero(), sum);
        sum = add(sum, billed);
        let up_to = |sum: Money| discounts.in_proportion(sum, all, digits);
        Creditable { billed, discount: up_to(sum).minus(up_to(before)).unwrap_or_default(), ..Creditable::default() }
    };
    amounts.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        resources::tax::Tax,
        value::{Currency, Percent},
    };
    use proptest::prelude::*;

    #[track_caller]
    fn check(amounts: &[&str], digits: u32, parts: &[&str]) {
        let amounts: Vec<SignedMoney> = amounts.iter().map(|text| SignedMoney::parse(text, digits).unwrap()).collect();
        let found: Vec<String> = spread(&amounts, digits).iter().map(|line| line.discount.to_string()).collect();
        assert_eq!(found, parts);
    }

    #[test]
    fn discounts_are_spread_in_proportion_and_the_last_line_takes_what_is_left() {
        check(&["100", "-10"], 2, &["10", "0"]);
        check(&["300", "-40", "100", "0"], 2, &["30", "0", "10", "0"]);
        check(&["10", "10", "10", "-10"], 2, &["3.33", "3.34", "3.33", "0"]);
        check(&["100", "100", "100", "-100"], 0, &["33", "34", "33", "0"]);
        check(&["0.01", "0.01", "-0.01"], 2, &["0.01", "0", "0"]);
        check(&["5", "-2", "-3"], 2, &["5", "0", "0"]);
        check(&["5", "7"], 2, &["0", "0"]);
        check(&["99999999999.99", "-99999999999.99"], 2, &["99999999999.99", "0"]);
        check(&[], 2, &[]);
    }

    fn money(units: i64, digits: u32) -> Money {
        let scale = 10_i64.pow(digits);
        Money::parse(&format!("{}.{:0width$}", units / scale, units % scale, width = digits as usize), digits)
            .or_else(|_| Money::parse(&units.to_string(), 0))
            .unwrap()
    }

    proptest! {
        #[test]
        fn credits_in_any_order_are_the_total_with_its_tax_and_never_more_of_a_line_than_was_paid(
            lines in proptest::collection::vec(-30_000i64..60_000, 1..12),
            steps in proptest::collection::vec((any::<prop::sample::Index>(), 1i64..60_000), 0..40),
            rate in 0u32..=400_000, included: bool, yen: bool,
        ) {
            let currency = Currency::parse(if yen { "JPY" } else { "USD" }).unwrap();
            let digits = currency.digits();
            let sum: i64 = lines.iter().sum();
            prop_assume!(sum >= 0);
            let signed = |units: &i64| match units {
                ..0 => -SignedMoney::from(money(-units, digits)),
                _ => money(*units, digits).into(),
            };
            let mut left = spread(&lines.iter().map(signed).collect::<Vec<_>>(), digits);
            let parts = left.iter().try_fold(Money::default(), |sum, line| sum.plus(line.discount)).unwrap();
            prop_assert_eq!(parts, money(-lines.iter().filter(|line| **line < 0).sum::<i64>(), digits));
            prop_assert!(left.iter().all(|line| line.discount <= line.billed));

            let tax = Tax { rate: Percent::parse(&format!("{}.{:04}", rate / 10_000, rate % 10_000)).unwrap(), included, currency };
            let (mut credited, mut total) = (Money::default(), Money::default());
            let mut discounts = vec![Money::default(); lines.len()];
            let whole: Vec<_> = (0..lines.len()).map(|at| (at, Money::MAX)).collect();
            let steps = steps.iter().map(|(at, units)| (at.index(lines.len()), money(*units, digits)));
            for (at, wanted) in steps.chain(whole) {
                let line = &mut left[at];
                let amount = wanted.min(line.left());
                discounts[at] = discounts[at].plus(line.discount_with(amount, digits)).unwrap();
                line.credited = line.credited.plus(amount).unwrap();
                prop_assert!(line.credited.plus(discounts[at]).unwrap() <= line.billed);
                let further = tax.on_further(credited, amount).unwrap();
                total = total.plus(tax.total(amount, further).unwrap()).unwrap();
                credited = credited.plus(amount).unwrap();
                prop_assert!(credited <= money(sum, digits));
            }
            prop_assert_eq!(credited, money(sum, digits));
            prop_assert_eq!(total, tax.total(credited, tax.on(credited)).unwrap());
            prop_assert!(left.iter().zip(&discounts).all(|(line, discount)| line.discount == *discount));
        }
    }
}
