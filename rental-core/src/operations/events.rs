//! Adds events, and their outbox rows when the organization has webhook endpoints, to the batch of their change.

use super::edge::Edge;
use crate::{
    error::Error,
    resources::event::{self, EventType},
    rows::{key, outbox},
    store::{Batch, Check, Prior, Store, get_one},
    value::{EventId, OrganizationId},
};
use bytes::Bytes;

/// Whether the organization has webhook endpoints. If it has none, the batch checks that again at the commit, so an
/// endpoint created at the same moment misses no event. An organization without endpoints needs no outbox rows.
pub(super) async fn is_subscribed(
    store: &dyn Store,
    organization: OrganizationId,
    batch: &mut Batch,
) -> Result<bool, Error> {
    let mark = key::subscribed(organization);
    let found = get_one(store, &mark).await?.is_some();
    if !found {
        batch.checks.push(Check::Absent(mark));
    }
    Ok(found)
}

/// Adds an event, its index entry and, when `subscribed`, its outbox row to the batch of its change.
pub(super) fn emit(
    batch: &mut Batch,
    organization: OrganizationId,
    edge: &dyn Edge,
    kind: EventType,
    data: &Bytes,
    subscribed: bool,
) {
    let id = EventId::from_uuid(edge.new_id());
    batch.insert(event::key(organization, id), event::body(id, kind, edge.now(), data));
    event::index_keys(organization, id, kind.as_str()).into_iter().for_each(|entry| batch.mark(entry, Prior::New));
    if subscribed {
        batch.put(key::outbox(organization, id), outbox::value(organization, kind.as_str()), Prior::New);
    }
}
