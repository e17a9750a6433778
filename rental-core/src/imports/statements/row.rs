//! The rows of a file: parsed records and how they are parsed.

use super::{
    amount::{self, Signed},
    cells,
    field::Field,
    formats::Kind,
    layout::Layout,
    mapping::Mapping,
};
use crate::value::{Currency, Name, Sum, Text, Zone};

/// One row of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Row<T> {
    /// A toll or violation to record.
    Record(T),
    /// A row that is no toll or violation, such as a payment or a fee. The text says why. The sum is [`StatementRow::sum`].
    Skipped(&'static str, Sum),
    /// A row that cannot be recorded. The sentence for the operator says why. The sum is that of its amount, and 0 when the
    /// amount cannot be read.
    Invalid(String, Sum),
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
    fn sum(&self) -> Sum;

    /// The same amount of a record that is no such row, if it can be read.
    fn sum_of(values: &Values<'_>) -> Option<Sum>;
}

/// Why a record of a file is not recorded.
#[derive(Debug)]
pub enum NotRecorded {
    /// The record is no toll or violation. The text says why.
    Skipped(&'static str),
    /// The record is invalid. The sentence for the operator says why.
    Invalid(String),
}

/// The settings of an import that the format does not define.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The organization's currency.
    pub currency: Currency,
    /// The time zone of local times; `None` means that of the format.
    pub zone: Option<Zone>,
}

/// How the records of one file are read.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) mapping: Mapping,
    pub(super) layout: Layout,
    pub(super) zone: Option<Zone>,
    pub(super) currency: Currency,
    /// Whether the file is in the product's own format.
    pub(super) strict: bool,
}

impl Plan {
    /// A plan for the file of an agency, which is not strict.
    pub(super) fn new(mapping: Mapping, layout: Layout, settings: &Settings) -> Self {
        Self { zone: settings.zone.or(mapping.zone), currency: settings.currency, mapping, layout, strict: false }
    }
}

/// The values of one record. Blank values count as absent.
#[derive(Debug)]
pub struct Values<'a> {
    pub(super) plan: &'a Plan,
    pub(super) row: &'a [&'a str],
}

impl<'a> Values<'a> {
    /// The first value of a field's columns.
    pub(super) fn get(&self, field: Field) -> Option<&'a str> {
        self.plan.layout.values(self.row, field).next()
    }

    /// All values of a field's columns.
    pub(super) fn all(&self, field: Field) -> impl Iterator<Item = &'a str> {
        self.plan.layout.values(self.row, field)
    }

    pub(super) fn label(&self, field: Field) -> &'a str {
        self.plan.layout.label(field)
    }

    pub(super) fn text(&self, field: Field) -> Result<Option<Text>, String> {
        let text = |given| cells::known(given, self.label(field)).and_then(|()| cells::text(given, self.label(field)));
        self.get(field).map(text).transpose()
    }

    /// The name of an agency.
    pub(super) fn agency(&self, field: Field) -> Result<Option<Name>, String> {
        self.get(field).map(|given| cells::agency(given, self.label(field))).transpose()
    }

    pub(super) fn identifier(&self, field: Field) -> Result<Option<Text>, String> {
        self.get(field).map(|given| cells::identifier(given, self.label(field))).transpose()
    }

    /// The number of a transaction or summons.
    pub(super) fn number(&self, field: Field) -> Result<Option<Text>, String> {
        self.get(field).map(|given| cells::number(given, self.label(field))).transpose()
    }

    pub(super) fn amount(&self, field: Field) -> Result<Option<Signed>, String> {
        let parse = |given| amount::parse(given, self.plan.currency);
        self.get(field).map(|given| parse(given).map_err(|rule| format!("`{}` {rule}", self.label(field)))).transpose()
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
        match T::read(values) {
            Ok(record) => Self::Record(record),
            Err(NotRecorded::Skipped(why)) => Self::Skipped(why, sum()),
            Err(NotRecorded::Invalid(why)) => Self::Invalid(why, sum()),
        }
    }
}

impl From<String> for NotRecorded {
    fn from(why: String) -> Self {
        Self::Invalid(why)
    }
}
