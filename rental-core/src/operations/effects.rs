//! Changes the rows derived from an object. Adds the difference between the derived rows before and after to the batch.

use crate::{
    error::Error,
    operations::holds,
    resources::organization::Organization,
    rows::{
        claim::{claim_value, identity_key, read_claim},
        key,
    },
    schema::{Effects, IndexPrefix, ResourceSpec},
    store::{Batch, Check, Key, Prior, Store, get_one},
};
use bytes::Bytes;
use uuid::Uuid;

/// Adds the writes that turn the derived rows `before` into `after`, and the checks that they need.
///
/// # Errors
/// [`Error::Conflict`] when the object exists already, bills what another invoice bills, or is billed and would change
/// its charge; [`Error::VehicleUnavailable`] for a hold that clashes.
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
    for source in before.bills.iter().filter(|source| !after.bills.contains(source)) {
        batch.delete(key::billed(organization.id, *source));
    }
    for source in after.bills.iter().filter(|source| !before.bills.contains(source)) {
        claim(store, key::billed(organization.id, *source), claim_value(id, None), batch, |other| {
            format!("{source} is already billed on invoice {other}. Void that invoice first, or leave it out.")
        })
        .await?;
    }
    if !is_new && before.charge != after.charge {
        let billed = key::billed(organization.id, id);
        if let Some(invoice) = holder(store, &billed).await? {
            return Err(Error::Conflict(format!(
                "This {} is billed on invoice {invoice}. Void that invoice before you change who pays or how much.",
                spec.object
            )));
        }
        batch.checks.push(Check::Absent(billed));
    }
    holds::change(store, organization.id, organization.booking_policy, before.hold, (after.hold, prior), batch).await
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
    found.map(|record| read_claim(&record.value).map(|(id, _)| id)).transpose()
}
