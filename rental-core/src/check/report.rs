//! The result of a check: totals and problems.

use crate::{value::OrganizationId, webhooks::master_key::InUse};
use serde::Serialize;
use std::collections::BTreeMap;

/// Most problems in the list of a report. Further problems are only counted.
pub(crate) const MOST_LISTED: usize = 1000;

/// What mends a problem.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// A repair of the store, at the loss of what cannot be read and not be derived.
    Repair,
    /// The next start of a server.
    Start,
    /// A change of the objects that a person decides, while a server runs: all rows are sound, and no repair can know which of
    /// them is right.
    Decision,
    /// A backup of before, or the decision of a person.
    Backup,
    /// None: an object names one that is gone, or a number of an invoice is missing. Only a backup has what is gone. The store is sound.
    Gone,
}

/// One inconsistency.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Problem {
    /// Resource, id, organization and key in hex, as far as they are known.
    pub place: String,
    /// The problem, as a sentence.
    pub what: String,
    /// What mends it.
    pub remedy: Remedy,
}

/// The master key of a store.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct KeyReport {
    /// The fingerprint of the key in use, and that of the former key while secrets are sealed anew. `None` if no
    /// server has opened the store yet.
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
    /// Organizations without a record, and how many objects of each are there.
    pub lost_organizations: BTreeMap<OrganizationId, u64>,
    /// Number of problems.
    pub problems: u64,
    /// Number of problems by what mends them.
    pub remedies: BTreeMap<Remedy, u64>,
    /// The first 1,000 problems.
    pub listed: Vec<Problem>,
}

impl Report {
    /// Counts a problem, and lists it while there is room.
    pub fn add(&mut self, place: String, what: String, remedy: Remedy) {
        self.problems += 1;
        *self.remedies.entry(remedy).or_default() += 1;
        if self.listed.len() < MOST_LISTED {
            self.listed.push(Problem { place, what, remedy });
        }
    }

    /// Lists the lost organizations first: each of their rows is a problem of its own, and the list has an end.
    pub(super) fn tell_lost_organizations(&mut self) {
        for (organization, objects) in self.lost_organizations.clone().into_iter().rev() {
            let are = if objects == 1 { "object of it is" } else { "objects of it are" };
            let what = format!("its record is lost, and {objects} {are} there, which nobody can use without it");
            let place = format!("organization {organization}");
            self.problems += 1;
            *self.remedies.entry(Remedy::Backup).or_default() += 1;
            self.listed.insert(0, Problem { place, what, remedy: Remedy::Backup });
            self.listed.truncate(MOST_LISTED);
        }
    }

    /// Leaves out the problems with a remedy.
    pub fn forget(&mut self, remedy: Remedy) {
        self.problems -= self.remedies.remove(&remedy).unwrap_or_default();
        self.listed.retain(|problem| problem.remedy != remedy);
    }

    /// Whether every problem is that something is gone, which nothing mends.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.problems == self.remedies.get(&Remedy::Gone).copied().unwrap_or_default()
    }
}
