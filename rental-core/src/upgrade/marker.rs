//! The state in the row that says how far an upgrade has come. The row changes like that of a task
//! ([`Progress`](crate::tasks::Progress)).
//!
//! It is no task but has a key of its own: it is read before anything else in the store can be trusted, there is never a
//! second one, and programs of other schema versions must find it.

use crate::{
    resources::row_words::in_words,
    store::{Key, Record, marks},
    value::OrganizationId,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most damaged rows that the marker names; all are counted.
const MOST_NAMED: usize = 100;

/// How far an upgrade has come.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Marker {
    /// The version of the store before.
    pub from: u64,
    /// The version that the store gets.
    pub to: u64,
    /// Which steps are run: a program with other steps to the same version must not go on.
    pub steps: String,
    /// What is being done.
    pub phase: Phase,
    /// The last key that is done, in hex.
    pub after: String,
    /// Whose records are being read.
    pub organization: Option<OrganizationId>,
    /// The organization up to which derived rows are swept.
    pub swept: Option<OrganizationId>,
    /// Derived rows that the records of `organization` have, by the prefix of their keys in hex.
    pub expected: BTreeMap<String, u64>,
    /// Prefixes with rows that no record has.
    pub stale: Vec<String>,
    /// Where the sweep of the first of them goes on, in hex.
    pub resume_at: Option<String>,
    /// Whether a record of `organization` is damaged, so that rows that lead to it are kept.
    pub damage_here: bool,
    /// Records that were looked at.
    pub seen: u64,
    /// Rows that were written.
    pub written: u64,
    /// Derived rows that were removed because no record has them.
    pub removed: u64,
    /// Rows that are damaged and stay as they are.
    pub damaged: u64,
    /// The first of them, in words.
    pub damaged_rows: Vec<String>,
}

/// The phases of one organization.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Its records are lifted, and what is derived of them is written.
    Records,
    /// Its derived rows that no record has are removed.
    Sweep,
}

impl Marker {
    pub(super) fn new(from: u64, to: u64, steps: String) -> Self {
        Self {
            from,
            to,
            steps,
            phase: Phase::Records,
            after: String::new(),
            organization: None,
            swept: None,
            expected: BTreeMap::new(),
            stale: Vec::new(),
            resume_at: None,
            damage_here: false,
            seen: 0,
            written: 0,
            removed: 0,
            damaged: 0,
            damaged_rows: Vec::new(),
        }
    }

    /// The key that lies in `after`, or the first of all.
    pub(super) fn after(&self) -> Option<Key> {
        let bytes = hex::decode(&self.after).unwrap_or_default();
        (!bytes.is_empty()).then(|| Key::from_bytes(&bytes))
    }

    pub(super) fn set_after(&mut self, key: &Key) {
        self.after = hex::encode(key.as_bytes());
    }

    /// Notes a row that cannot be upgraded.
    pub(super) fn note(&mut self, key: &Key, reason: &str) {
        self.damaged += 1;
        if self.damaged_rows.len() < MOST_NAMED {
            self.damaged_rows.push(format!("{}: {reason}", in_words(key)));
        }
    }

    /// Reads a marker.
    ///
    /// # Errors
    /// The row is no marker.
    pub(super) fn read(record: &Record) -> Result<Self, String> {
        serde_json::from_slice(&record.value).map_err(|error| format!("{}: {error}", in_words(&marks::upgrade())))
    }
}
