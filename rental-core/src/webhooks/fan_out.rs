//! From the outbox to deliveries: which endpoint gets which event.

use crate::{
    error::Error,
    operations::edge::Edge,
    resources::{Resource, delivery::Delivery, effects, webhook_endpoint::WebhookEndpoint},
    rows::{key, outbox::OutboxEvent},
    store::{Batch, Check, Prior, Write},
    value::{DeliveryId, EndpointId, EventId, Id, OrganizationId},
    webhooks::deletion,
};
use bytes::Bytes;
use std::collections::{HashMap, HashSet};

/// A due row of a delivery's first attempt, and of one that was tried before: fresh ones go first.
pub const FRESH: u8 = 0;
/// See [`FRESH`].
pub const RETRY: u8 = 1;

/// Turns outbox rows into deliveries, in one batch; gives the endpoints that have something new.
///
/// A disabled endpoint gets its deliveries too: they wait until it is enabled. The batch is stale when one of the endpoints
/// was deleted.
///
/// # Errors
/// Never for objects that this program made.
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
                batch.checks.push(Check::Present(deletion::place(endpoint.id)));
            }
            insert(&mut batch, row.organization, endpoint.id, (row.event, &row.kind), edge)?;
        }
    }
    Ok((batch, woken))
}

/// Adds one delivery that is due at once. The batch is stale when the endpoint was deleted.
///
/// # Errors
/// Never for objects that this program made.
pub fn add(
    batch: &mut Batch,
    organization: OrganizationId,
    endpoint: EndpointId,
    event: (EventId, &str),
    edge: &dyn Edge,
) -> Result<Delivery, Error> {
    batch.checks.push(Check::Present(deletion::place(endpoint)));
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
    let value = serde_json::to_vec(&made).map_err(|error| Error::Internal(error.to_string()))?;
    batch.insert(Delivery::key(organization, made.id), value.into());
    effects::index_keys(organization, &made).into_iter().for_each(|entry| batch.mark(entry, Prior::New));
    batch.writes.push(due((organization, endpoint, made.id), FRESH, edge.now().millis(), Prior::New));
    Ok(made)
}

/// The row that says when a delivery is due.
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
