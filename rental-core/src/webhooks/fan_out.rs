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
use std::collections::{HashMap, HashSet, VecDeque};

/// Most deliveries in one batch. An organization has at most 50 endpoints, so a single event never has more.
pub const MOST_DELIVERIES: usize = 500;
/// The class of due rows for first attempts. They come before retries.
pub const FRESH: u8 = 0;
/// The class of due rows for retries.
pub const RETRY: u8 = 1;

/// The waiting events of one organization, oldest first, and its endpoints, disabled ones included.
#[derive(Debug)]
pub struct Waiting {
    /// The organization.
    pub organization: OrganizationId,
    /// The events.
    pub events: VecDeque<OutboxEvent>,
    /// The endpoints.
    pub endpoints: Vec<WebhookEndpoint>,
}

/// Selects the events of the next batch: always the oldest event of the organization that has the fewest deliveries in the
/// batch so far. So a burst of one organization delays another one by at most a batch. A batch has at most
/// [`MOST_DELIVERIES`], and at least one event.
#[must_use]
pub fn share(waiting: &mut [Waiting]) -> Vec<OutboxEvent> {
    let (mut selected, mut used, mut total) = (Vec::new(), vec![0; waiting.len()], 0);
    loop {
        let next = waiting.iter().enumerate().filter(|(_, own)| !own.events.is_empty()).min_by_key(|(at, _)| used[*at]);
        let Some(at) = next.map(|(at, _)| at) else { return selected };
        let Waiting { events, endpoints, .. } = &mut waiting[at];
        // An event without deliveries costs its outbox row.
        let cost =
            events.front().map_or(0, |event| endpoints.iter().filter(|one| one.wants(&event.kind)).count().max(1));
        total += cost;
        if total > MOST_DELIVERIES && !selected.is_empty() {
            return selected;
        }
        used[at] += cost;
        selected.extend(events.pop_front());
    }
}

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
        let place = key::outbox(row.organization, row.event);
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
    // Read once: the due row is found by the time in the record.
    let now = edge.now();
    let made = Delivery::new(Id::from_uuid(edge.new_id()), endpoint, event, now);
    batch.insert(Delivery::key(organization, made.id), to_json(&made)?);
    effects::index_keys(organization, &made).into_iter().for_each(|entry| batch.mark(entry, Prior::New));
    batch.writes.push(due((organization, endpoint, made.id), FRESH, now.millis(), Prior::New));
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// An organization with this number of waiting events and of endpoints.
    fn waiting(organization: u128, events: u128, endpoints: u128) -> Waiting {
        let organization = OrganizationId::from_u128(organization);
        let endpoint = |number| {
            let object = json!({
                "id": EndpointId::from_u128(number), "object": "webhook_endpoint", "organization_id": organization,
                "url": "https://example.com/", "events": null, "status": "enabled", "disabled_reason": null,
                "disabled_at": null, "failures_in_a_row": 0, "api_version": "2026-05-05",
                "created_at": "2026-05-05T00:00:00Z", "updated_at": "2026-05-05T00:00:00Z",
            });
            serde_json::from_value(object).unwrap()
        };
        let event =
            |number| OutboxEvent { event: EventId::from_u128(number), organization, kind: "lead.received".into() };
        Waiting {
            organization,
            events: (0..events).map(event).collect(),
            endpoints: (0..endpoints).map(endpoint).collect(),
        }
    }

    /// How many events of each organization are in the next batch.
    fn counts(waiting: &mut [Waiting]) -> Vec<usize> {
        let owners: Vec<OrganizationId> = waiting.iter().map(|own| own.organization).collect();
        let selected = share(waiting);
        owners.iter().map(|owner| selected.iter().filter(|event| event.organization == *owner).count()).collect()
    }

    #[test]
    fn a_burst_leaves_others_their_share_of_each_batch() {
        assert_eq!(counts(&mut [waiting(1, 1000, 50), waiting(2, 1, 1)]), [9, 1]);
        assert_eq!(counts(&mut [waiting(1, 1000, 50), waiting(2, 1000, 50)]), [5, 5]);
        let [many, few] = counts(&mut [waiting(1, 1000, 50), waiting(2, 1000, 1)])[..] else { panic!("two") };
        assert!(many == 5 && (200..=250).contains(&few), "{many} {few}");
    }

    #[test]
    fn one_organization_alone_gets_the_whole_batch_and_events_without_deliveries_count() {
        assert_eq!(counts(&mut [waiting(1, 1000, 1)]), [MOST_DELIVERIES]);
        assert_eq!(counts(&mut [waiting(1, 1000, 0)]), [MOST_DELIVERIES]);
        assert_eq!(counts(&mut [waiting(1, 3, 0), waiting(2, 0, 7)]), [3, 0]);
        assert_eq!(counts(&mut []), [0; 0]);
    }

    #[test]
    fn the_oldest_events_of_an_organization_come_first_and_none_twice() {
        let mut all = [waiting(1, 30, 50), waiting(2, 30, 20)];
        let mut seen = vec![Vec::new(), Vec::new()];
        loop {
            let batch = share(&mut all);
            if batch.is_empty() {
                break;
            }
            for event in batch {
                seen[usize::from(event.organization == OrganizationId::from_u128(2))].push(event.event);
            }
        }
        let expected: Vec<EventId> = (0..30).map(EventId::from_u128).collect();
        assert_eq!(seen, [expected.clone(), expected]);
    }
    /// A clock that goes on whenever it is read.
    #[derive(Default)]
    struct Ticks(std::sync::atomic::AtomicI64);

    impl Edge for Ticks {
        fn now(&self) -> crate::value::Timestamp {
            crate::value::Timestamp::from_millis(self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
        }

        fn new_id(&self) -> uuid::Uuid {
            uuid::Uuid::from_u128(7)
        }
    }

    #[test]
    fn the_due_row_of_a_new_delivery_has_the_time_of_its_record() {
        let (mut batch, event) = (Batch::default(), EventId::from_u128(1));
        let endpoint = EndpointId::from_u128(2);
        let made = add(&mut batch, OrganizationId::from_u128(3), endpoint, (event, "lead.received"), &Ticks::default());
        let made = made.unwrap();
        let due_at = made.next_attempt_at.unwrap().millis();
        let place = key::due(endpoint, FRESH, due_at, made.id);
        assert!(
            batch.writes.iter().any(|write| matches!(write, Write::Put(key, ..) if *key == place)),
            "{:?}",
            batch.writes
        );
    }
}
