//! The store that a platform runs on.

use crate::store::{self, Store, StoreError, memory::Memory};
use std::{fmt, sync::Arc};

/// An open store for [`Platform::with_edge`](crate::Platform::with_edge): made from one of the engines by `into()`, or
/// from a store of your own by [`Engine::custom`].
pub struct Engine(pub(super) Kind);

pub(super) enum Kind {
    Known(Arc<dyn store::Engine>),
    Other(Box<dyn Store>),
}

impl Engine {
    /// An engine of your own. It must pass the suite in `rental_core::store::conformance` (feature `conformance`).
    ///
    /// [`Fleet::export`](crate::platform::Fleet::export) reads all objects of the organization into memory, because the
    /// [`Store`] trait has snapshots of single calls only.
    #[must_use]
    pub fn custom(store: impl Store + 'static) -> Self {
        Self(Kind::Other(Box::new(store)))
    }

    pub(super) fn store(&self) -> &dyn Store {
        match &self.0 {
            Kind::Known(store) => store.as_ref(),
            Kind::Other(store) => store.as_ref(),
        }
    }

    /// Commits the queued batches and closes the store.
    pub(super) async fn close(self) -> Result<(), StoreError> {
        match self.0 {
            Kind::Known(store) => store.close().await,
            Kind::Other(_) => Ok(()),
        }
    }
}

impl From<Memory> for Engine {
    fn from(store: Memory) -> Self {
        Self::custom(store)
    }
}

impl<E: store::Engine + 'static> From<E> for Engine {
    fn from(store: E) -> Self {
        Self(Kind::Known(Arc::new(store)))
    }
}

impl From<Arc<dyn store::Engine>> for Engine {
    fn from(store: Arc<dyn store::Engine>) -> Self {
        Self(Kind::Known(store))
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match &self.0 {
            Kind::Known(store) => store.name(),
            Kind::Other(_) => "custom",
        };
        write!(f, "Engine({name})")
    }
}
