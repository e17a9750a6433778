//! The store that a platform runs on.

use crate::store::{Store, StoreError, memory::Memory};
use std::fmt;

/// An open store for [`Platform::with_edge`](crate::Platform::with_edge): made from one of the engines by `into()`, or
/// from a store of your own by [`Engine::custom`].
pub struct Engine(pub(super) Kind);

pub(super) enum Kind {
    #[cfg(feature = "redb")]
    File(crate::store::redb::Redb),
    #[cfg(feature = "postgres")]
    Database(Box<crate::store::postgres::Postgres>),
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
            #[cfg(feature = "redb")]
            Kind::File(store) => store,
            #[cfg(feature = "postgres")]
            Kind::Database(store) => store.as_ref(),
            Kind::Other(store) => store.as_ref(),
        }
    }

    /// Commits the queued batches and closes the store.
    pub(super) async fn close(self) -> Result<(), StoreError> {
        match self.0 {
            #[cfg(feature = "redb")]
            Kind::File(store) => store.close(),
            #[cfg(feature = "postgres")]
            Kind::Database(store) => {
                store.close().await;
                Ok(())
            }
            Kind::Other(_) => Ok(()),
        }
    }
}

impl From<Memory> for Engine {
    fn from(store: Memory) -> Self {
        Self::custom(store)
    }
}

#[cfg(feature = "redb")]
impl From<crate::store::redb::Redb> for Engine {
    fn from(store: crate::store::redb::Redb) -> Self {
        Self(Kind::File(store))
    }
}

#[cfg(feature = "postgres")]
impl From<crate::store::postgres::Postgres> for Engine {
    fn from(store: crate::store::postgres::Postgres) -> Self {
        Self(Kind::Database(Box::new(store)))
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            #[cfg(feature = "redb")]
            Kind::File(_) => "Engine(redb)",
            #[cfg(feature = "postgres")]
            Kind::Database(_) => "Engine(postgres)",
            Kind::Other(_) => "Engine(custom)",
        })
    }
}
