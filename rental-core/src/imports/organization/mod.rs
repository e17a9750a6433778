//! The export of an organization as lines of JSON, and the import of such lines.
//!
//! The first line contains the schema version of the file. The organization, the
//! list of its erased people and its objects follow, each after the objects that it refers to. The last line contains the number of lines before it, which
//! detects a truncated file. Objects of an older version are lifted as in an upgrade ([`crate::upgrade`]). An imported
//! object keeps its id and its times. Its revision starts at 1, and it emits no event. Its derived rows (holds, identities,
//! look-ups) are computed again from its fields. The target adds the list of erased people to its own, and
//! no object gets personal data of a person on it.

mod contents;
mod erased;
mod file;
mod importer;
mod object;

pub use contents::{Contents, Counting, contents};
pub use erased::AuditErasing;
pub use file::{HEAD_LINES, Inspection, Lines, inspect};
pub use importer::{CHUNK, Importer};

use crate::{
    erasing::rows_of,
    error::Error,
    operations,
    resources::{
        Resource,
        organization::{Organization, SYSTEM},
        porters,
    },
    rows::{Row, key},
    schema::IndexPrefix,
    store::{Key, Order, SCHEMA_VERSION, Scanned, Span, Store, after, key_of},
    value::{OrganizationId, Timestamp},
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

/// The time of the last change of what an export of the organization contains. It reads one row of each resource, so it tells
/// cheaply of most changes that came after an export; [`contents`] tells of all.
///
/// # Errors
/// The store is not available.
pub async fn last_change(store: &dyn Store, organization: &Organization) -> Result<Timestamp, Error> {
    let mut last = organization.updated_at;
    for porter in porters() {
        let spec = porter.spec;
        // The objects of a resource without this index never change: the newest one is the last change.
        let newest = match spec.index_over(&[], Some("updated_at")) {
            Some(index) => IndexPrefix::new(index.number).prefix(organization.id, spec),
            None => key::records(organization.id, spec),
        };
        let row = store.scan(&Span::newest_first(&newest), 1).await?.pop();
        last = last.max(row.and_then(|row| changed_at(&row)).unwrap_or_default());
    }
    Ok(last)
}

/// The time of a record that never changes, or of an index entry that a time orders.
fn changed_at(row: &Scanned) -> Option<Timestamp> {
    let millis = match Row::decode(key_of(row))? {
        // The length of the time comes before it.
        Row::IndexEntry { values, .. } => u64::from_be_bytes(*values.last_chunk()?),
        Row::Record { id, .. } => {
            return row.as_ref().ok().and_then(operations::made_at).or_else(|| Some(operations::id_time(id)));
        }
        _ => return None,
    };
    i64::try_from(millis).ok().map(Timestamp::from_millis)
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
