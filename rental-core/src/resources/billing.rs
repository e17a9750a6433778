//! What rentals, tolls and violations have in common: invoices bill them, in parts if asked, and never above their price.

use super::resource::Resource;
use crate::{
    error::Error,
    schema::MOST_INVOICES,
    value::{InvoiceId, Money},
};

/// How the description of an invoice's line with a fee begins: of tolls, and of violations. `: ` follows.
pub const TOLL_FEE: &str = "Toll fee";
/// The same for violations.
pub const VIOLATION_FEE: &str = "Violation fee";

/// A resource whose objects invoices bill.
pub trait Billable: Resource {
    /// The most that invoices can bill of it; `None` for a rental without a price, which can be billed once.
    fn price(&self) -> Option<Money>;
    /// `amount_billed` and `invoice_ids`.
    fn account(&self) -> (Money, &[InvoiceId]);
    /// Sets `amount_billed` and `invoice_ids`.
    fn set_account(&mut self, billed: Money, invoices: Vec<InvoiceId>);

    /// Lists the object, or no longer, by what invoices bill of it and how much of that is credited for good.
    fn note_bill(&mut self, _credited: Money) {}

    /// What is left to bill of the price. An amount that fell after it was billed leaves 0.
    fn left_to_bill(&self) -> Money {
        self.price().and_then(|price| price.minus(self.account().0)).unwrap_or_default()
    }

    /// What invoices bill, and the last one of them; `None` when that is nothing.
    fn billed(&self) -> Option<(Money, InvoiceId)> {
        let (amount, invoices) = self.account();
        invoices.last().filter(|_| !amount.is_zero()).map(|last| (amount, *last))
    }

    /// The amount that a new line bills: the wanted one, or all that is left. The error is the rule for `amount`.
    ///
    /// # Errors
    /// [`Error::Conflict`]: nothing is left to bill.
    fn amount_to_bill(&self, wanted: Option<Money>) -> Result<Result<Money, String>, Error> {
        let (billed, invoices) = self.account();
        let left = self.left_to_bill();
        let is_left = match self.price() {
            Some(_) => !left.is_zero(),
            None => billed.is_zero(),
        };
        if let Some(last) = invoices.last().filter(|_| !is_left) {
            let (object, id) = (Self::SPEC.object, self.id());
            return Err(Error::Conflict(format!(
                "The {object} {id} is already billed on invoice {last}. Leave it out, or first void that invoice, or \
                 credit its line with `--rebill true` if it is paid or credited already."
            )));
        }
        if invoices.len() >= MOST_INVOICES {
            let (object, id) = (Self::SPEC.object, self.id());
            return Err(Error::Conflict(format!(
                "The {object} {id} is on {MOST_INVOICES} invoices, which is the most. Bill the rest with a line of its own."
            )));
        }
        Ok(match (wanted, self.price()) {
            (Some(wanted), Some(price)) if wanted > left => {
                Err(format!("must be at most {left}: of {price}, {billed} is billed already"))
            }
            (Some(wanted), _) => Ok(wanted),
            (None, Some(_)) => Ok(left),
            (None, None) => Err("is required, as this rental has no price".into()),
        })
    }

    /// Adds a line of an invoice. `None` above [`Money::MAX`].
    fn add_invoice(&mut self, invoice: InvoiceId, amount: Money) -> Option<()> {
        let (billed, invoices) = self.account();
        let (billed, mut invoices) = (billed.plus(amount)?, invoices.to_vec());
        invoices.push(invoice);
        self.set_account(billed, invoices);
        Some(())
    }

    /// Subtracts what a credit note makes billable again. The invoice stays listed: it has a line for the object.
    fn credit(&mut self, amount: Money) {
        let (billed, invoices) = self.account();
        let (billed, invoices) = (billed.minus(amount).unwrap_or_default(), invoices.to_vec());
        self.set_account(billed, invoices);
    }

    /// Removes a line of an invoice that is void.
    fn take_off(&mut self, voided: InvoiceId, amount: Money) {
        let (billed, invoices) = self.account();
        let kept = invoices.iter().copied().filter(|id| *id != voided).collect();
        self.set_account(billed.minus(amount).unwrap_or_default(), kept);
    }
}
