//! A write before its commit: what prepares it, and what was prepared.

use super::edge::Edge;
use crate::{
    error::Error,
    resources::Resource,
    store::{Batch, Revision, Store},
};
use bytes::Bytes;
use std::{future::Future, pin::Pin};

/// A batch, and the object that the caller gets after the commit.
#[derive(Debug)]
pub struct Prepared {
    /// The batch to commit; empty when nothing changes.
    pub batch: Batch,
    /// The object as a GET will return it.
    pub body: Bytes,
    /// Its revision after the commit.
    pub revision: Revision,
}

impl Prepared {
    /// The object as its type.
    ///
    /// # Errors
    /// It is of another type: a bug.
    pub fn object<T: Resource>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| Error::Internal(error.to_string()))
    }
}

/// A future of a write.
pub type Preparing<'a> = Pin<Box<dyn Future<Output = Result<Prepared, Error>> + Send + 'a>>;

/// A write that can be prepared again when what it read has changed.
pub trait Intent: Send + Sync {
    /// Reads and decides, without writing anything.
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a>;
}
