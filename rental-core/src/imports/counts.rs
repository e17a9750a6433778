//! What came of the rows of an import, so that the numbers add up.

use serde::Serialize;

/// Most rows that are listed with their mistakes; all are counted.
const MOST_ERRORS: usize = 1000;

/// What became of one row.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Fate {
    /// A new object.
    Created,
    /// An object that was known has changed.
    Updated,
    /// It says what is known already.
    Duplicate,
    /// It is nothing to record.
    Skipped,
    /// It cannot be used; and why.
    Invalid(String),
}

/// A row that could not be used.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct RowError {
    /// The line of the file where it begins.
    pub row: u64,
    /// Why.
    pub message: String,
}

/// How many rows became what: `received` is the sum of the five behind it.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Counts {
    /// Rows of the file, without its header.
    pub received: u64,
    /// New objects.
    pub created: u64,
    /// Changed objects.
    pub updated: u64,
    /// Rows that say what is known already.
    pub duplicates: u64,
    /// Rows that are nothing to record, such as payments and fees.
    pub skipped: u64,
    /// Rows that cannot be used.
    pub invalid: u64,
    /// New objects whose vehicle was found.
    pub matched: u64,
    /// The first of the rows that cannot be used.
    pub errors: Vec<RowError>,
    /// How many more there are.
    pub errors_omitted: u64,
}

impl Counts {
    /// Counts one row.
    pub fn add(&mut self, row: u64, fate: Fate) {
        self.received += 1;
        match fate {
            Fate::Created => self.created += 1,
            Fate::Updated => self.updated += 1,
            Fate::Duplicate => self.duplicates += 1,
            Fate::Skipped => self.skipped += 1,
            Fate::Invalid(message) => {
                self.invalid += 1;
                if self.errors.len() < MOST_ERRORS {
                    self.errors.push(RowError { row, message });
                } else {
                    self.errors_omitted += 1;
                }
            }
        }
    }

    /// In the order of the file: credits are judged after everything else.
    pub(crate) fn sort(&mut self) {
        self.errors.sort_by_key(|error| error.row);
    }
}
