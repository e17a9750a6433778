//! What an object means for keys beside its own: the nights that it holds, the look-ups that find it, what it bills.
//!
//! A resource says it once, as a value; here the difference between before and after becomes writes and checks of the
//! same batch.

use crate::{
    error::Error,
    holds::{self, Hold},
    resources::{Resource, organization::Organization},
    spec::{IndexPrefix, ResourceSpec},
    store::{Batch, Check, Key, Prior, Store, key},
    value::Money,
};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Who pays for something and how much: fixed while an invoice bills it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Charge {
    /// Who it is attached to.
    pub customer: Option<Uuid>,
    /// How much, if that is fixed too: what is due to a city changes when somebody pays it.
    pub amount: Option<Money>,
}

/// Everything that an object means beside itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    /// The nights for which it holds a vehicle.
    pub hold: Option<Hold>,
    /// Its entries in indexes and look-ups, without the organization and the id.
    pub entries: Vec<IndexPrefix>,
    /// What there can be only one of, in words; looked at when the object is made.
    pub identity: Option<String>,
    /// The tolls and violations that it bills.
    pub bills: Vec<Uuid>,
    /// What an invoice can bill of it.
    pub charge: Option<Charge>,
}

/// Everything that an object means beside itself: what its resource says, and its entries in the indexes of its filters.
pub fn of<T: Resource>(object: &T) -> Effects {
    let mut effects = object.effects();
    effects.entries.extend(T::SPEC.index_prefixes(|field| object.index_value(field)));
    effects
}

/// The keys of the index entries that serve the filters of an object's list.
pub fn index_keys<T: Resource>(organization: Uuid, object: &T) -> Vec<Key> {
    T::SPEC.index_keys(organization, object.id(), |field| object.index_value(field))
}

/// The key under which the one object with this identity is known.
#[must_use]
pub fn identity_key(organization: Uuid, spec: &ResourceSpec, identity: &str) -> Key {
    let hash: [u8; 32] = Sha256::digest(identity.as_bytes()).into();
    key::identity(organization, spec, &hash)
}

/// Adds to `batch` what turns `before` into `after`, with the checks that make it safe.
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

/// Takes a key that only one object can have.
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

/// The object that has a key which only one can have.
async fn holder(store: &dyn Store, place: &Key) -> Result<Option<Uuid>, Error> {
    let found = store.get(std::slice::from_ref(place)).await?.pop().flatten();
    found.map(|record| read_claim(&record.value).map(|(id, _)| id)).transpose()
}

/// The value of a claim: the id of who has it and, for what has one, the amount that came with it.
#[must_use]
pub fn claim_value(id: Uuid, amount: Option<Money>) -> Bytes {
    let mut value = id.as_bytes().to_vec();
    value.extend(amount.map(|amount| amount.to_string()).unwrap_or_default().into_bytes());
    value.into()
}

/// The id and the amount in a claim.
///
/// # Errors
/// The store holds something else there.
pub fn read_claim(value: &[u8]) -> Result<(Uuid, Option<Money>), Error> {
    let wrong = || Error::Internal("a claim holds neither an id nor an amount".into());
    let (id, amount) = value.split_at_checked(16).ok_or_else(wrong)?;
    let id = Uuid::from_slice(id).map_err(|_| wrong())?;
    let text = std::str::from_utf8(amount).map_err(|_| wrong())?;
    let amount = if text.is_empty() { None } else { Some(Money::parse(text, 4).map_err(|_| wrong())?) };
    Ok((id, amount))
}
