//! The tax of an invoice: of all lines together, rounded once, half up. What credit notes credit of it adds up to it exactly.

use crate::{
    error::{FieldCode, FieldError},
    value::{Currency, Money, Name, Percent},
};

/// How an invoice is taxed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tax {
    pub(crate) rate: Percent,
    /// Whether the lines contain the tax.
    pub(crate) included: bool,
    pub(crate) currency: Currency,
}

impl Tax {
    /// The tax of lines with this sum.
    pub(crate) fn on(self, sum: Money) -> Money {
        let digits = self.currency.digits();
        if self.included { self.rate.within(sum, digits) } else { self.rate.added_to(sum, digits) }
    }

    /// The tax of lines with this sum that come after others. Together they have exactly the tax of one sum.
    pub(crate) fn on_further(self, before: Money, sum: Money) -> Option<Money> {
        self.on(before.plus(sum)?).minus(self.on(before))
    }

    /// What a customer pays for lines with this sum and this tax; `None` above [`Money::MAX`].
    pub(crate) fn total(self, sum: Money, tax: Money) -> Option<Money> {
        if self.included { Some(sum) } else { sum.plus(tax) }
    }
}

/// The error when only a part of a tax is given: its name and rate go together, and `tax_included` needs them.
pub(crate) fn incomplete(name: Option<&Name>, rate: Option<Percent>, included: Option<bool>) -> Option<FieldError> {
    match (name, rate, included) {
        (Some(_), None, _) => {
            Some(FieldError::new("tax_rate", FieldCode::Missing, "is required with `tax_name`: a tax has both"))
        }
        (None, Some(_), _) => {
            Some(FieldError::new("tax_name", FieldCode::Missing, "is required with `tax_rate`: a tax has both"))
        }
        (None, None, Some(_)) => {
            Some(FieldError::new("tax_rate", FieldCode::Missing, "is required with `tax_included`"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_of_an_invoice_have_its_tax_to_the_cent(
            parts in proptest::collection::vec(0u32..1_000_000, 1..12), rate in 0u32..=1_000_000, included: bool, yen: bool
        ) {
            let currency = Currency::parse(if yen { "JPY" } else { "USD" }).unwrap();
            let rate = Percent::parse(&format!("{}.{:04}", rate / 10_000, rate % 10_000)).unwrap();
            let tax = Tax { rate, included, currency };
            let amount = |units: u32| match yen {
                true => Money::parse(&units.to_string(), 0).unwrap(),
                false => Money::parse(&format!("{}.{:02}", units / 100, units % 100), 2).unwrap(),
            };
            let (mut sum, mut taxes, mut totals) = (Money::default(), Money::default(), Money::default());
            for part in parts.into_iter().map(amount) {
                let further = tax.on_further(sum, part).unwrap();
                sum = sum.plus(part).unwrap();
                taxes = taxes.plus(further).unwrap();
                totals = totals.plus(tax.total(part, further).unwrap()).unwrap();
            }
            prop_assert_eq!(taxes, tax.on(sum));
            prop_assert_eq!(totals, tax.total(sum, taxes).unwrap());
            let net = if included { sum.minus(taxes).unwrap() } else { sum };
            prop_assert_eq!(net.plus(taxes).unwrap(), totals, "net and tax are what is paid");
        }
    }
}
