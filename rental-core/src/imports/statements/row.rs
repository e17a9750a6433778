//! What a reader makes of one record of a file.

use super::{
    amount::{self, Signed},
    cells,
    field::Field,
    formats::Kind,
    layout::Layout,
    mapping::Mapping,
};
use crate::value::{Name, Text, Zone};

/// One row of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Row<T> {
    /// A row to record.
    Record(T),
    /// A row with nothing to record, such as a payment or a fee, and why.
    Skipped(&'static str),
    /// A row that cannot be used, and why, for the operator.
    Invalid(String),
}

/// A checked row of one kind of file: a toll or a violation as it was reported.
pub trait StatementRow: Clone + PartialEq + Send + Sized {
    /// The kind of file that has such rows.
    const KIND: &'static Kind;

    /// Reads the values of one record.
    ///
    /// # Errors
    /// The record has nothing to record, or cannot be used.
    fn read(values: &Values<'_>) -> Result<Self, NotRecorded>;
}

/// Why a record makes no row to record.
#[derive(Debug)]
pub enum NotRecorded {
    /// It has nothing to record.
    Skipped(&'static str),
    /// It cannot be used.
    Invalid(String),
}

/// What the formats leave open.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Decimals of the currency, 0 to 4.
    pub digits: u32,
    /// The zone of local times, in place of the format's own.
    pub zone: Option<Zone>,
}

/// How the records of one file are read.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) mapping: Mapping,
    pub(super) layout: Layout,
    pub(super) zone: Option<Zone>,
    pub(super) digits: u32,
    /// Whether the file is in the format of this product.
    pub(super) strict: bool,
}

impl Plan {
    /// A plan for the file of an agency, so without strictness.
    pub(super) fn new(mapping: Mapping, layout: Layout, settings: &Settings) -> Self {
        Self { zone: settings.zone.or(mapping.zone), digits: settings.digits, mapping, layout, strict: false }
    }
}

/// The values of one record. Those that are blank count as absent.
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
        self.get(field).map(|given| cells::text(given, self.label(field))).transpose()
    }

    pub(super) fn name(&self, field: Field) -> Result<Option<Name>, String> {
        self.get(field).map(|given| cells::name(given, self.label(field))).transpose()
    }

    pub(super) fn identifier(&self, field: Field) -> Result<Option<Text>, String> {
        self.get(field).map(|given| cells::identifier(given, self.label(field))).transpose()
    }

    pub(super) fn amount(&self, field: Field) -> Result<Option<Signed>, String> {
        let parse = |given| amount::parse(given, self.plan.digits);
        self.get(field).map(|given| parse(given).map_err(|rule| format!("`{}` {rule}", self.label(field)))).transpose()
    }

    /// The error for a field that needs a value.
    pub(super) fn blank(&self, field: Field) -> String {
        format!("`{}` is blank", self.label(field))
    }
}

impl<T> From<Result<T, NotRecorded>> for Row<T> {
    fn from(read: Result<T, NotRecorded>) -> Self {
        match read {
            Ok(record) => Self::Record(record),
            Err(NotRecorded::Skipped(why)) => Self::Skipped(why),
            Err(NotRecorded::Invalid(why)) => Self::Invalid(why),
        }
    }
}

impl From<String> for NotRecorded {
    fn from(why: String) -> Self {
        Self::Invalid(why)
    }
}
