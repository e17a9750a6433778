//! An operator marks an invoice as paid or void, or a credit note as refunded. What a void invoice billed can be billed again, and
//! what a credit note credits when an operator says so.

use super::{
    bills,
    completion::finish,
    edge::Edge,
    edit::edit,
    intent::{Intent, Preparing},
    read::get,
};
use crate::{
    error::Error,
    resources::{
        Change, Outcome, Resource,
        credit_note::{self, CreditNote, Refund},
        invoice::{self, Invoice, Line, Settlement},
        organization::Organization,
        parse,
        source::{AccountEntry, Source},
    },
    store::{Batch, Key, Record, Store, get_one},
    value::{OrganizationId, Timestamp},
};

/// An operator marks an invoice as paid or void.
pub struct Settle<'a> {
    /// The organization that owns the invoice.
    pub organization: &'a Organization,
    /// The id in the path.
    pub id: &'a str,
    /// Whether it is paid or void.
    pub how: Settlement,
}

impl Intent for Settle<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let (organization, now) = (self.organization, edge.now());
            let before = get(store, organization.id, &invoice::SPEC, self.id).await?;
            let mut invoice: Invoice = parse(&before.key, &before.value)?;
            let effects_before = Some(crate::resources::effects::of(&invoice));
            let event = invoice.settle(self.how, now)?;
            let entries = match self.how {
                Settlement::Paid(_) => Vec::new(),
                Settlement::Void => {
                    let entry = |line: &Line| AccountEntry::Voided(invoice.id, line.billed());
                    invoice.lines.iter().map(|line| (line, entry(line))).collect()
                }
            };
            let elsewhere = changes(store, organization.id, &entries, now).await?;
            let outcome =
                Outcome { elsewhere, ..Outcome::new(invoice, true, event.into_iter().collect(), effects_before)? };
            let mut batch = Batch::default();
            batch.replace(before.key.clone(), before.revision, outcome.json.clone());
            finish(store, edge, organization, &invoice::SPEC, (before.key, before.revision + 1), outcome, batch).await
        })
    }
}

/// An operator notes that the money of a credit note was given back.
pub struct RefundCredit<'a> {
    /// The organization that owns the credit note.
    pub organization: &'a Organization,
    /// The id in the path.
    pub id: &'a str,
    /// How the money was given back.
    pub refund: Refund,
}

impl Intent for RefundCredit<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let (organization, now) = (self.organization, edge.now());
            let before = get(store, organization.id, &credit_note::SPEC, self.id).await?;
            let note: CreditNote = parse(&before.key, &before.value)?;
            // A paid invoice stays paid, so the commit need not check that it is unchanged.
            let place = Invoice::key(organization.id, note.invoice_id);
            let missing = || Error::Internal("the invoice of a credit note is not there".into());
            let invoice: Invoice = parse(&place, &get_one(store, &place).await?.ok_or_else(missing)?.value)?;
            let rule = |note: &mut CreditNote| Ok(vec![note.refund(&invoice, self.refund.clone(), now)?]);
            edit(store, edge, organization, before, rule).await
        })
    }
}

/// An operator lets what a credit note credits be billed again.
pub struct RebillCredit<'a> {
    /// The organization that owns the credit note.
    pub organization: &'a Organization,
    /// The id in the path.
    pub id: &'a str,
}

impl Intent for RebillCredit<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let (organization, now) = (self.organization, edge.now());
            let before = get(store, organization.id, &credit_note::SPEC, self.id).await?;
            let mut note: CreditNote = parse(&before.key, &before.value)?;
            let effects_before = Some(crate::resources::effects::of(&note));
            let again = note.rebill(now);
            if again.is_empty() {
                return edit(store, edge, organization, before, |_: &mut CreditNote| Ok(Vec::new())).await;
            }
            let entries = again.into_iter().map(|(source, amount)| (source, AccountEntry::Credited(amount)));
            let elsewhere = changes_of(store, organization.id, entries.collect(), now).await?;
            let outcome = Outcome { elsewhere, ..Outcome::new(note, true, Vec::new(), effects_before)? };
            let mut batch = Batch::default();
            batch.replace(before.key.clone(), before.revision, outcome.json.clone());
            finish(store, edge, organization, &credit_note::SPEC, (before.key, before.revision + 1), outcome, batch)
                .await
        })
    }
}

/// The changes of what lines bill, by an entry for each line. What is not there any more stays so.
async fn changes(
    store: &dyn Store,
    organization: OrganizationId,
    entries: &[(&Line, AccountEntry)],
    now: Timestamp,
) -> Result<Vec<Change>, Error> {
    let sources = entries.iter().filter_map(|(line, entry)| line.source().map(|(_, source)| (source, *entry)));
    changes_of(store, organization, sources.collect(), now).await
}

async fn changes_of(
    store: &dyn Store,
    organization: OrganizationId,
    sources: Vec<(Source, AccountEntry)>,
    now: Timestamp,
) -> Result<Vec<Change>, Error> {
    if sources.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<Key> = sources.iter().map(|(source, _)| source.key(organization)).collect();
    let found = store.get(&keys).await?;
    let credited = bills::credited_of(store, organization, found.iter().flatten()).await?;
    let change = |((source, entry), record): ((Source, AccountEntry), Option<Record>)| {
        let credited = credited.get(&source.id()).copied().unwrap_or_default();
        let credited = match entry {
            // By the stored credit note, that is still credited for good.
            AccountEntry::Credited(again) => credited.minus(again).unwrap_or_default(),
            _ => credited,
        };
        Some(source.change(record?, entry, credited, now))
    };
    sources.into_iter().zip(found).filter_map(change).collect()
}
