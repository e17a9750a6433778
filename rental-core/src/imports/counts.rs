//! The result of an import: how many rows had which outcome, and the sums of their amounts.

use crate::{
    error::Error,
    resources::{
        Resource, credit_note::CreditNote, invoice::Invoice, row_words::damage_in_words, toll::Toll,
        violation::Violation,
    },
    store::DamagedRow,
    value::SignedMoney,
};
use serde::Serialize;
use std::collections::BTreeMap;

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

impl RowOutcome {
    /// The outcome of a row that needs what is damaged in the store.
    pub(super) fn beside_damage(damage: &DamagedRow) -> Self {
        let words = damage_in_words(damage);
        Self::Invalid(format!(
            "needs what the store cannot read ({words}); get a sound store (docs/runbook.md, \"A file with damaged pages\": a backup, then `rental-cli store repair`), then import the file again"
        ))
    }

    /// The outcome of a row that may need what is damaged, which is added to `damaged` then.
    pub(super) fn or_damage(outcome: Result<Self, Error>, damaged: &mut Vec<DamagedRow>) -> Result<Self, Error> {
        match outcome {
            Err(Error::Damaged(damage)) => {
                let outcome = Self::beside_damage(&damage);
                damaged.push(*damage);
                Ok(outcome)
            }
            outcome => outcome,
        }
    }
}

/// A row that cannot be recorded, or that a person should review.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct RowError {
    /// The line of the file where the row begins, from 1.
    pub row: u64,
    /// The reason, for the operator.
    pub message: String,
}

/// The sums of the amounts of the rows with each outcome. `received` is the sum of the next five members.
///
/// A charge adds its amount, and a credit or payment subtracts it. A row whose amount cannot be read is in no sum.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Amounts {
    /// All rows.
    pub received: SignedMoney,
    /// Rows that created an object.
    pub created: SignedMoney,
    /// Rows that changed an object: what the rows state, not by how much the objects changed.
    pub updated: SignedMoney,
    /// Rows that changed nothing, because their objects exist.
    pub duplicates: SignedMoney,
    /// Rows that are no tolls or violations, such as payments and fees.
    pub skipped: SignedMoney,
    /// Rows that cannot be recorded.
    pub invalid: SignedMoney,
    /// Rows that created an object whose vehicle was found.
    pub matched: SignedMoney,
}

impl Amounts {
    /// Adds the amount of a row with this outcome.
    fn add(&mut self, outcome: &RowOutcome, amount: SignedMoney) {
        self.received += amount;
        *match outcome {
            RowOutcome::Created => &mut self.created,
            RowOutcome::Updated => &mut self.updated,
            RowOutcome::Duplicate => &mut self.duplicates,
            RowOutcome::Skipped => &mut self.skipped,
            RowOutcome::Invalid(_) => &mut self.invalid,
        } += amount;
    }
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
    /// The sums of the amounts of the same rows. Of an export: of the rows with tolls, violations, invoices and credit notes.
    pub amounts: Amounts,
    /// The same of an export for each of these resources, by its plural.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub amounts_by_resource: BTreeMap<&'static str, Amounts>,
    /// The first 1000 rows that cannot be recorded.
    pub errors: Vec<RowError>,
    /// Number of rows that cannot be recorded and are not listed.
    pub errors_omitted: u64,
    /// The first 1000 rows that a person should review. They count as created or as duplicates.
    pub review: Vec<RowError>,
    /// Number of rows that a person should review and that are not listed.
    pub review_omitted: u64,
}

impl Counts {
    /// No rows yet, of an export.
    #[must_use]
    pub fn of_an_export() -> Self {
        let charging = [Toll::SPEC, Violation::SPEC, Invoice::SPEC, CreditNote::SPEC];
        let amounts_by_resource = charging.map(|spec| (spec.plural, Amounts::default())).into();
        Self { amounts_by_resource, ..Self::default() }
    }

    /// Counts one row with its amount, which is 0 when it cannot be read.
    pub fn add(&mut self, row: u64, outcome: RowOutcome, amount: SignedMoney) {
        self.received += 1;
        self.amounts.add(&outcome, amount);
        *match outcome {
            RowOutcome::Created => &mut self.created,
            RowOutcome::Updated => &mut self.updated,
            RowOutcome::Duplicate => &mut self.duplicates,
            RowOutcome::Skipped => &mut self.skipped,
            RowOutcome::Invalid(message) => {
                list(&mut self.errors, &mut self.errors_omitted, RowError { row, message });
                &mut self.invalid
            }
        } += 1;
    }

    /// Counts one object of an export with its amount, if it has one, and the plural of its resource.
    pub(crate) fn add_object(&mut self, row: u64, outcome: RowOutcome, amount: Option<(&'static str, SignedMoney)>) {
        if let Some((sums, amount)) =
            amount.and_then(|(of, amount)| Some((self.amounts_by_resource.get_mut(of)?, amount)))
        {
            sums.add(&outcome, amount);
        }
        self.add(row, outcome, amount.map(|(_, amount)| amount).unwrap_or_default());
    }

    /// Counts the amount of a new object whose vehicle was found.
    pub(crate) fn add_matched(&mut self, amount: SignedMoney) {
        self.matched += 1;
        self.amounts.matched += amount;
    }

    /// Lists a row that a person should review.
    pub fn add_review(&mut self, row: u64, message: String) {
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
