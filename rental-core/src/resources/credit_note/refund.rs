//! The refund of a credit note: when money can have been given back.

use super::CreditNote;
use crate::{
    error::Error,
    resources::{
        Object,
        event::EventType,
        invoice::{Invoice, InvoiceStatus},
    },
    value::{Text, Timestamp},
};

/// How money was given back.
#[derive(Clone, Debug, Default)]
pub struct Refund {
    /// When; `None` is now.
    pub at: Option<Timestamp>,
    /// How, such as `card`.
    pub method: Option<Text>,
    /// The number of the payment.
    pub reference: Option<Text>,
}

impl CreditNote {
    /// Notes that the money was given back, and returns the event.
    ///
    /// # Errors
    /// [`Error::Conflict`] when it was given back before, when the invoice was not paid, or when it was paid after this credit:
    /// then the customer paid less.
    pub(crate) fn refund(&mut self, invoice: &Invoice, refund: Refund, now: Timestamp) -> Result<EventType, Error> {
        if let Some(before) = self.refunded_at {
            return Err(Error::Conflict(format!("This credit note was refunded already, on {before}.")));
        }
        if invoice.status != Some(InvoiceStatus::Paid) {
            let number = invoice.invoice_number.as_deref().unwrap_or_default();
            return Err(Error::Conflict(format!(
                "Invoice {number} is not paid, so there is nothing to give back. The credit lowers what the customer owes. If \
                 the customer paid before this credit, mark the invoice as paid with the time of that payment (`paid_at`), \
                 which is before {}; then note the refund.",
                self.created_at
            )));
        }
        // An object with a chosen id, as those of the demo, can seem older than its invoice: then its time tells nothing.
        let was_before = |paid: &Timestamp| invoice.created_at <= self.created_at && self.created_at < *paid;
        if let Some(paid) = invoice.paid_at.filter(was_before) {
            let number = invoice.invoice_number.as_deref().unwrap_or_default();
            let (note, credit) =
                (self.credit_note_number.as_deref().unwrap_or_default(), self.total.unwrap_or_default());
            return Err(Error::Conflict(format!(
                "Credit note {note} was issued before invoice {number} was paid, on {paid}. So the customer owed {credit} less and \
                 paid that much less: there is nothing to give back. If the customer paid before this credit and the payment was \
                 booked late, mark the invoice as paid again with the time of that payment (`paid_at`), which is before {}; then \
                 note the refund.",
                self.created_at
            )));
        }
        self.refunded_at = Some(refund.at.unwrap_or(now));
        (self.refund_method, self.refund_reference) = (refund.method, refund.reference);
        self.touch(now);
        Ok(EventType::CreditNoteRefunded)
    }
}
