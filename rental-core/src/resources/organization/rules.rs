//! The rules of organizations.

use super::Organization;
use crate::{
    error::{Error, FieldCode, FieldError, FieldErrors},
    resources::{
        Create, RuleContext, Update,
        event::EventType,
        tax::{self, Tax},
    },
    schema::Fields,
    value::Money,
};

impl Create for Organization {
    fn create(&mut self, _: &RuleContext<'_>) -> Result<Vec<EventType>, Error> {
        self.check_billing()?;
        Ok(Vec::new())
    }
}

impl Organization {
    /// The tax on lines with this sum by the present settings, and what the customer pays; `None` without a tax.
    #[must_use]
    pub fn taxed(&self, sum: Money) -> Option<(Money, Money)> {
        let tax = Tax { rate: self.tax_rate?, included: self.tax_included, currency: self.default_currency };
        let amount = tax.on(sum);
        Some((amount, tax.total(sum, amount).unwrap_or(Money::MAX)))
    }

    /// Checks that fees have the decimals of the currency, and that a tax has a name and a rate.
    fn check_billing(&self) -> Result<(), Error> {
        let (currency, digits) = (self.default_currency, self.default_currency.digits());
        let fees = [("toll_fee", self.toll_fee), ("violation_fee", self.violation_fee)];
        let unfit = fees.into_iter().filter(|(_, fee)| fee.is_some_and(|fee| !fee.has_digits(digits)));
        let rule = format!("has more decimals than the {digits} of {currency}");
        let mut errors = FieldErrors::default();
        errors.extend(unfit.map(|(name, _)| FieldError::new(name, FieldCode::Invalid, &rule)));
        errors.extend(tax::incomplete(self.tax_name.as_ref(), self.tax_rate, None));
        errors.or(())
    }
}

impl Update for Organization {
    fn apply(&mut self, _: &Self, _: &Fields, _: &RuleContext<'_>) -> Result<(), Error> {
        self.check_billing()
    }

    fn events(&self, _: &Self, _: bool, _: &Fields) -> Vec<EventType> {
        Vec::new()
    }
}
