//! The schema version of a file.

use super::{META, Redb, apply_one, unavailable};
use crate::store::{Answer, Batch, Commit, StoreError, Versioned, marks};
use redb::{Database, ReadableDatabase, ReadableTable, Table, WriteTransaction};
use std::sync::atomic::Ordering;

/// The name of the version among the numbers of a file.
pub(super) const NAME: &str = "schema_version";

/// Batches of an upgrade in one commit. A page of an index is written once for all of them; they are all in memory.
const BATCHES_TOGETHER: usize = 64;

/// The version of an open file.
pub(super) fn read(db: &Database) -> Result<u64, StoreError> {
    let meta = db.begin_read().map_err(unavailable)?.open_table(META).map_err(unavailable)?;
    let version = meta.get(NAME).map_err(unavailable)?.map(|version| version.value());
    version.ok_or_else(|| StoreError::Corrupt("the file has no schema version".into()))
}

/// Applies `batch` and changes the version from `from` to `to`; stale when it is another one.
pub(super) fn claim(
    transaction: &WriteTransaction,
    rows: &mut Table<'_, &'static [u8], &'static [u8]>,
    batch: Batch,
    from: u64,
    to: u64,
) -> Result<Commit, StoreError> {
    let mut meta = transaction.open_table(META).map_err(unavailable)?;
    let present = meta.get(NAME).map_err(unavailable)?.map(|version| version.value());
    if present != Some(from) {
        return Ok(Commit::Stale(marks::upgrade()));
    }
    let applied = apply_one(rows, batch)?;
    if applied == Commit::Applied {
        drop(meta.insert(NAME, to).map_err(unavailable)?);
    }
    Ok(applied)
}

impl Versioned for Redb {
    fn version(&self) -> Answer<'_, u64> {
        Box::pin(std::future::ready(Ok(self.shared.version.load(Ordering::Acquire))))
    }

    fn batches_together(&self) -> usize {
        BATCHES_TOGETHER
    }

    fn change_version(&self, from: u64, to: u64, batch: Batch) -> Answer<'_, bool> {
        let queued = self.enqueue(batch, Some((from, to)));
        Box::pin(async move {
            let outcome = queued?.await;
            let outcome =
                outcome.unwrap_or_else(|_| Err(StoreError::Unknown("the writer stopped before it answered".into())));
            Ok(outcome? == Commit::Applied)
        })
    }
}
