//! Statements and lists in the shapes of real ones, field by field; what is refused; and what holds for any bytes.

#[path = "imports/described.rs"]
mod described;
#[path = "imports/page.rs"]
mod page;
#[path = "imports/properties.rs"]
mod properties;
#[path = "imports/refusals.rs"]
mod refusals;
#[path = "imports/sections.rs"]
mod sections;
#[path = "imports/tolls.rs"]
mod toll_formats;
#[path = "imports/violations.rs"]
mod violation_formats;

use rental_core::imports::statements::{
    Failed, Mapping, Reader, Row, Settings, TOLLS, TollRow, VIOLATIONS, ViolationRow,
};
use std::io::Read;

/// Those of an organization in New York.
pub(crate) const SETTINGS: Settings =
    Settings { currency: rental_core::value::Currency::USD, zone: None, home: rental_core::value::Zone::NEW_YORK };

/// The bytes of a fixture.
#[track_caller]
pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/imports").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names and descriptions of the formats.
pub(crate) const TOLL_FORMATS: &[(&str, &str)] = TOLLS.formats;
pub(crate) const VIOLATION_FORMATS: &[(&str, &str)] = VIOLATIONS.formats;

pub(crate) fn tolls<R: Read>(
    file: R,
    format: Option<&str>,
    mapping: Option<&Mapping>,
    settings: &Settings,
) -> Result<Reader<R, TollRow>, Failed> {
    Reader::open(file, format, mapping, settings)
}

pub(crate) fn violations<R: Read>(
    file: R,
    format: Option<&str>,
    settings: &Settings,
) -> Result<Reader<R, ViolationRow>, Failed> {
    Reader::open(file, format, None, settings)
}

/// Every row of a statement, or why there is none.
pub(crate) fn read_tolls(
    bytes: &[u8],
    format: Option<&str>,
    mapping: Option<&Mapping>,
    settings: &Settings,
) -> Result<Vec<(u64, Row<TollRow>)>, Failed> {
    tolls(bytes, format, mapping, settings)?.collect()
}

/// Every row of a list of violations, or why there is none.
pub(crate) fn read_violations(bytes: &[u8], format: Option<&str>) -> Result<Vec<(u64, Row<ViolationRow>)>, Failed> {
    violations(bytes, format, &SETTINGS)?.collect()
}

/// The sentence of a refusal.
#[track_caller]
pub(crate) fn refusal<T: std::fmt::Debug>(read: Result<T, Failed>) -> String {
    match read {
        Err(Failed::Refused(refused)) => refused.0,
        other => panic!("it was not refused: {other:?}"),
    }
}

/// A row as one line: number and fields with `|` between them, `-` for none.
pub(crate) fn line<T>((number, row): &(u64, Row<T>), fields: fn(&T) -> Vec<Option<String>>) -> String {
    match row {
        Row::Record(record) => {
            let shown = fields(record).into_iter().map(|field| field.unwrap_or_else(|| "-".into()));
            format!("{number}|{}", shown.collect::<Vec<_>>().join("|"))
        }
        Row::Skipped(why, _) => format!("{number} skipped: {why}"),
        Row::Section(why) => format!("{number} section: {why}"),
        Row::Invalid(why, _) => format!("{number} invalid: {why}"),
    }
}

/// Compares rows with the lines that are expected; an expected reason may stop at `...`.
#[track_caller]
pub(crate) fn compare(found: &[String], expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        match expected.strip_suffix("...") {
            Some(start) => assert!(found.starts_with(start), "{found}\n{expected}"),
            None => assert_eq!(found, expected),
        }
    }
}
