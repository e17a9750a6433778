//! The result of a check: totals and problems.

use crate::webhooks::master_key::InUse;
use serde::Serialize;
use std::collections::BTreeMap;

/// Most problems in the list of a report. Further problems are only counted.
pub(crate) const MOST_LISTED: usize = 1000;

/// One inconsistency.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Problem {
    /// Resource, id, organization and key in hex, as far as they are known.
    pub place: String,
    /// The problem, as a sentence.
    pub what: String,
}

/// The master key of a store.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct KeyReport {
    /// The fingerprint of the key in use, and that of the former key while secrets are sealed anew. `None` if the store
    /// was never served by a program of schema version 4 or later.
    pub in_use: Option<InUse>,
    /// Webhook endpoints whose newest secret was sealed with another key, or whose secrets were lost. They need a new secret.
    pub unreadable: u64,
}

/// The result of a check.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Report {
    /// Number of rows that were read.
    pub rows: u64,
    /// Number of records by resource.
    pub records: BTreeMap<&'static str, u64>,
    /// The master key of the store.
    pub master_key: KeyReport,
    /// Number of problems.
    pub problems: u64,
    /// The first 1,000 problems.
    pub listed: Vec<Problem>,
}

impl Report {
    /// Counts a problem, and lists it while there is room.
    pub fn add(&mut self, place: String, what: String) {
        self.problems += 1;
        if self.listed.len() < MOST_LISTED {
            self.listed.push(Problem { place, what });
        }
    }
}
