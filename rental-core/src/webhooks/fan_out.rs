//! Creates deliveries from outbox rows.

use crate::{
    error::Error,
    operations::edge::Edge,
    resources::{
        Resource, delivery::Delivery, effects, organization::SYSTEM, to_json, webhook_endpoint::WebhookEndpoint,
    },
    rows::{key, outbox::OutboxEvent},
    store::{Batch, Check, Prior, Record, Write},
    value::{DeliveryId, EndpointId, EventId, Id, OrganizationId},
};
use bytes::Bytes;
use std::collections::{HashMap, HashSet};

/// The class of due rows for first attempts. They come before retries.
pub const FRESH: u8 = 0;
/// The class of due rows for retries.
pub const RETRY: u8 = 1;

/// Creates the deliveries of outbox rows in one batch. Returns the endpoints with new deliveries.
///
/// A disabled endpoint gets deliveries too, which wait until it is enabled. The batch is stale when one of the endpoints was
/// deleted.
///
/// # Errors
/// [`Error::Internal`]: an object cannot be serialized, which is a bug.
pub fn plan(
    rows: &[OutboxEvent],
    endpoints: &HashMap<OrganizationId, Vec<WebhookEndpoint>>,
    edge: &dyn Edge,
) -> Result<(Batch, HashSet<EndpointId>), Error> {
    let (mut batch, mut woken) = (Batch::default(), HashSet::new());
    for row in rows {
        let place = key::outbox(row.event);
        batch.checks.push(Check::Present(place.clone()));
        batch.delete(place);
        let own = endpoints.get(&row.organization).map_or(&[][..], Vec::as_slice);
        for endpoint in own.iter().filter(|endpoint| endpoint.wants(&row.kind)) {
            if woken.insert(endpoint.id) {
                batch.checks.push(Check::Present(WebhookEndpoint::key(SYSTEM, endpoint.id)));
            }
            insert(&mut batch, row.organization, endpoint.id, (row.event, &row.kind), edge)?;
        }
    }
    Ok((batch, woken))
}

/// Adds one delivery, which is due now. The batch is stale when the endpoint was deleted.
///
/// # Errors
/// [`Error::Internal`]: an object cannot be serialized, which is a bug.
pub fn add(
    batch: &mut Batch,
    organization: OrganizationId,
    endpoint: EndpointId,
    event: (EventId, &str),
    edge: &dyn Edge,
) -> Result<Delivery, Error> {
    batch.checks.push(Check::Present(WebhookEndpoint::key(SYSTEM, endpoint)));
    insert(batch, organization, endpoint, event, edge)
}

/// Adds the rows of a new delivery.
fn insert(
    batch: &mut Batch,
    organization: OrganizationId,
    endpoint: EndpointId,
    event: (EventId, &str),
    edge: &dyn Edge,
) -> Result<Delivery, Error> {
    let made = Delivery::new(Id::from_uuid(edge.new_id()), endpoint, event, edge.now());
    batch.insert(Delivery::key(organization, made.id), to_json(&made)?);
    effects::index_keys(organization, &made).into_iter().for_each(|entry| batch.mark(entry, Prior::New));
    batch.writes.push(due((organization, endpoint, made.id), FRESH, edge.now().millis(), Prior::New));
    Ok(made)
}

/// Replaces the record of a delivery, and its index entries. `before` is the delivery in `record`.
///
/// # Errors
/// [`Error::Internal`]: an object cannot be serialized, which is a bug.
pub fn replace(
    batch: &mut Batch,
    organization: OrganizationId,
    record: Record,
    before: &Delivery,
    after: &Delivery,
) -> Result<(), Error> {
    let (old, new) = (effects::index_keys(organization, before), effects::index_keys(organization, after));
    old.iter().filter(|entry| !new.contains(entry)).for_each(|entry| batch.delete(entry.clone()));
    new.into_iter().filter(|entry| !old.contains(entry)).for_each(|entry| batch.mark(entry, Prior::Any));
    batch.replace(record.key, record.revision, to_json(after)?);
    Ok(())
}

/// Writes the due row of a delivery: `millis` is the time of its next attempt.
#[must_use]
pub fn due(
    (organization, endpoint, delivery): (OrganizationId, EndpointId, DeliveryId),
    class: u8,
    millis: u64,
    prior: Prior,
) -> Write {
    let value = Bytes::copy_from_slice(organization.as_bytes());
    Write::Put(key::due(endpoint, class, millis, delivery), 0, value, prior)
}
