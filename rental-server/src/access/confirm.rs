//! Whether what the gate remembers of a key still holds, found out with what the request reads anyway.
//!
//! Where several servers share a store, another one may have revoked a key or changed a plan a moment ago. Asking for
//! that first would cost every request a round trip. So the request is handled on what is remembered, its first read asks for
//! the key and its organization as well, and nothing is committed or answered before both are as they were.

use crate::access::gate::Pass;
use futures_util::future::join;
use rental_core::{
    resources::{
        api_key,
        organization::{self, SYSTEM},
    },
    rows::key,
    store::{Answer, Batch, Commit, Key, Record, Revision, Scanned, Span, Store, StoreError},
};
use std::sync::OnceLock;

/// The store for one request.
pub(crate) struct Confirming<'a> {
    store: &'a dyn Store,
    /// The key and its organization, and the revisions that are remembered.
    keys: [Key; 2],
    revisions: [Revision; 2],
    /// Whether they are as remembered, once that is known.
    holds: OnceLock<bool>,
}

impl<'a> Confirming<'a> {
    pub(crate) fn new(store: &'a dyn Store, pass: &Pass) -> Self {
        let (key, organization) = (pass.principal.key.id, pass.principal.organization.id);
        let keys = [key::record(SYSTEM, &api_key::SPEC, key), key::record(SYSTEM, &organization::SPEC, organization)];
        Self { store, keys, revisions: pass.revisions, holds: OnceLock::new() }
    }

    /// Whether the pass holds; asks if no read has told yet.
    pub(crate) async fn holds(&self) -> Result<bool, StoreError> {
        match self.holds.get() {
            Some(holds) => Ok(*holds),
            None => Ok(self.settle(&self.store.get(&self.keys).await?).is_ok()),
        }
    }

    fn settle(&self, found: &[Option<Record>]) -> Result<(), StoreError> {
        let as_remembered = found.iter().flatten().map(|record| record.revision).eq(self.revisions);
        if *self.holds.get_or_init(|| as_remembered) { Ok(()) } else { Err(outdated()) }
    }
}

/// Ends the handling of the request, which begins anew then. No caller sees it.
fn outdated() -> StoreError {
    StoreError::Unavailable("the key or its organization has changed".into())
}

impl Store for Confirming<'_> {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        if self.holds.get() == Some(&true) {
            return self.store.get(keys);
        }
        Box::pin(async move {
            let all = [keys, &self.keys].concat();
            let mut found = self.store.get(&all).await?;
            let ours = found.split_off(keys.len());
            self.settle(&ours).map(|()| found)
        })
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        if self.holds.get() == Some(&true) {
            return self.store.scan(span, limit);
        }
        Box::pin(async move {
            let (ours, found) = join(self.store.get(&self.keys), self.store.scan(span, limit)).await;
            self.settle(&ours?)?;
            found
        })
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        Box::pin(async move { if self.holds().await? { self.store.commit(batch).await } else { Err(outdated()) } })
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.store.ready()
    }
}
