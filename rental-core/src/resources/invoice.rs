//! Invoices (spec, Invoice): read through the API, made by the operator.

use crate::{
    error::Error,
    event::EventType,
    resources::{Create, Facts, Resource, too_large},
    spec::{CREATED_AT, CURRENCY, Kind, ResourceSpec, UPDATED_AT, field, filter, id, object},
    value::{Currency, Money, Timestamp},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The states of an invoice: `open` becomes `paid` or `void`, and nothing else.
pub const STATUSES: &[&str] = &["open", "paid", "void"];

/// What an invoice is.
pub const SPEC: ResourceSpec = ResourceSpec {
    object: "invoice",
    plural: "invoices",
    tag: 4,
    doc: "A bill to a customer for rentals, tolls and violations.",
    fields: &[
        id("\"0190d0f2-7c3a-7cc0-8000-000000000004\""),
        object("\"invoice\""),
        field(
            "invoice_number",
            Kind::Text(255),
            "Human-readable number, without gaps within an organization.",
            "\"INV-000042\"",
        ),
        field(
            "customer_id",
            Kind::Reference("customer"),
            "Billed customer.",
            "\"0190d0f2-7c3a-7cc0-8000-000000000002\"",
        )
        .required()
        .fixed(),
        field(
            "rental_id",
            Kind::Reference("rental"),
            "Rental that it bills, if it is for one.",
            "\"0190d0f2-7c3a-7cc0-8000-000000000003\"",
        )
        .optional()
        .fixed(),
        field("lines", Kind::Lines, "What is billed.", "[{\"description\":\"4 nights\",\"amount\":358}]")
            .required()
            .fixed(),
        field("total", Kind::Money, "Invoice total: the sum of the lines.", "358"),
        CURRENCY,
        field("status", Kind::Word(STATUSES), "Whether it is open, paid or void.", "\"open\""),
        field("paid_at", Kind::Time, "When it was paid.", "null").or_null(),
        field("voided_at", Kind::Time, "When it was voided.", "null").or_null(),
        CREATED_AT,
        UPDATED_AT,
    ],
    filters: &[filter("status", "status"), filter("customer", "customer_id")],
    usual_changes: &[],
};

/// One line of an invoice.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[expect(missing_docs, reason = "two words say it")]
pub struct Line {
    pub description: String,
    pub amount: Money,
}

/// An invoice.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[expect(missing_docs, reason = "each field is documented in SPEC, once")]
pub struct Invoice {
    pub id: Uuid,
    pub object: String,
    pub invoice_number: Option<String>,
    pub customer_id: Uuid,
    pub rental_id: Option<Uuid>,
    pub lines: Vec<Line>,
    pub total: Option<Money>,
    pub currency: Currency,
    pub status: Option<String>,
    pub paid_at: Option<Timestamp>,
    pub voided_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Resource for Invoice {
    const SPEC: &'static ResourceSpec = &SPEC;
    const COUNTER: Option<&'static str> = Some("invoices");

    fn touch(&mut self, now: Timestamp) {
        self.updated_at = self.updated_at.max(now);
    }
}

impl Create for Invoice {
    fn create(&mut self, facts: &Facts<'_>) -> Result<Vec<EventType>, Error> {
        let total = self.lines.iter().try_fold(Money::default(), |sum, line| sum.plus(line.amount));
        self.total = Some(total.ok_or_else(|| too_large("lines"))?);
        self.invoice_number = Some(format!("INV-{:06}", facts.number));
        self.status = Some("open".into());
        Ok(vec![EventType::InvoiceCreated])
    }
}

impl Invoice {
    /// Settles an open invoice: `paid` or, with `void`, voided.
    ///
    /// # Errors
    /// [`Error::Conflict`] when it is not open.
    pub fn settle(&mut self, void: bool, now: Timestamp) -> Result<EventType, Error> {
        let status = self.status.as_deref().unwrap_or_default();
        if status != "open" {
            return Err(Error::Conflict(format!("This invoice is {status}; only an open one can be paid or voided.")));
        }
        let (word, event) = if void { ("void", EventType::InvoiceVoided) } else { ("paid", EventType::InvoicePaid) };
        self.status = Some(word.into());
        *(if void { &mut self.voided_at } else { &mut self.paid_at }) = Some(now);
        self.touch(now);
        Ok(event)
    }
}
