//! An open store with its clock, ids and randomness, shared by everything that was made from one platform.

use super::{edge::PlatformEdge, engine::Engine, stored::Stored};
use crate::{
    error::Error,
    operations,
    resources::organization::{self, Organization, SYSTEM},
    store::{Store, StoreError},
    value::OrganizationId,
};
use std::{fmt, sync::Arc};

#[derive(Clone)]
pub(super) struct Context(Arc<Parts>);

struct Parts {
    engine: Engine,
    edge: Box<dyn PlatformEdge>,
}

impl Context {
    pub(super) fn new(engine: Engine, edge: Box<dyn PlatformEdge>) -> Self {
        Self(Arc::new(Parts { engine, edge }))
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.0.engine
    }

    pub(super) fn store(&self) -> &dyn Store {
        self.0.engine.store()
    }

    pub(super) fn edge(&self) -> &dyn PlatformEdge {
        self.0.edge.as_ref()
    }

    /// Reads the present record of the organization.
    pub(super) async fn organization(&self, id: &str) -> Result<Stored<Organization>, Error> {
        let record = operations::get(self.store(), SYSTEM, &organization::SPEC, id).await?;
        Stored::of(record)
    }

    /// The organization with this id; for [`SYSTEM`] that of the operator's own objects.
    pub(super) async fn owner(&self, owner: OrganizationId) -> Result<Organization, Error> {
        if owner == SYSTEM {
            return Ok(Organization::system());
        }
        self.organization(&owner.to_string()).await.map(Stored::into_object)
    }

    /// Closes the store; `None` when other clones use it, so that it stays open.
    pub(super) async fn close(self) -> Option<Result<(), StoreError>> {
        match Arc::try_unwrap(self.0) {
            Ok(parts) => Some(parts.engine.close().await),
            Err(_) => None,
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.engine.fmt(f)
    }
}
