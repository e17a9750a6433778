//! The marker: the row with the progress of an upgrade. It changes like the row of a task
//! ([`Progress`](crate::tasks::Progress)), so after a crash the next process continues where the last batch ended.
//!
//! It is no task and has its own key: programs read it before any other row and in every schema version, and there is
//! never a second one.

use crate::{
    resources::row_words::in_words,
    store::{Key, Record, marks},
    value::OrganizationId,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most damaged rows that the marker lists. It counts all of them.
const MOST_NAMED: usize = 100;

/// The progress of an upgrade.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Marker {
    /// The schema version of the store before the upgrade.
    pub from: u64,
    /// The schema version of the store after the upgrade.
    pub to: u64,
    /// The names of the steps. A program with other steps must not continue the upgrade.
    pub steps: String,
    /// The phase of the present organization.
    pub phase: Phase,
    /// The key of the last record that was upgraded, in hex.
    pub after: String,
    /// The present organization; `None` before the first one.
    pub organization: Option<OrganizationId>,
    /// The last organization whose sweep is complete.
    pub swept: Option<OrganizationId>,
    /// The number of derived rows of the present organization, by the prefix of their keys in hex.
    pub expected: BTreeMap<String, u64>,
    /// The highest numbers of invoices and credit notes of the present organization, by the name of their counter.
    pub numbers: BTreeMap<String, u64>,
    /// The prefixes, in hex, whose number of rows differs from the expected one. The sweep reads their rows.
    pub stale: Vec<String>,
    /// The key at which the sweep of the first stale prefix continues, in hex.
    pub resume_at: Option<String>,
    /// Whether a record of the present organization is damaged. Its derived rows are kept.
    pub damage_here: bool,
    /// Number of records read so far.
    pub seen: u64,
    /// Number of rows written so far.
    pub written: u64,
    /// Number of derived rows removed so far, because they belong to no record.
    pub removed: u64,
    /// Number of damaged rows so far. They stay unchanged.
    pub damaged: u64,
    /// The first 100 damaged rows, each as a sentence for the operator.
    pub damaged_rows: Vec<String>,
}

/// The phases of the upgrade of one organization.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Lifts the records and writes their derived rows.
    Records,
    /// Removes derived rows that belong to no record.
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
            numbers: BTreeMap::new(),
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

    /// The key in `after`; `None` before the first record.
    pub(super) fn after(&self) -> Option<Key> {
        let bytes = hex::decode(&self.after).unwrap_or_default();
        (!bytes.is_empty()).then(|| Key::from_bytes(&bytes))
    }

    pub(super) fn set_after(&mut self, key: &Key) {
        self.after = hex::encode(key.as_bytes());
    }

    /// Counts a row that cannot be upgraded, and lists it while there is room.
    pub(super) fn note(&mut self, key: &Key, reason: &str) {
        self.damaged += 1;
        if self.damaged_rows.len() < MOST_NAMED {
            self.damaged_rows.push(format!("{}: {reason}", in_words(key)));
        }
    }

    /// Parses a marker.
    ///
    /// # Errors
    /// A sentence for the operator: the row is no marker.
    pub(super) fn read(record: &Record) -> Result<Self, String> {
        crate::value::read_json(&record.value).map_err(|error| format!("{}: {error}", in_words(&marks::upgrade())))
    }
}
