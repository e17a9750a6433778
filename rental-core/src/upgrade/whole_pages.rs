//! The store as an upgrade reads it: a row that is missing because of damaged pages would be missing in the new version, too.

use crate::store::{Answer, Batch, Commit, DamagedRow, Key, Record, Scanned, Span, Store, StoreError, Versioned};

/// A store whose reads fail when pages are damaged. Rows that are damaged themselves stay what they are.
pub(super) struct WholePages<'s>(pub(super) &'s dyn Versioned);

fn refused(row: &DamagedRow) -> Option<StoreError> {
    row.pages.then(|| StoreError::DamagedStore(row.reason.clone()))
}

fn whole<T>(read: Result<T, StoreError>) -> Result<T, StoreError> {
    read.map_err(|error| match &error {
        StoreError::Damaged(row) => refused(row).unwrap_or(error),
        _ => error,
    })
}

impl Store for WholePages<'_> {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        Box::pin(async move { whole(self.0.get(keys).await) })
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        Box::pin(async move {
            let rows = whole(self.0.scan(span, limit).await)?;
            let damage = rows.iter().find_map(|row| row.as_ref().err().and_then(|row| refused(row)));
            damage.map_or(Ok(rows), Err)
        })
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        self.0.commit(batch)
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.0.ready()
    }
}

impl Versioned for WholePages<'_> {
    fn version(&self) -> Answer<'_, u64> {
        self.0.version()
    }

    fn batches_together(&self) -> usize {
        self.0.batches_together()
    }

    fn change_version(&self, from: u64, to: u64, batch: Batch) -> Answer<'_, bool> {
        self.0.change_version(from, to, batch)
    }
}
