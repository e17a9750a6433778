//! The row that says how far a long operation has come. Upgrades of a store and tasks use it.
//!
//! The row changes in the same batch as the work of a step, at the revision at which it was read. So a process that is killed
//! goes on where its last batch ended. Of two servers that do the same step, one gets
//! [`Commit::Stale`](crate::store::Commit::Stale), has changed nothing, and reads the row again.

use crate::store::{Batch, Check, Key, Record, Revision};
use serde::Serialize;

/// How a step of a long operation ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// There is more to do.
    Went,
    /// Another process committed a step first, and this one changed nothing. The other process may still be at work: wait a
    /// little before the next step.
    Outrun,
    /// The operation is finished.
    Done,
}

/// Where the row is, and its revision as of the last batch that was made.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Progress {
    key: Key,
    revision: Revision,
}

impl Progress {
    /// The progress that was read from the store.
    #[must_use]
    pub fn of(record: &Record) -> Self {
        Self { key: record.key.clone(), revision: record.revision }
    }

    /// Adds a new row to the batch that begins the operation. The batch fails if the row exists.
    ///
    /// # Errors
    /// The state cannot be written as JSON.
    pub fn begin(batch: &mut Batch, key: Key, state: &impl Serialize) -> Result<(), serde_json::Error> {
        batch.insert(key, serde_json::to_vec(state)?.into());
        Ok(())
    }

    /// Adds the new state to the batch of a step. The next batch expects that this one was applied.
    ///
    /// # Errors
    /// The state cannot be written as JSON.
    pub fn advance(&mut self, batch: &mut Batch, state: &impl Serialize) -> Result<(), serde_json::Error> {
        batch.replace(self.key.clone(), self.revision, serde_json::to_vec(state)?.into());
        self.revision += 1;
        Ok(())
    }

    /// Removes the row in the batch of the last step.
    pub fn finish(&self, batch: &mut Batch) {
        batch.checks.push(Check::At(self.key.clone(), self.revision));
        batch.delete(self.key.clone());
    }
}
