//! The export of an organization as lines of JSON, and the import of such lines.
//!
//! The first line has the schema version of the file; a file of version 2 has no such line. The organization and its
//! objects follow, each one after the objects that it names. The last line has the number of lines before it, so that a
//! truncated file is noticed. Objects of an older version are lifted as in an upgrade ([`crate::upgrade`]). An imported
//! object keeps its id and its times. Its revision starts at 1, and it fires no event, because it is not new. Its derived
//! rows (holds, identities, billing markers, look-ups) are made again from its fields.

mod file;
mod importer;
mod object;
mod overlay;

pub use file::{Inspection, Lines, inspect};
pub use importer::{CHUNK, Importer};

use crate::{
    resources::{
        Resource,
        organization::{Organization, SYSTEM},
        registry::PORTERS,
    },
    rows::key,
    store::{Key, Order, SCHEMA_VERSION, Span, after},
    value::OrganizationId,
};
use bytes::Bytes;

/// The `object` of the first line.
pub const BEGIN: &str = "export";
/// The `object` of the last line.
pub const END: &str = "export_end";

/// The spans of the store whose records are the lines of an export, in their order. Each span begins with the oldest.
#[must_use]
pub fn spans(organization: OrganizationId) -> Vec<Span> {
    let all = |prefix: Key| Span { to: after(&prefix), from: prefix, order: Order::Ascending, follow: None };
    let own = all(Organization::key(SYSTEM, organization));
    std::iter::once(own).chain(PORTERS.iter().map(|porter| all(key::records(organization, porter.spec)))).collect()
}

/// The line of a record: the bytes of a GET. A line break can only be between the tokens of a client's own JSON, where it
/// means nothing. It becomes a space.
#[must_use]
pub fn line(value: &Bytes) -> Vec<u8> {
    let mut line: Vec<u8> = value.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
    line.push(b'\n');
    line
}

/// The first line: the schema version of the objects.
#[must_use]
pub fn first_line() -> String {
    format!("{{\"object\":\"{BEGIN}\",\"schema_version\":{SCHEMA_VERSION}}}\n")
}

/// The last line of a file with this many lines before it.
#[must_use]
pub fn end_line(lines: u64) -> String {
    format!("{{\"object\":\"{END}\",\"objects\":{lines}}}\n")
}
