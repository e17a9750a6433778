//! Deletes an organization with every row that belongs to it.
//!
//! The first batch ([`begin`]) deletes the organization's record, its webhook endpoints with their secrets, and begins the
//! task. From then on its API keys are refused, nothing is sent for it, and no write adds a row: every batch that does so
//! checks that the organization, or the endpoint, exists. Each step then deletes a bounded number of rows, in the order
//! of their tags. The last one adds an audit entry. Audit entries stay until their retention ends.

use crate::{
    error::Error,
    operations::{api_keys, idempotency::IdempotencyRecord},
    resources::{
        Resource,
        api_key::{self, ApiKey},
        audit_entry::AuditEntry,
        effects,
        organization::{self, SYSTEM},
        to_json,
        webhook_endpoint::{self, WebhookEndpoint},
    },
    rows::{Row, Tag, key},
    store::{Batch, Check, DamagedRow, Key, Prior, Record, Scanned, Span, Store, after, get_each, get_one, key_of},
    value::{ApiKeyId, AuditEntryId, EndpointId, OrganizationId, TaskId, Timestamp},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

/// Most rows that one step deletes or looks at.
pub const BATCH: usize = 256;
/// Most webhook endpoints that [`begin`] reads. An organization has at most 50.
const MOST_ENDPOINTS: usize = 1000;
/// The `object` of the response that begins a deletion, and of its progress.
pub const OBJECT: &str = "organization_deletion";
/// The action of the audit entry at the end of a deletion.
pub const FINISHED: &str = "organizationDeleted";

/// The state of the task.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct OrganizationDeletion {
    /// The id of the deleted organization.
    pub organization_id: OrganizationId,
    /// The webhook endpoints that it had.
    pub endpoint_ids: Vec<EndpointId>,
    /// When the deletion began.
    pub began_at: Timestamp,
    /// The id of the request that began it.
    pub request_id: String,
    /// The id of the audit entry that the last step adds.
    pub report_id: AuditEntryId,
    /// The number of rows that the steps deleted.
    pub rows: u64,
    /// The tag of the rows that the next step looks at, as its byte.
    tag: u8,
    /// In a walk over rows of all organizations: the last key that was looked at, or its first part, in hex.
    after: Option<String>,
}

/// The first batch of a deletion.
#[derive(Debug)]
pub struct Begun {
    /// Deletes the organization's record and its webhook endpoints. The task is not in it yet.
    pub batch: Batch,
    /// The state of the task.
    pub state: OrganizationDeletion,
}

/// The id of the task that deletes an organization: the UUID of the organization, so there is at most one.
#[must_use]
pub fn task_id(organization: OrganizationId) -> TaskId {
    TaskId::from_uuid(organization.uuid())
}

/// How long a hold lasts at most, in milliseconds. A server that stops between the hold and the decision leaves it behind.
const LONGEST_HOLD: u64 = 30_000;

/// The state of a hold, see [`super::organization_hold`].
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct OrganizationHold {
    /// The organization whose writes wait.
    pub organization_id: OrganizationId,
}

/// Whether the request that made a hold is gone.
pub(super) fn is_forgotten(held_at: Timestamp, now: Timestamp) -> bool {
    now.millis().saturating_sub(held_at.millis()) > LONGEST_HOLD
}

/// Prepares the first batch of a deletion. `record` is that of the organization.
///
/// # Errors
/// The store is not available.
pub async fn begin(
    store: &dyn Store,
    record: &Record,
    organization: OrganizationId,
    (report_id, request_id, now): (AuditEntryId, &str, Timestamp),
) -> Result<Begun, Error> {
    let mut batch = Batch::default();
    batch.checks.push(Check::At(record.key.clone(), record.revision));
    batch.delete(record.key.clone());
    // A request that creates an endpoint at the same time changes this row, so no endpoint is missed.
    let subscribed = key::subscribed(organization);
    batch.checks.push(match get_one(store, &subscribed).await? {
        Some(mark) => Check::At(mark.key, mark.revision),
        None => Check::Absent(subscribed.clone()),
    });
    batch.delete(subscribed);
    let entries = webhook_endpoint::of_organization(organization).prefix(SYSTEM, &webhook_endpoint::SPEC);
    let mut endpoint_ids = Vec::new();
    // By their index entries: these lead to damaged endpoints as well.
    for row in store.scan(&Span::under(entries), MOST_ENDPOINTS).await? {
        batch.delete(key_of(&row).clone());
        if let Some(id) = key_of(&row).id().map(EndpointId::from_uuid) {
            batch.delete(WebhookEndpoint::key(SYSTEM, id));
            batch.delete(key::secrets(id));
            endpoint_ids.push(id);
        }
    }
    let mut state = OrganizationDeletion::new(organization, (report_id, request_id, now));
    state.endpoint_ids = endpoint_ids;
    Ok(Begun { batch, state })
}

/// How the rows of a kind that belong to an organization are found.
enum Found {
    /// The organization is the first part of the key.
    ByOrganization,
    /// A webhook endpoint is the first part of the key, and the organization deleted it with itself.
    ByEndpoint,
    /// A webhook endpoint is the first part of the key. The first row of each endpoint says whose it is: the organization may
    /// have deleted it before.
    ByFirstOfEndpoint,
    /// All rows of the kind are looked at: there are few, or they live for a day at most.
    OneByOne,
    /// Rows of the kind belong to no organization, or running servers remove them.
    Nowhere,
}

/// How the rows of each kind are found. A new kind of row does not compile before it is decided here.
const fn found(tag: Tag) -> Found {
    match tag {
        Tag::Calendar
        | Tag::Erased
        | Tag::VehicleFeed
        | Tag::CalendarFeed
        | Tag::Hold
        | Tag::IndexEntry
        | Tag::IdempotencyRecord
        | Tag::Counter
        | Tag::Outbox
        | Tag::Logo
        | Tag::Subscribed
        | Tag::Recheck
        | Tag::Record
        | Tag::Identity => Found::ByOrganization,
        Tag::Secrets | Tag::Owner => Found::ByEndpoint,
        Tag::Due => Found::ByFirstOfEndpoint,
        Tag::Access | Tag::IdempotencyExpiry => Found::OneByOne,
        Tag::Marker | Tag::Bell | Tag::Heartbeat | Tag::Task | Tag::Usage => Found::Nowhere,
    }
}

impl OrganizationDeletion {
    /// The state before the first step, without webhook endpoints.
    fn new(organization: OrganizationId, (report_id, request_id, now): (AuditEntryId, &str, Timestamp)) -> Self {
        Self {
            organization_id: organization,
            endpoint_ids: Vec::new(),
            began_at: now,
            request_id: request_id.to_owned(),
            report_id,
            rows: 0,
            tag: 0,
            after: None,
        }
    }

    /// The rows of a kind that a walk over all of them has not looked at.
    fn rest_of(&self, tag: Tag) -> Span {
        let mut span = key::of_kind(tag);
        if let Some(key) = self.after.as_ref().and_then(|text| hex::decode(text).ok()) {
            span.from = after(&Key::from(key));
        }
        span
    }
}

/// Adds the next step to `batch`. Returns whether it is the last one. A damaged row is deleted if its key says that it
/// belongs to the organization; otherwise it stays and is added to `damaged`.
pub(crate) async fn step(
    store: &dyn Store,
    state: &mut OrganizationDeletion,
    (batch, now): (&mut Batch, Timestamp),
    damaged: &mut Vec<DamagedRow>,
) -> Result<bool, Error> {
    for tag in Tag::ALL.iter().copied().filter(|tag| *tag as u8 >= state.tag).collect::<Vec<_>>() {
        if state.tag != tag as u8 {
            (state.tag, state.after) = (tag as u8, None);
        }
        let looked = look(store, state, tag, batch, damaged).await?;
        state.rows += batch.writes.len() as u64;
        if looked {
            return Ok(false);
        }
    }
    report(state, batch, now)?;
    Ok(true)
}

/// Deletes rows of one kind. Returns whether it looked at any that a further step need not look at again.
async fn look(
    store: &dyn Store,
    state: &mut OrganizationDeletion,
    tag: Tag,
    batch: &mut Batch,
    damaged: &mut Vec<DamagedRow>,
) -> Result<bool, Error> {
    match found(tag) {
        Found::Nowhere => Ok(false),
        Found::ByOrganization => {
            if tag == Tag::IndexEntry {
                remaining_api_keys(store, state.organization_id, batch).await?;
            }
            let rows = store.scan(&key::of_organization(tag, state.organization_id), BATCH).await?;
            rows.iter().for_each(|row| batch.delete(key_of(row).clone()));
            Ok(!batch.is_empty())
        }
        Found::ByEndpoint => {
            for endpoint in &state.endpoint_ids {
                let rows = store.scan(&key::of_endpoint(tag, *endpoint), BATCH - batch.writes.len()).await?;
                rows.iter().for_each(|row| batch.delete(key_of(row).clone()));
                if batch.writes.len() == BATCH {
                    break;
                }
            }
            Ok(!batch.is_empty())
        }
        Found::ByFirstOfEndpoint => due_rows(store, state, batch, damaged).await,
        Found::OneByOne => {
            let rows = store.scan(&state.rest_of(tag), BATCH).await?;
            let Some(last) = rows.last().map(|row| hex::encode(key_of(row).as_bytes())) else { return Ok(false) };
            let organization = state.organization_id;
            match tag {
                Tag::Access => api_keys_of(store, organization, rows, batch, damaged).await?,
                _ => responses_of(store, organization, rows, batch, damaged).await?,
            }
            state.after = Some(last);
            Ok(true)
        }
    }
}

/// Deletes due rows of one endpoint, or looks at so many endpoints as a step may look at rows.
async fn due_rows(
    store: &dyn Store,
    state: &mut OrganizationDeletion,
    batch: &mut Batch,
    damaged: &mut Vec<DamagedRow>,
) -> Result<bool, Error> {
    for _ in 0..BATCH {
        let Some(row) = store.scan(&state.rest_of(Tag::Due), 1).await?.pop() else { return Ok(false) };
        let place = key_of(&row).clone();
        let Some(endpoint) = key::due_endpoint(&place) else {
            damaged.push(*DamagedRow::new(place.clone(), "it names no webhook endpoint"));
            state.after = Some(hex::encode(place.as_bytes()));
            continue;
        };
        let is_ours = match row.map(|row| OrganizationId::from_slice(&row.value)) {
            Ok(Some(owner)) => owner == state.organization_id,
            Ok(None) | Err(_) => state.endpoint_ids.contains(&endpoint),
        };
        let all = key::all_due_rows(endpoint);
        if is_ours {
            let rows = store.scan(&all, BATCH).await?;
            rows.iter().for_each(|row| batch.delete(key_of(row).clone()));
            return Ok(true);
        }
        state.after = Some(hex::encode(all.from.as_bytes()));
    }
    Ok(true)
}

/// Deletes the rows that find API keys of the organization, and the keys.
async fn api_keys_of(
    store: &dyn Store,
    organization: OrganizationId,
    rows: Vec<Scanned>,
    batch: &mut Batch,
    damaged: &mut Vec<DamagedRow>,
) -> Result<(), Error> {
    let (mut ways, mut entries) = (Vec::new(), Vec::new());
    for row in rows {
        match row {
            Ok(row) => {
                let hash: Option<[u8; 32]> = row.value.get(..32).and_then(|hash| hash.try_into().ok());
                // `None`: the row finds an operator.
                if let Some(id) = hash.and_then(|hash| api_keys::open_entry(&row.value, &hash)) {
                    let prefix = api_key::of_organization(organization);
                    entries.push(prefix.entry(SYSTEM, &api_key::SPEC, id.uuid()));
                    ways.push((row.key, id));
                }
            }
            Err(row) => damaged.push(*row),
        }
    }
    for ((way, id), found) in ways.into_iter().zip(get_each(store, &entries).await?) {
        if !matches!(found, Ok(None)) {
            batch.delete(way);
            delete_api_key(batch, organization, id);
        }
    }
    Ok(())
}

/// Deletes API keys that no row finds: such a row was damaged.
async fn remaining_api_keys(store: &dyn Store, organization: OrganizationId, batch: &mut Batch) -> Result<(), Error> {
    let entries = api_key::of_organization(organization).prefix(SYSTEM, &api_key::SPEC);
    for row in store.scan(&Span::under(entries), BATCH).await? {
        if let Some(id) = key_of(&row).id() {
            delete_api_key(batch, organization, ApiKeyId::from_uuid(id));
        }
    }
    Ok(())
}

fn delete_api_key(batch: &mut Batch, organization: OrganizationId, id: ApiKeyId) {
    batch.delete(api_key::of_organization(organization).entry(SYSTEM, &api_key::SPEC, id.uuid()));
    batch.delete(ApiKey::key(SYSTEM, id));
}

/// Deletes the expiries of the organization's idempotency records, and stored responses to operators that are about it.
async fn responses_of(
    store: &dyn Store,
    organization: OrganizationId,
    rows: Vec<Scanned>,
    batch: &mut Batch,
    damaged: &mut Vec<DamagedRow>,
) -> Result<(), Error> {
    let (mut expiries, mut records) = (Vec::new(), Vec::new());
    for row in rows {
        let place = key_of(&row);
        match Row::decode(place) {
            Some(Row::IdempotencyExpiry { organization: owner, .. }) if owner == organization => {
                batch.delete(place.clone());
            }
            Some(Row::IdempotencyExpiry { organization: owner, name, .. }) if owner == SYSTEM => {
                records.push(key::idempotency_record(SYSTEM, name));
                expiries.push(place.clone());
            }
            _ => {}
        }
    }
    for (expiry, found) in expiries.into_iter().zip(get_each(store, &records).await?) {
        match found {
            Ok(Some(record)) if is_about(&record, organization) => {
                batch.checks.push(Check::At(record.key.clone(), record.revision));
                batch.delete(record.key);
                batch.delete(expiry);
            }
            Ok(_) => {}
            Err(row) => damaged.push(*row),
        }
    }
    Ok(())
}

/// Whether a stored response contains the organization or an object of an operator that names it. The response that began
/// its deletion stays, so that the request can be repeated.
fn is_about(record: &Record, organization: OrganizationId) -> bool {
    #[derive(Default, Deserialize)]
    struct Body {
        #[serde(default)]
        id: Option<Uuid>,
        #[serde(default)]
        object: Option<String>,
        #[serde(default)]
        organization_id: Option<Uuid>,
    }
    let stored: Option<IdempotencyRecord> = crate::value::read_json(&record.value).ok();
    let body: Body = stored.and_then(|stored| serde_json::from_str(stored.body.get()).ok()).unwrap_or_default();
    let object = body.object.as_deref().unwrap_or_default();
    let itself = object == organization::SPEC.object && body.id == Some(organization.uuid());
    object != OBJECT && (itself || body.organization_id == Some(organization.uuid()))
}

/// Adds the audit entry that says that nothing is left.
fn report(state: &OrganizationDeletion, batch: &mut Batch, now: Timestamp) -> Result<(), Error> {
    let entry = AuditEntry {
        id: state.report_id,
        object: "audit_entry".into(),
        action: FINISHED.into(),
        actor: None,
        actor_id: None,
        address: None,
        organization_id: Some(state.organization_id),
        resource_id: Some(state.organization_id.uuid()),
        path: format!("/admin/v1/{}/{}", organization::SPEC.plural, state.organization_id),
        details: AuditEntry::details(json!({"rows": state.rows, "began_at": state.began_at}).to_string().as_bytes()),
        request_id: state.request_id.clone(),
        created_at: now,
    };
    batch.insert(AuditEntry::key(SYSTEM, entry.id), to_json(&entry)?);
    effects::index_keys(SYSTEM, &entry).into_iter().for_each(|place| batch.mark(place, Prior::New));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_that_name_the_organization_first_are_found_by_it() {
        for tag in Tag::ALL {
            assert_eq!(matches!(found(*tag), Found::ByOrganization), tag.is_owned(), "{tag:?}");
        }
    }
}
