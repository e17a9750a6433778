//! The row with the progress of a long operation. Upgrades and tasks use it.
//!
//! The batch of a step changes the row and checks the revision that was read. So after a crash the operation continues where
//! its last batch ended. If two servers do the same step, one of them gets
//! [`Commit::Stale`](crate::store::Commit::Stale), has changed nothing, and reads the row again.

use crate::store::{Batch, Check, Key, Record, Revision};
use serde::Serialize;

/// The result of a step of a long operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// The operation is not complete: take the next step at once.
    Continue,
    /// This step changed nothing: another process committed a step first, or the step must wait for another operation. Wait a
    /// little before the next step.
    Overtaken,
    /// The operation is complete.
    Done,
}

/// The key of the row, and its revision after the last batch.
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
