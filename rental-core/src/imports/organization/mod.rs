//! The export of an organization as lines of JSON, and the import of such lines.
//!
//! The first line contains the schema version of the file; a file of version 2 has no such line. The organization, the
//! list of its erased people and its objects follow, each after the objects that it refers to. The last line contains the number of lines before it, which
//! detects a truncated file. Objects of an older version are lifted as in an upgrade ([`crate::upgrade`]). An imported
//! object keeps its id and its times. Its revision starts at 1, and it emits no event. Its derived rows (holds, identities,
//! billing markers, look-ups) are computed again from its fields. The target adds the list of erased people to its own, and
//! no object gets personal data of a person on it.

mod erased;
mod file;
mod importer;
mod object;
mod overlay;

pub use file::{Inspection, Lines, inspect};
pub use importer::{CHUNK, Importer};

use crate::{
    erasing::rows_of,
    resources::{
        Resource,
        organization::{Organization, SYSTEM},
        porters,
    },
    rows::key,
    store::{Key, Order, SCHEMA_VERSION, Span, after},
    value::OrganizationId,
};
use bytes::Bytes;

/// The value of `object` in the first line of an export.
pub const BEGIN: &str = "export";
/// The value of `object` in the last line of an export.
pub const END: &str = "export_end";

/// The spans of the store that contain the records of an export, in the order of its lines. Read each one ascending.
#[must_use]
pub fn spans(organization: OrganizationId) -> Vec<Span> {
    let all = |prefix: Key| Span { to: after(&prefix), from: prefix, order: Order::Ascending, follow: None };
    let own = all(Organization::key(SYSTEM, organization));
    [own, rows_of(Some(organization))]
        .into_iter()
        .chain(porters().map(|porter| all(key::records(organization, porter.spec))))
        .collect()
}

/// The line of a record: the bytes that a GET returns. Line breaks between the tokens of a client's JSON become spaces.
#[must_use]
pub fn line(value: &Bytes) -> Vec<u8> {
    let mut line: Vec<u8> = value.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
    line.push(b'\n');
    line
}

/// The first line of an export. It contains the schema version of the objects.
#[must_use]
pub fn first_line() -> String {
    format!("{{\"object\":\"{BEGIN}\",\"schema_version\":{SCHEMA_VERSION}}}\n")
}

/// The last line of an export with this many lines before it.
#[must_use]
pub fn end_line(lines: u64) -> String {
    format!("{{\"object\":\"{END}\",\"objects\":{lines}}}\n")
}
