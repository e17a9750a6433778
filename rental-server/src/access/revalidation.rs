//! Checks that the cached key and organization of a request are current, with the reads that the request makes anyway.
//!
//! Where several servers share a store, another server can revoke a key or change a plan. Reading both first would cost
//! every request a round trip. So the request is handled with the cached values, and its first read also reads the key
//! and the organization. Nothing is committed or sent before both have the cached revisions.

use crate::access::authentication::Pass;
use futures_util::future::join;
use rental_core::{
    resources::{
        Resource,
        api_key::ApiKey,
        organization::{Organization, SYSTEM},
    },
    store::{Answer, Batch, Commit, Key, Record, Revision, Scanned, Span, Store, StoreError},
};
use std::sync::OnceLock;

/// The store for one request.
pub(crate) struct Revalidating<'a> {
    store: &'a dyn Store,
    /// The rows of the key and its organization, and their cached revisions.
    keys: [Key; 2],
    revisions: [Revision; 2],
    /// Whether the revisions are current, once they were read.
    current: OnceLock<bool>,
}

impl<'a> Revalidating<'a> {
    pub(crate) fn new(store: &'a dyn Store, pass: &Pass) -> Self {
        let (key, organization) = (pass.principal.key.id, pass.principal.organization.id);
        let keys = [ApiKey::key(SYSTEM, key), Organization::key(SYSTEM, organization)];
        Self { store, keys, revisions: pass.revisions, current: OnceLock::new() }
    }

    /// Whether the cached values are current. Reads them if no read has done so.
    pub(crate) async fn is_current(&self) -> Result<bool, StoreError> {
        match self.current.get() {
            Some(current) => Ok(*current),
            None => Ok(self.compare(&self.store.get(&self.keys).await?).is_ok()),
        }
    }

    fn compare(&self, found: &[Option<Record>]) -> Result<(), StoreError> {
        let as_cached = found.iter().flatten().map(|record| record.revision).eq(self.revisions);
        if *self.current.get_or_init(|| as_cached) { Ok(()) } else { Err(outdated()) }
    }
}

/// Ends the handling of the request, which then begins again. No client sees it.
fn outdated() -> StoreError {
    StoreError::Unavailable("the key or its organization has changed".into())
}

impl Store for Revalidating<'_> {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        if self.current.get() == Some(&true) {
            return self.store.get(keys);
        }
        Box::pin(async move {
            let all = [keys, &self.keys].concat();
            let mut found = self.store.get(&all).await?;
            let ours = found.split_off(keys.len());
            self.compare(&ours).map(|()| found)
        })
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        if self.current.get() == Some(&true) {
            return self.store.scan(span, limit);
        }
        Box::pin(async move {
            let (ours, found) = join(self.store.get(&self.keys), self.store.scan(span, limit)).await;
            self.compare(&ours?)?;
            found
        })
    }

    fn scan_each<'a>(&'a self, scans: &'a [(Span, usize)]) -> Answer<'a, Vec<Vec<Scanned>>> {
        if self.current.get() == Some(&true) {
            return self.store.scan_each(scans);
        }
        Box::pin(async move {
            let (ours, found) = join(self.store.get(&self.keys), self.store.scan_each(scans)).await;
            self.compare(&ours?)?;
            found
        })
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        Box::pin(async move { if self.is_current().await? { self.store.commit(batch).await } else { Err(outdated()) } })
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.store.ready()
    }
}
