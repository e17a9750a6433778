//! Reads and changes the schema version of an open store, for an upgrade.

use super::engine::Redb;
use crate::store::{Answer, Batch, Commit, StoreError, Versioned};
use std::sync::atomic::Ordering;

/// Batches of an upgrade in one commit. redb writes a page that several of them change only once. All are in memory.
const BATCHES_TOGETHER: usize = 64;

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
