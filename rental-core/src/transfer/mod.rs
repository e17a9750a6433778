//! The way out and in: all objects of an organization as lines of JSON, and such lines as objects of an organization.
//!
//! A file begins with a line that tells its schema version (a file of version 2 has none). Then come the organization and
//! its objects, each after those that it names, and a last line that tells how many lines came before it, so that a file
//! that was broken off is noticed. Objects of an older version are lifted as they are in an upgrade ([`crate::upgrade`]). An object keeps its id and its
//! times; its revision starts anew, and nothing is announced: it is no news that it exists. Whatever goes with it beside
//! itself (holds, identities, what is billed, look-ups) is made again from what it says.

mod arrivals;
mod file;
mod layered;
mod object;

pub use arrivals::{Arrivals, CHUNK};
pub use file::{Inspection, Lines, inspect};

use crate::{
    resources::{
        customer, invoice, lead,
        organization::{self, SYSTEM},
        rental, toll, vehicle, violation,
    },
    spec::ResourceSpec,
    store::{Key, Order, SCHEMA_VERSION, Span, key},
};
use bytes::Bytes;
use uuid::Uuid;

/// The resources in the order of a file: what an object names comes before it.
pub const ORDER: [&ResourceSpec; 7] =
    [&vehicle::SPEC, &customer::SPEC, &rental::SPEC, &toll::SPEC, &violation::SPEC, &invoice::SPEC, &lead::SPEC];

/// What the first line calls itself.
pub const BEGIN: &str = "export";
/// What the last line calls itself.
pub const END: &str = "export_end";

/// Where the lines of a file lie in the store, one span after the other, oldest first.
#[must_use]
pub fn spans(organization: Uuid) -> Vec<Span> {
    let all = |prefix: Key| Span { to: key::after(&prefix), from: prefix, order: Order::Ascending, follow: None };
    let own = all(key::record(SYSTEM, &organization::SPEC, organization));
    std::iter::once(own).chain(ORDER.iter().map(|spec| all(key::records(organization, spec)))).collect()
}

/// The line of a record: the bytes of a GET. Line breaks can only stand between the tokens of what a client sent as any
/// JSON, where they mean nothing: they become spaces.
#[must_use]
pub fn line(value: &Bytes) -> Vec<u8> {
    let mut line: Vec<u8> = value.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
    line.push(b'\n');
    line
}

/// The first line.
#[must_use]
pub fn first_line() -> String {
    format!("{{\"object\":\"{BEGIN}\",\"schema_version\":{SCHEMA_VERSION}}}\n")
}

/// The last line, after so many others.
#[must_use]
pub fn end_line(lines: u64) -> String {
    format!("{{\"object\":\"{END}\",\"objects\":{lines}}}\n")
}
