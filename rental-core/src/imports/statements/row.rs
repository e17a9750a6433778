//! The rows of a file: parsed records and how they are parsed.

use super::{
    amount::{self, Signed},
    cells,
    field::Field,
    formats::Kind,
    plan::Plan,
    time::{self, NoDate},
};
use crate::value::{Name, SignedMoney, Text, Timestamp, folded};
use encoding_rs::SHIFT_JIS;
use std::borrow::Cow;

/// One row of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Row<T> {
    /// A toll or violation to record.
    Record(T),
    /// A row that is no toll or violation, such as a payment or a fee. The text says why. The sum is [`StatementRow::sum`].
    Skipped(&'static str, SignedMoney),
    /// The header of a section whose rows are skipped. It is no row, and the sentence for the operator says why.
    Section(String),
    /// A row that cannot be recorded. The sentence for the operator says why. The sum is that of its amount, and 0 when the
    /// amount cannot be read.
    Invalid(String, SignedMoney),
}

/// A parsed row of one kind of file: a reported toll or violation.
pub trait StatementRow: Clone + PartialEq + Send + Sized {
    /// The kind of file with such rows.
    const KIND: &'static Kind;

    /// Parses the values of one record.
    ///
    /// # Errors
    /// The record is no toll or violation, or is invalid.
    fn read(values: &Values<'_>) -> Result<Self, NotRecorded>;

    /// The amount as the summary of an import counts it: of a charge above 0, of a credit or payment below 0.
    fn sum(&self) -> SignedMoney;

    /// The same amount of a record that is no such row, if it can be read.
    fn sum_of(values: &Values<'_>) -> Option<SignedMoney>;
}

/// Why a record of a file is not recorded.
#[derive(Debug)]
pub enum NotRecorded {
    /// The record is no toll or violation. The text says why.
    Skipped(&'static str),
    /// The record is a total of others.
    Total,
    /// The record is invalid. The sentence for the operator says why.
    Invalid(String),
}

/// The values of one record. Blank values count as absent.
#[derive(Debug)]
pub struct Values<'a> {
    pub(super) plan: &'a Plan,
    pub(super) row: &'a [&'a str],
}

impl<'a> Values<'a> {
    /// The value of a field.
    pub(super) fn get(&self, field: Field) -> Option<Cow<'a, str>> {
        self.plan.layout.value(self.row, field)
    }

    /// All values of a field's columns.
    pub(super) fn all(&self, field: Field) -> impl Iterator<Item = &'a str> {
        self.plan.layout.values(self.row, field)
    }

    pub(super) fn label(&self, field: Field) -> &'a str {
        self.plan.layout.label(field)
    }

    pub(super) fn text(&self, field: Field) -> Result<Option<Text>, String> {
        let label = self.label(field);
        self.get(field).map(|given| cells::known(&given, label).and_then(|()| cells::text(&given, label))).transpose()
    }

    /// The name of an agency.
    pub(super) fn agency(&self, field: Field) -> Result<Option<Name>, String> {
        self.get(field).map(|given| cells::agency(&given, self.label(field))).transpose()
    }

    pub(super) fn identifier(&self, field: Field) -> Result<Option<Text>, String> {
        self.get(field).map(|given| cells::identifier(&given, self.label(field))).transpose()
    }

    /// The number of a transaction or summons. Of one that is joined, the first column has the number, and the others tell its parts apart:
    /// a row without the first one has no number.
    pub(super) fn number(&self, field: Field) -> Result<Option<Text>, String> {
        let (label, is_joined) = (self.label(field), self.plan.layout.is_joined(field));
        if is_joined && self.plan.layout.first(self.row, field).is_none() {
            return Ok(None);
        }
        let mut values = self.all(field);
        let Some(number) = values.next().map(|given| cells::number(given, label)).transpose()? else { return Ok(None) };
        if !is_joined {
            return Ok(Some(number));
        }
        cells::text(&values.fold(number.to_string(), |joined, part| joined + " " + part), label).map(Some)
    }

    /// The amount of a field: the first one, or the sum of all.
    pub(super) fn amount(&self, field: Field) -> Result<Option<Signed>, String> {
        let parse = |given: &str| {
            // Shift_JIS has the yen sign where ASCII has the backslash.
            let is_yen = self.plan.mapping.encoding == Some(SHIFT_JIS) && given.contains('\\');
            let given = if is_yen { Cow::Owned(given.replace('\\', "¥")) } else { Cow::Borrowed(given) };
            amount::parse(&given, self.plan.currency).map_err(|rule| format!("`{}` {rule}", self.label(field)))
        };
        let mut values = self.all(field).map(parse);
        let Some(first) = values.next().transpose()? else { return Ok(None) };
        if !self.plan.layout.is_sum(field) {
            return Ok(Some(first));
        }
        let sum = values.try_fold(first, |sum, next| {
            sum.plus(next?).ok_or_else(|| format!("`{}` is too much", self.label(field)))
        })?;
        Ok(Some(sum))
    }

    /// Whether the mapping skips the row.
    pub(super) fn is_skipped(&self) -> bool {
        let Some((_, skipped)) = &self.plan.mapping.skip else { return false };
        self.plan.layout.skip_value(self.row).is_some_and(|given| skipped.contains(&folded(given)))
    }

    /// Whether the record has more or fewer fields than the header has columns.
    pub(super) fn is_of_other_length(&self) -> bool {
        self.row.len() != self.plan.layout.count
    }

    /// Whether the row has a date that can be read.
    pub(super) fn has_date(&self) -> bool {
        let date = [Field::Date, Field::OccurredAt].into_iter().find_map(|field| self.get(field));
        let is_date = |date: &str| {
            Timestamp::parse(date).is_some() || time::moment(date, self.plan.mapping.dates) != Err(NoDate::Unreadable)
        };
        date.is_some_and(|date| is_date(&date))
    }

    /// Whether the row is a total of others: a word says so, and it has no date and no number, plate or transponder beside the word.
    pub(super) fn is_total(&self) -> bool {
        let names_one = |field: Field| match field {
            Field::TransactionId | Field::SummonsNumber if self.plan.layout.is_joined(field) => {
                self.plan.layout.first(self.row, field).is_some_and(|number| !cells::is_total(number))
            }
            _ => self.all(field).any(|value| !cells::is_total(value)),
        };
        let mut names =
            [Field::TransactionId, Field::SummonsNumber, Field::Plate, Field::Transponder, Field::TagOrPlate]
                .into_iter();
        self.row.iter().any(|cell| cells::is_total(cell)) && !self.has_date() && !names.any(names_one)
    }

    /// The error for a required field without a value.
    pub(super) fn blank(&self, field: Field) -> String {
        format!("`{}` is blank", self.label(field))
    }
}

impl<T: StatementRow> Row<T> {
    /// Parses the values of one record.
    pub(super) fn read(values: &Values<'_>) -> Self {
        let sum = || T::sum_of(values).unwrap_or_default();
        if values.is_skipped() {
            return Self::Skipped("a kind of row that the mapping file skips", sum());
        }
        match T::read(values) {
            Ok(record) => Self::Record(record),
            Err(NotRecorded::Skipped(why)) => Self::Skipped(why, sum()),
            // Its amount is that of other rows.
            Err(NotRecorded::Total) => Self::Skipped("a total of other rows", SignedMoney::default()),
            Err(NotRecorded::Invalid(_)) if values.is_total() => {
                Self::Skipped("a total of other rows", SignedMoney::default())
            }
            Err(NotRecorded::Invalid(why)) => Self::Invalid(why, sum()),
        }
    }
}

impl From<String> for NotRecorded {
    fn from(why: String) -> Self {
        Self::Invalid(why)
    }
}
