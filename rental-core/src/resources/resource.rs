//! The trait of all resources, and the JSON of their stored objects.

use crate::{
    error::Error,
    rows::key,
    schema::{Effects, IndexValue, ResourceSpec},
    store::Key,
    value::{Id, OrganizationId, Timestamp},
};
use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};
use std::{any::Any, fmt};
use uuid::Uuid;

/// A resource: the struct of its objects and its description.
pub trait Resource: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// What its ids name: the `K` of its [`Id`].
    type Kind: 'static;

    /// The description, which checks, indexes and the documentation use.
    const SPEC: &'static ResourceSpec;
    /// The name of the counter that numbers new objects; `None` when they are not numbered.
    const COUNTER: Option<&'static str> = None;

    /// The id of the object.
    fn id(&self) -> Id<Self::Kind>;

    /// The key of the object of `organization` with this id.
    #[must_use]
    fn key(organization: OrganizationId, id: Id<Self::Kind>) -> Key {
        key::record(organization, Self::SPEC, id.uuid())
    }

    /// The value of a field that an index of [`Resource::SPEC`] compares; `None` when the field is `null`.
    fn index_value(&self, _field: &str) -> Option<IndexValue<'_>> {
        None
    }

    /// The organization that the object names: the owner of a key or webhook endpoint, or an organization itself.
    fn organization(&self) -> Option<OrganizationId> {
        match self.index_value("organization_id") {
            Some(IndexValue::Id(id)) => Some(OrganizationId::from_uuid(id)),
            _ => None,
        }
    }

    /// Sets `updated_at` for a change at `now`; always later than before.
    fn touch(&mut self, now: Timestamp);

    /// The rows derived from the object, without its index entries; [`effects::of`](super::effects::of) adds them.
    fn effects(&self) -> Effects {
        Effects::default()
    }
}

/// An object whose resource is known only at run time. `&dyn Any` gives it its type again.
pub trait AnyObject: Any + Send + Sync {
    /// The organization that the object names, and the id of the object.
    fn subject(&self) -> (Option<OrganizationId>, Uuid);
}

impl<T: Resource> AnyObject for T {
    fn subject(&self) -> (Option<OrganizationId>, Uuid) {
        (self.organization(), self.id().uuid())
    }
}

impl fmt::Debug for dyn AnyObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyObject").field(&self.subject().1).finish()
    }
}

/// Parses a stored object.
///
/// # Errors
/// [`Error::Damaged`]: the record does not parse.
pub fn parse<T: Resource>(key: &Key, value: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(value).map_err(|error| Error::damaged(key, &error))
}

/// Serializes an object for the store. [`parse`] is the inverse.
///
/// # Errors
/// [`Error::Internal`]: the object cannot be serialized, which is a bug.
pub fn to_json(object: &impl Serialize) -> Result<Bytes, Error> {
    let unwritable = |error| Error::Internal(format!("an object cannot be written as JSON: {error}"));
    serde_json::to_vec(object).map(Bytes::from).map_err(unwritable)
}
