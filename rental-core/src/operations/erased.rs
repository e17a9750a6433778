//! Writes and copies that honour the list of erased people.
//!
//! The row of an erased customer is written in the batch that redacts the customer's record. From then on every write about
//! the customer finds the row. Every batch that was prepared before checks that the row does not exist. So no event and no
//! object with the customer's data is committed after that batch.

use crate::{
    error::{Error, FieldCode},
    resources::{
        customer,
        personal::{Person, person_in, redacted_copy},
    },
    rows::key,
    schema::{Effects, Fields, Personal, Presence, ResourceSpec},
    store::{Batch, Check, Key, Record, Store, get_one},
    value::{CustomerId, OrganizationId},
};
use bytes::Bytes;

/// The key of the row that exists when this customer was erased.
#[must_use]
pub fn erased_key(organization: OrganizationId, customer: CustomerId) -> Key {
    key::erased(organization, &customer::SPEC, customer.uuid())
}

/// A copy of an object or event as it may be sent or shown now: without personal data when its customer was erased. Also
/// returns the customer that it is about.
///
/// # Errors
/// The store is not available.
pub async fn present_copy(
    store: &dyn Store,
    organization: OrganizationId,
    copy: Bytes,
) -> Result<(Bytes, Option<CustomerId>), Error> {
    let Some(customer) = person_in(&copy) else { return Ok((copy, None)) };
    if get_one(store, &erased_key(organization, customer)).await?.is_none() {
        return Ok((copy, Some(customer)));
    }
    Ok((redacted(&copy, customer)?, Some(customer)))
}

fn redacted(copy: &Bytes, id: CustomerId) -> Result<Bytes, Error> {
    let redacted = redacted_copy(copy, &Person { id, known_as: &[] }).map_err(Error::Internal)?;
    Ok(redacted.unwrap_or_else(|| copy.clone()))
}

/// The customers whom a write is about, and the keys of their rows.
pub(super) struct Subjects {
    /// Before the write, and after it.
    people: [Option<CustomerId>; 2],
    /// Whether a request can name the customer of a new object. A credit note has that of its invoice: what an erased
    /// customer has paid can still be given back.
    can_be_named: bool,
    pub(super) keys: Vec<Key>,
}

impl Subjects {
    pub(super) fn of(
        organization: OrganizationId,
        spec: &ResourceSpec,
        before: Option<&Effects>,
        after: &Effects,
    ) -> Self {
        let field = spec.person().and_then(|name| spec.field(name));
        let can_be_named = field.is_some_and(|field| field.create != Presence::Never);
        let people = [before.and_then(|before| before.person), after.person];
        let mut keys: Vec<Key> = people.into_iter().flatten().map(|person| erased_key(organization, person)).collect();
        keys.dedup();
        Self { people, can_be_named, keys }
    }

    /// Checks a write of the API against the rows that were found for [`Subjects::keys`], and adds the check that no other
    /// row appears. Returns `json` as events show it.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a new object whose request names an erased customer.
    pub(super) fn admit(&self, found: &[Option<Record>], json: &Bytes, batch: &mut Batch) -> Result<Bytes, Error> {
        let absent = self.keys.iter().zip(found).filter(|(_, found)| found.is_none());
        batch.checks.extend(absent.map(|(key, _)| Check::Absent(key.clone())));
        let [before, after] = self.people;
        // The row of the customer after the write is the last one.
        let Some(customer) = after.filter(|_| matches!(found.last(), Some(Some(_)))) else { return Ok(json.clone()) };
        if before != after && self.can_be_named {
            return Err(Error::field("customer_id", FieldCode::Invalid, "names a customer who was erased"));
        }
        redacted(json, customer)
    }
}

/// Refuses a PATCH that adds personal data to an object of an erased customer, or gives the object to another one.
/// Otherwise adds the check that the customer is not erased before the commit.
///
/// # Errors
/// [`Error::Conflict`]: the customer was erased.
pub(super) async fn refuse_update(
    store: &dyn Store,
    organization: OrganizationId,
    (spec, sent): (&ResourceSpec, &Fields),
    before: &Record,
    batch: &mut Batch,
) -> Result<(), Error> {
    let Some(person) = spec.person() else { return Ok(()) };
    let is_personal = |name: &str| spec.field(name).is_some_and(|field| field.personal != Personal::No);
    if !sent.names().any(|name| name == person || is_personal(name)) {
        return Ok(());
    }
    let Some(customer) = person_in(&before.value) else { return Ok(()) };
    let place = erased_key(organization, customer);
    if get_one(store, &place).await?.is_some() {
        let object = spec.object;
        return Err(Error::Conflict(match object == customer::SPEC.object {
            true => "This customer was erased and cannot be changed.".into(),
            false => format!(
                "The customer of this {object} was erased, so no personal data can be added to it and its customer cannot \
                 be changed."
            ),
        }));
    }
    batch.checks.push(Check::Absent(place));
    Ok(())
}
