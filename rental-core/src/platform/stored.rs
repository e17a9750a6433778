//! An object with its revision.

use crate::{
    error::Error,
    operations::Written,
    resources::{Resource, parse},
    store::{Record, Revision},
};
use std::{any::Any, ops::Deref};

/// A stored object with its revision. It dereferences to the object: `rental.status`.
///
/// It is a copy: later writes do not change it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored<T> {
    object: T,
    revision: Revision,
    replayed: bool,
}

impl<T> Stored<T> {
    /// How many times the object was written: 1 when it is new. Give it to
    /// [`UpdateRequest::if_revision`](crate::platform::UpdateRequest::if_revision) to change only what you have seen.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Whether this is the stored response to an earlier write with the same idempotency key. The object may have
    /// changed since then.
    #[must_use]
    pub fn is_replayed(&self) -> bool {
        self.replayed
    }

    /// The object without its revision.
    #[must_use]
    pub fn into_object(self) -> T {
        self.object
    }
}

impl<T: Resource> Stored<T> {
    /// Reads a record.
    pub(super) fn of(record: Record) -> Result<Self, Error> {
        Ok(Self { object: parse(&record.key, &record.value)?, revision: record.revision, replayed: false })
    }

    /// Takes the object of a write. Only a replay parses the response.
    pub(super) fn written(written: Written) -> Result<Self, Error> {
        let Written { body, revision, object, replayed, .. } = written;
        let parsed = || {
            crate::value::read_json(&body)
                .map_err(|error| Error::Internal(format!("a written {} does not parse: {error}", T::SPEC.object)))
        };
        let object = object.and_then(|object| (object as Box<dyn Any>).downcast().ok());
        let object = object.map_or_else(parsed, |object| Ok(*object))?;
        Ok(Self { object, revision: revision.unwrap_or(1), replayed })
    }
}

impl<T> Deref for Stored<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.object
    }
}
