//! Changes the rows derived from an object. Adds the difference between the derived rows before and after to the batch.

use crate::{
    error::Error,
    operations::{
        bills::{self, Bills},
        holds,
    },
    resources::organization::Organization,
    rows::{
        claim::{claim_value, identity_key, read_claim},
        key,
    },
    schema::{Effects, IndexPrefix, ResourceSpec},
    store::{Batch, Key, Prior, Store, get_one},
    value::{InvoiceId, OrganizationId, Text},
};
use bytes::Bytes;
use serde::Deserialize;
use uuid::Uuid;

/// Adds the writes that turn the derived rows `before` into `after`, and the checks that they need.
///
/// # Errors
/// [`Error::Conflict`] when the object exists already, or is billed and would get another customer or a lower amount; [`Error::VehicleUnavailable`] for a hold that clashes.
pub(crate) async fn change(
    store: &dyn Store,
    organization: &Organization,
    (spec, id): (&'static ResourceSpec, Uuid),
    before: Option<Effects>,
    after: Effects,
    batch: &mut Batch,
) -> Result<(), Error> {
    let is_new = before.is_none();
    let before = before.unwrap_or_default();
    let prior = if is_new { Prior::New } else { Prior::Any };
    let entry = |prefix: &IndexPrefix| prefix.entry(organization.id, spec, id);
    let gone = before.entries.iter().filter(|prefix| !after.entries.contains(prefix));
    gone.for_each(|prefix| batch.delete(entry(prefix)));
    let new = after.entries.iter().filter(|prefix| !before.entries.contains(prefix));
    new.for_each(|prefix| batch.mark(entry(prefix), prior));
    if is_new && let Some(identity) = &after.identity {
        let value = claim_value(id, after.charge.and_then(|charge| charge.amount));
        claim(store, identity_key(organization.id, spec, identity), value, batch, |other| {
            format!("This {} is already recorded as {other}.", spec.object)
        })
        .await?;
    }
    if let (Some(before), Some(after)) = (before.charge, after.charge)
        && let Some((billed, invoice)) = after.billed
        && (before.customer != after.customer || after.amount.is_some_and(|amount| amount < billed))
    {
        // What was credited for good is billed no more, though the object keeps it as billed so that no invoice bills it again.
        let (name, bills) = bills_of(store, organization.id, spec, id).await?;
        let (credited, left) = (bills.credited, billed.minus(bills.credited).unwrap_or_default());
        if before.customer != after.customer || after.amount.is_some_and(|amount| amount < left) {
            let stands = match credited.is_zero() {
                true => format!("the {billed} that is billed"),
                false => format!("{left}: {billed} is billed, and of that {credited} is credited"),
            };
            let what = name
                .as_ref()
                .map_or_else(|| format!("This {}", spec.object), |name| format!("The {} {name}", spec.object));
            let line = name.map(|name| format!(" --line \"{}:{name}\"", spec.object)).unwrap_or_default();
            let invoice = bills.last.map_or_else(|| invoice.to_string(), |number| number.to_string());
            // A paid or credited invoice is not voided.
            let first = match bills.voidable {
                true => format!("Void that invoice (`rental-cli invoices void {invoice}`), or credit"),
                false => "Credit".to_owned(),
            };
            return Err(Error::Conflict(format!(
                "{what} is billed on invoice {invoice}. {first} its line \
                 (`rental-cli invoices credit {invoice}{line}`, with `--rebill true` if somebody else pays; `rental-cli credit-notes \
                 rebill` adds that later), before you change who pays or lower the amount below {stands}."
            )));
        }
    }
    holds::change(store, organization.id, organization.booking_policy, &before.holds, (&after.holds, prior), batch)
        .await
}

/// What an object needs to find its invoices, and the number by which people know it.
#[derive(Deserialize)]
struct Billed {
    invoice_ids: Vec<InvoiceId>,
    #[serde(alias = "transaction_id", alias = "summons_number", alias = "booking_id")]
    number: Option<Text>,
}

/// The number of an object, and what invoices and credit notes tell of it.
async fn bills_of(
    store: &dyn Store,
    organization: OrganizationId,
    spec: &'static ResourceSpec,
    id: Uuid,
) -> Result<(Option<Text>, Bills), Error> {
    let place = key::record(organization, spec, id);
    let Some(record) = get_one(store, &place).await? else { return Ok((None, Bills::default())) };
    let of: Billed = crate::value::read_json(&record.value)
        .map_err(|error| Error::damaged_row(&place, format!("it has no `invoice_ids`: {error}")))?;
    Ok((of.number, bills::read(store, organization, &of.invoice_ids, id).await?))
}

/// Adds a claim to the batch, unless another object has it.
async fn claim(
    store: &dyn Store,
    place: Key,
    value: Bytes,
    batch: &mut Batch,
    taken: impl FnOnce(Uuid) -> String,
) -> Result<(), Error> {
    if let Some(other) = holder(store, &place).await? {
        return Err(Error::Conflict(taken(other)));
    }
    batch.insert(place, value);
    Ok(())
}

/// The object that has a claim, if there is one.
async fn holder(store: &dyn Store, place: &Key) -> Result<Option<Uuid>, Error> {
    let found = get_one(store, place).await?;
    found.map(|record| read_claim(&record).map(|(id, _)| id)).transpose()
}
