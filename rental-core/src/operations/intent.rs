//! A write before its commit: the intent and the prepared batch.

use super::edge::Edge;
use crate::{
    error::Error,
    resources::{AnyObject, Resource},
    schema::Ask,
    store::{Batch, Revision, Store},
};
use bytes::Bytes;
use std::{any::Any, future::Future, pin::Pin};

/// A prepared write: the batch, and the response that the caller gets after the commit.
#[derive(Debug)]
pub struct Prepared {
    /// The batch to commit; empty when nothing changes.
    pub batch: Batch,
    /// The body of the response: the JSON of the object, as a GET will return it.
    pub body: Bytes,
    /// The revision of the object after the commit.
    pub revision: Revision,
    /// The object that the write is about; `None` when it is about several, or about none.
    pub object: Option<Box<dyn AnyObject>>,
    /// What is looked up beside the commit, for the notices of the response.
    pub asks: Vec<Ask>,
}

impl Prepared {
    /// The object that the write is about.
    ///
    /// # Errors
    /// [`Error::Internal`]: there is none, or it is of another type, which is a bug.
    pub fn object<T: Resource>(&self) -> Result<&T, Error> {
        let object = self.object.as_deref().and_then(|object| (object as &dyn Any).downcast_ref());
        object.ok_or_else(|| Error::Internal(format!("a write is not about a {}", T::SPEC.object)))
    }
}

/// The future of [`Intent::prepare`].
pub type Preparing<'a> = Pin<Box<dyn Future<Output = Result<Prepared, Error>> + Send + 'a>>;

/// A write that can be prepared again when rows that it has read change.
pub trait Intent: Send + Sync {
    /// Reads the store and builds the batch. Writes nothing.
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a>;
}
