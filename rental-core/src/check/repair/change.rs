//! One change of a repair.

use crate::store::{Key, Record, Revision};
use bytes::Bytes;

/// What a repair does with one row.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Action {
    /// Removes it.
    Remove,
    /// Writes it with this revision and value.
    Put(Revision, Bytes),
}

/// What the store has at the key of a change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Found {
    /// No row.
    Nothing,
    /// A row that can be read, with this revision.
    Row(Revision),
    /// A row whose bytes are damaged.
    Damaged,
}

/// A change of one row.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Change {
    /// What is done.
    pub action: Action,
    /// What the store has now.
    pub found: Found,
    /// The problem, as a sentence.
    pub why: String,
}

impl Change {
    /// The row after the change.
    pub(super) fn record(&self, key: &Key) -> Option<Record> {
        match &self.action {
            Action::Remove => None,
            Action::Put(revision, value) => {
                Some(Record { key: key.clone(), revision: *revision, value: value.clone() })
            }
        }
    }

    /// Whether the store loses bytes that it has now.
    #[must_use]
    pub fn loses(&self) -> bool {
        self.found != Found::Nothing
    }
}
