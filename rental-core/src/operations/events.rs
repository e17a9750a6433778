//! Adds events, and their outbox rows when the organization has webhook endpoints, to the batch of their change.

use super::edge::Edge;
use crate::{
    resources::event::{self, EventType},
    rows::{key, outbox},
    store::{Batch, Check, Key, Prior},
    value::{EventId, OrganizationId},
};
use bytes::Bytes;

/// Whether the organization has webhook endpoints, which the row `mark` tells. If it has none, the batch checks that again
/// at the commit, so an endpoint created at the same moment misses no event. An organization without endpoints needs no
/// outbox rows.
pub(super) fn subscribed(found: bool, mark: Key, batch: &mut Batch) -> bool {
    if !found {
        batch.checks.push(Check::Absent(mark));
    }
    found
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
