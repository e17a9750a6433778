//! The trait of every kind of object, and how a stored object is read.

use crate::{
    error::Error,
    rows::key,
    schema::{Effects, IndexValue, ResourceSpec},
    store::Key,
    value::{Id, OrganizationId, Timestamp},
};
use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};

/// A kind of object: its struct and its description.
pub trait Resource: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// What its ids name: the `K` of its [`Id`].
    type Kind: 'static;

    /// The description, from which checks, indexes and documents are made.
    const SPEC: &'static ResourceSpec;
    /// The counter that numbers new objects, if they are numbered.
    const COUNTER: Option<&'static str> = None;

    /// Its id.
    fn id(&self) -> Id<Self::Kind>;

    /// The key of the object of `organization` with this id.
    #[must_use]
    fn key(organization: OrganizationId, id: Id<Self::Kind>) -> Key {
        key::record(organization, Self::SPEC, id.uuid())
    }

    /// The value of a field that an index of [`Resource::SPEC`] compares; `None` when it is empty.
    fn index_value(&self, _field: &str) -> Option<IndexValue<'_>> {
        None
    }

    /// Sets `updated_at`.
    fn touch(&mut self, now: Timestamp);

    /// What the object means for other rows, without its index entries; [`effects::of`](super::effects::of) adds them.
    fn effects(&self) -> Effects {
        Effects::default()
    }
}

/// Reads a stored object.
///
/// # Errors
/// The record does not parse: the store is damaged.
pub fn parse<T: Resource>(key: &Key, value: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(value).map_err(|error| Error::damaged(key, &error))
}

/// Writes an object as the store keeps it; [`parse`] reads it.
///
/// # Errors
/// The object has no JSON: a bug.
pub fn to_json(object: &impl Serialize) -> Result<Bytes, Error> {
    serde_json::to_vec(object).map(Bytes::from).map_err(|error| Error::Internal(error.to_string()))
}
