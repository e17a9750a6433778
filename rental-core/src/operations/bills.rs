//! The invoices that bill an object, and what their credit notes credit of it for good: that stays billed, so that no invoice bills
//! it again, but the customer does not owe it.

use crate::{
    error::Error,
    resources::{
        Attributable, Resource,
        credit_note::CreditNote,
        invoice::{Invoice, InvoiceStatus},
        parse,
        violation::Violation,
    },
    rows::Row,
    store::{Key, Record, Store},
    value::{InvoiceId, Money, OrganizationId, Text},
};
use std::collections::HashMap;
use uuid::Uuid;

/// What invoices and credit notes tell of an object.
#[derive(Default)]
pub(super) struct Bills {
    /// What is credited of it for good. Credit notes never change otherwise, so this falls only when one says that it can be
    /// billed again.
    pub(super) credited: Money,
    /// The number of the last invoice.
    pub(super) last: Option<Text>,
    /// Whether that invoice can be voided: it is open, and nothing of it is credited.
    pub(super) voidable: bool,
}

/// Reads the invoices that bill the object with this id, and their credit notes.
pub(super) async fn read(
    store: &dyn Store,
    organization: OrganizationId,
    invoices: &[InvoiceId],
    id: Uuid,
) -> Result<Bills, Error> {
    let places: Vec<Key> = invoices.iter().map(|id| Invoice::key(organization, *id)).collect();
    let mut bills = Bills::default();
    for record in store.get(&places).await?.into_iter().flatten() {
        let invoice: Invoice = parse(&record.key, &record.value)?;
        let notes: Vec<Key> = invoice.credit_note_ids.iter().map(|id| CreditNote::key(organization, *id)).collect();
        let notes = if notes.is_empty() { Vec::new() } else { store.get(&notes).await? };
        for record in notes.into_iter().flatten() {
            let note: CreditNote = parse(&record.key, &record.value)?;
            let own = note.lines.iter().filter(|line| line.rebill != Some(true) && line.bills(id));
            bills.credited = own.fold(bills.credited, |sum, line| sum.plus(line.gross()).unwrap_or(Money::MAX));
        }
        bills.voidable = invoice.status == Some(InvoiceStatus::Open) && invoice.credit_note_ids.is_empty();
        bills.last = invoice.invoice_number;
    }
    Ok(bills)
}

/// Why a person has to look at the bill of an object, if there is a reason. Invoices are read only when more is billed than it costs.
///
/// # Errors
/// The store is not available.
pub(crate) async fn bill_review<T: Attributable>(
    store: &dyn Store,
    organization: OrganizationId,
    object: &T,
) -> Result<Option<Text>, Error> {
    Ok(object.bill_review(credited(store, organization, object).await?))
}

/// What is credited of an object for good, as far as it decides whether a person has to look at its bill: 0 when no more is billed
/// than it costs.
///
/// # Errors
/// The store is not available.
pub(crate) async fn credited<T: Attributable>(
    store: &dyn Store,
    organization: OrganizationId,
    object: &T,
) -> Result<Money, Error> {
    if object.bill_review(Money::default()).is_none() {
        return Ok(Money::default());
    }
    Ok(read(store, organization, object.account().1, object.id().uuid()).await?.credited)
}

fn is_violation(key: &Key) -> bool {
    matches!(Row::decode(key), Some(Row::Record { resource, .. }) if resource == Violation::SPEC.tag)
}

/// [`credited`] of each violation among these records, where it is not 0.
pub(super) async fn credited_of(
    store: &dyn Store,
    organization: OrganizationId,
    records: impl Iterator<Item = &Record>,
) -> Result<HashMap<Uuid, Money>, Error> {
    let mut all = HashMap::new();
    for record in records.filter(|record| is_violation(&record.key)) {
        let violation: Violation = parse(&record.key, &record.value)?;
        let sum = credited(store, organization, &violation).await?;
        if !sum.is_zero() {
            all.insert(violation.id.uuid(), sum);
        }
    }
    Ok(all)
}
