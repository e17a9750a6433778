//! The export of an organization as lines of JSON, and the import of such lines.
//!
//! The first line is the organization. The objects follow, each one after the objects that it names. The last line has
//! the number of lines before it, so that a truncated file is noticed. An imported object keeps its id and its times. Its
//! revision starts at 1, and it fires no event, because it is not new. Its derived rows (holds, identities, billing
//! markers, look-ups) are made again from its fields.

mod file;
mod importer;
mod object;
mod overlay;

pub use file::{Inspection, Lines, inspect};
pub use importer::{CHUNK, Importer};

use crate::{
    resources::{
        customer, invoice, lead,
        organization::{self, SYSTEM},
        rental, toll, vehicle, violation,
    },
    spec::ResourceSpec,
    store::{Key, Order, Span, key},
};
use bytes::Bytes;
use uuid::Uuid;

/// The resources in the order of a file. An object names objects of earlier resources only.
pub const ORDER: [&ResourceSpec; 7] =
    [&vehicle::SPEC, &customer::SPEC, &rental::SPEC, &toll::SPEC, &violation::SPEC, &invoice::SPEC, &lead::SPEC];

/// The `object` of the last line.
pub const END: &str = "export_end";

/// The spans of the store whose records are the lines of an export, in their order. Each span begins with the oldest.
#[must_use]
pub fn spans(organization: Uuid) -> Vec<Span> {
    let all = |prefix: Key| Span { to: key::after(&prefix), from: prefix, order: Order::Ascending, follow: None };
    let own = all(key::record(SYSTEM, &organization::SPEC, organization));
    std::iter::once(own).chain(ORDER.iter().map(|spec| all(key::records(organization, spec)))).collect()
}

/// The line of a record: the bytes of a GET. A line break can only be between the tokens of a client's own JSON, where it
/// means nothing. It becomes a space.
#[must_use]
pub fn line(value: &Bytes) -> Vec<u8> {
    let mut line: Vec<u8> = value.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
    line.push(b'\n');
    line
}

/// The last line of a file with this many lines before it.
#[must_use]
pub fn end_line(lines: u64) -> String {
    format!("{{\"object\":\"{END}\",\"objects\":{lines}}}\n")
}
