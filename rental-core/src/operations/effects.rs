//! Changes the rows derived from an object. Adds the difference between the derived rows before and after to the batch.

use crate::{
    error::Error,
    operations::holds,
    resources::organization::Organization,
    rows::claim::{claim_value, identity_key, read_claim},
    schema::{Effects, IndexPrefix, ResourceSpec},
    store::{Batch, Key, Prior, Store, get_one},
};
use bytes::Bytes;
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
        return Err(Error::Conflict(format!(
            "This {} is billed on invoice {invoice}. Void that invoice, or credit its line, before you change who pays or \
             lower the amount below the {billed} that is billed.",
            spec.object
        )));
    }
    holds::change(store, organization.id, organization.booking_policy, &before.holds, (&after.holds, prior), batch)
        .await
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
