//! Whether the bytes of a row are what a program wrote there. Reads no other row.

use super::expected::effects_of;
use crate::{
    erasing::Erasure,
    error::Error,
    operations::{api_keys, idempotency::IdempotencyRecord},
    resources::{customer, row_words::damage_in_words, spec_of_tag},
    rows::{
        Marker, Row, calendar_feed::ImportedFeed, claim::read_claim, key, outbox, recheck::Recheck,
        vehicle_feed::VehicleFeed,
    },
    schema::ResourceSpec,
    store::Record,
    tasks::Task,
    value::OrganizationId,
    webhooks::{master_key::InUse, secret::Sealed},
};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use uuid::Uuid;

/// Decodes a row: the kind in its key, and a value of this kind.
///
/// # Errors
/// What is wrong, as a sentence that follows the place of the row.
pub(super) fn decode(row: &Record) -> Result<Row<'_>, String> {
    let kind = Row::decode(&row.key).ok_or("no program that knows this store makes such a row")?;
    match kind {
        Row::Record { resource, id, .. } => {
            let spec = spec_of_tag(resource).ok_or("no record lies at such a key")?;
            is_itself(spec, id, &row.value)?;
            effects_of(spec, &row.key, &row.value).map_err(detail)?;
            has_revision(row)?;
        }
        Row::IndexEntry { resource, .. } => {
            known(resource)?;
            empty(row)?;
        }
        Row::IdempotencyExpiry { .. } => empty(row)?,
        Row::Access { .. } => access(row)?,
        Row::Calendar { .. } | Row::Hold { .. } if row.value.len() != 4 => return Err("it has the wrong size".into()),
        Row::Calendar { .. } | Row::Hold { .. } => {}
        Row::Due { .. } => drop(OrganizationId::from_slice(&row.value).ok_or("it names no organization")?),
        Row::Erased { resource, .. } => {
            if known(resource)?.tag == customer::SPEC.tag {
                Erasure::read(row).map_err(detail)?;
            }
        }
        Row::VehicleFeed { .. } => drop(VehicleFeed::read(row).map_err(detail)?),
        Row::CalendarFeed { .. } => drop(ImportedFeed::read(row).map_err(detail)?),
        Row::Recheck { .. } => drop(Recheck::read(row).map_err(detail)?),
        Row::IdempotencyRecord { .. } => drop(json::<IdempotencyRecord>(row)?),
        Row::Counter { .. } if row.revision == 0 => return Err("it has no number".into()),
        Row::Outbox { .. } => drop(outbox::read(row).map_err(detail)?),
        Row::Logo { .. } if !row.value.starts_with(b"\x89PNG\r\n\x1a\n") => return Err("it is not a PNG image".into()),
        Row::Secrets { .. } => drop(json::<Sealed>(row)?),
        Row::Task { .. } => drop(Task::read(row).map_err(detail)?),
        Row::Identity { resource, .. } => {
            known(resource)?;
            read_claim(row).map_err(detail)?;
        }
        Row::Marker(Marker::MasterKey) => drop(json::<InUse>(row)?),
        Row::Usage { .. } | Row::Marker(Marker::Upgrade) => drop(json::<IgnoredAny>(row)?),
        Row::Counter { .. }
        | Row::Logo { .. }
        | Row::Subscribed { .. }
        // Rows of running servers, and the mark of a copy.
        | Row::Heartbeat { .. }
        | Row::Owner { .. }
        | Row::Bell { .. }
        | Row::Marker(Marker::Loading) => {}
    }
    Ok(kind)
}

fn access(row: &Record) -> Result<(), String> {
    let hash: Option<[u8; 32]> = row.value.get(..32).and_then(|hash| hash.try_into().ok());
    let hash = hash.ok_or("it has no hash")?;
    if key::access(&hash) != row.key {
        return Err("it belongs to another hash".into());
    }
    let leads =
        api_keys::open_operator_entry(&row.value, &hash).is_some() || api_keys::open_entry(&row.value, &hash).is_some();
    if leads { Ok(()) } else { Err("it names no API key and no operator".into()) }
}

fn known(resource: u8) -> Result<&'static ResourceSpec, String> {
    spec_of_tag(resource).ok_or_else(|| "it is of no known resource".into())
}

fn has_revision(row: &Record) -> Result<(), String> {
    if row.revision == 0 { Err("it has no revision".into()) } else { Ok(()) }
}

fn empty(row: &Record) -> Result<(), String> {
    if row.revision == 0 && row.value.is_empty() { Ok(()) } else { Err("it should be empty".into()) }
}

fn json<T: DeserializeOwned>(row: &Record) -> Result<T, String> {
    crate::value::read_json(&row.value).map_err(|error| format!("it does not parse: {error}"))
}

/// Checks that a stored object says that it is the object of its key.
fn is_itself(spec: &ResourceSpec, id: Uuid, json: &[u8]) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Any {
        id: Uuid,
        object: String,
    }
    let any: Any = crate::value::read_json(json).map_err(|error| format!("it does not parse: {error}"))?;
    if any.id == id && any.object == spec.object {
        return Ok(());
    }
    Err(format!("it says that it is {} {}", any.object, any.id))
}

/// The text of an error about a row.
pub(super) fn detail(error: Error) -> String {
    match error {
        Error::Internal(detail) => detail,
        Error::Damaged(row) => damage_in_words(&row),
        other => format!("{other:?}"),
    }
}
