//! The result of an import: how many rows had which outcome.

use serde::Serialize;

/// The most rows that are listed under `errors`, and under `review`. All of them are counted.
const MAX_LISTED: usize = 1000;

/// The outcome of one row.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RowOutcome {
    /// The row made a new object.
    Created,
    /// The row changed an object.
    Updated,
    /// The row repeats what an object already says.
    Duplicate,
    /// The row has nothing to record, for example a payment.
    Skipped,
    /// The row cannot be used, for this reason.
    Invalid(String),
}

/// A row that cannot be used, or that a person should look at.
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
    /// Rows of the file, without its header.
    pub received: u64,
    /// New objects.
    pub created: u64,
    /// Changed objects.
    pub updated: u64,
    /// Rows that repeat what an object already says.
    pub duplicates: u64,
    /// Rows with nothing to record, such as payments and fees.
    pub skipped: u64,
    /// Rows that cannot be used.
    pub invalid: u64,
    /// New objects whose vehicle was found.
    pub matched: u64,
    /// The first 1000 rows that cannot be used.
    pub errors: Vec<RowError>,
    /// How many more rows cannot be used.
    pub errors_omitted: u64,
    /// The first 1000 rows whose new objects a person should look at. They count as created.
    pub review: Vec<RowError>,
    /// How many more rows a person should look at.
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

    /// Lists a recorded row that a person should look at.
    pub(crate) fn look_at(&mut self, row: u64, message: String) {
        list(&mut self.review, &mut self.review_omitted, RowError { row, message });
    }

    /// Sorts the listed rows. Some rows are recorded after rows that follow them in the file.
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
