//! A write before its commit: the intent and the prepared batch.

use super::edge::Edge;
use crate::{
    error::Error,
    resources::Resource,
    store::{Batch, Revision, Store},
};
use bytes::Bytes;
use std::{future::Future, pin::Pin};

/// A prepared write: the batch, and the object that the caller gets after the commit.
#[derive(Debug)]
pub struct Prepared {
    /// The batch to commit; empty when nothing changes.
    pub batch: Batch,
    /// The JSON of the object, as a GET will return it.
    pub body: Bytes,
    /// The revision of the object after the commit.
    pub revision: Revision,
}

impl Prepared {
    /// Parses the object.
    ///
    /// # Errors
    /// [`Error::Internal`]: the object is of another type, which is a bug.
    pub fn object<T: Resource>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| Error::Internal(error.to_string()))
    }
}

/// The future of [`Intent::prepare`].
pub type Preparing<'a> = Pin<Box<dyn Future<Output = Result<Prepared, Error>> + Send + 'a>>;

/// A write that can be prepared again when rows that it has read change.
pub trait Intent: Send + Sync {
    /// Reads the store and builds the batch. Writes nothing.
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a>;
}
