//! The result of an import: how many rows had which outcome.

use serde::Serialize;

/// Most rows that `errors` lists, and that `review` lists. All of them are counted.
const MAX_LISTED: usize = 1000;

/// The outcome of one row.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RowOutcome {
    /// The row created an object.
    Created,
    /// The row changed an object.
    Updated,
    /// The object of the row exists, and the row changes nothing.
    Duplicate,
    /// The row is no toll or violation, for example a payment.
    Skipped,
    /// The row cannot be recorded, for this reason.
    Invalid(String),
}

/// A row that cannot be recorded, or that a person should review.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct RowError {
    /// The line of the file where the row begins, from 1.
    pub row: u64,
    /// The reason, for the operator.
    pub message: String,
}

/// How many rows had which outcome. `received` is the sum of the next five members.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Counts {
    /// Number of rows in the file, without its header.
    pub received: u64,
    /// Number of new objects.
    pub created: u64,
    /// Number of changed objects.
    pub updated: u64,
    /// Number of rows that changed nothing, because their objects exist.
    pub duplicates: u64,
    /// Number of rows that are no tolls or violations, such as payments and fees.
    pub skipped: u64,
    /// Number of rows that cannot be recorded.
    pub invalid: u64,
    /// Number of new objects whose vehicle was found.
    pub matched: u64,
    /// The first 1000 rows that cannot be recorded.
    pub errors: Vec<RowError>,
    /// Number of rows that cannot be recorded and are not listed.
    pub errors_omitted: u64,
    /// The first 1000 rows whose new objects a person should review. They count as created.
    pub review: Vec<RowError>,
    /// Number of rows that a person should review and that are not listed.
    pub review_omitted: u64,
}

impl Counts {
    /// Counts one row.
    pub fn add(&mut self, row: u64, outcome: RowOutcome) {
        self.received += 1;
        match outcome {
            RowOutcome::Created => self.created += 1,
            RowOutcome::Updated => self.updated += 1,
            RowOutcome::Duplicate => self.duplicates += 1,
            RowOutcome::Skipped => self.skipped += 1,
            RowOutcome::Invalid(message) => {
                self.invalid += 1;
                list(&mut self.errors, &mut self.errors_omitted, RowError { row, message });
            }
        }
    }

    /// Lists a recorded row that a person should review.
    pub(crate) fn add_review(&mut self, row: u64, message: String) {
        list(&mut self.review, &mut self.review_omitted, RowError { row, message });
    }

    /// Sorts the listed rows by their line, because credits are recorded after the other rows.
    pub(crate) fn sort(&mut self) {
        self.errors.sort_by_key(|error| error.row);
        self.review.sort_by_key(|error| error.row);
    }
}

fn list(listed: &mut Vec<RowError>, omitted: &mut u64, row: RowError) {
    if listed.len() < MAX_LISTED {
        listed.push(row);
    } else {
        *omitted += 1;
    }
}
