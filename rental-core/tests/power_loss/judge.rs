//! Whether the rows of a store can be those after some of the requests: nothing acknowledged is lost, and nothing is half
//! there. It knows the requests and their responses, and not how the store works.

use crate::requests::Request;
use rental_core::{
    check::Audit,
    resources::{delivery::Delivery, event, webhook_endpoint},
    rows::Row,
    store::{Key, Record},
    value::{EndpointId, EventId, OrganizationId},
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use uuid::Uuid;

/// The response that a client got.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    /// The group of batches after which it came.
    pub(crate) group: usize,
    pub(crate) request: usize,
    pub(crate) status: u16,
    pub(crate) body: String,
}

#[derive(Deserialize)]
struct Stored {
    status: u16,
    revision: Option<u64>,
    body: Box<RawValue>,
}

#[derive(Deserialize)]
struct Object {
    id: Uuid,
    object: String,
}

/// The stored responses by the number of the request.
type StoredResponses = BTreeMap<usize, Stored>;

/// Checks all of it. `rows` are in the order of their keys.
pub(crate) fn judge<'r>(
    rows: &[Record],
    requests: &[Arc<Request>],
    promised: impl Iterator<Item = &'r Response>,
) -> Result<(), String> {
    let stored = stored_responses(rows)?;
    acknowledged(&stored, promised)?;
    no_night_twice(rows)?;
    effects(rows, requests, &stored)?;
    events(rows, requests, &stored)?;
    outbox(rows)?;
    consistent(rows)
}

fn parse<'a, T: Deserialize<'a>>(record: &'a Record) -> Result<T, String> {
    serde_json::from_slice(&record.value).map_err(|error| format!("{:?} does not parse: {error}", record.key))
}

fn object(body: &str) -> Result<Object, String> {
    serde_json::from_str(body).map_err(|error| format!("{body} is no object: {error}"))
}

/// The product's own check: every record has its derived rows, and every reference leads to a row.
fn consistent(rows: &[Record]) -> Result<(), String> {
    let find = |key: &Key| Ok(rows.binary_search_by(|row| row.key.cmp(key)).ok().map(|at| rows[at].clone()));
    let mut audit = Audit::new(&find);
    rows.iter().for_each(|row| audit.row(row));
    let report = audit.finish();
    if report.problems == 0 { Ok(()) } else { Err(format!("the check of the store finds {:?}", report.listed)) }
}

fn stored_responses(rows: &[Record]) -> Result<StoredResponses, String> {
    let mut stored = StoredResponses::new();
    for record in rows {
        let Some(Row::IdempotencyRecord { name, .. }) = Row::decode(&record.key) else { continue };
        let number = name.strip_prefix("request-").and_then(|number| number.parse().ok());
        stored.insert(number.ok_or_else(|| format!("nobody sent the idempotency key {name}"))?, parse(record)?);
    }
    Ok(stored)
}

fn acknowledged<'r>(stored: &StoredResponses, promised: impl Iterator<Item = &'r Response>) -> Result<(), String> {
    for response in promised {
        let Some(found) = stored.get(&response.request) else {
            return Err(format!("request {} was acknowledged, and lost", response.request));
        };
        if (found.status, found.body.get()) != (response.status, &*response.body) {
            return Err(format!(
                "request {} was answered, and now otherwise: {response:?}, {}",
                response.request, found.body
            ));
        }
    }
    Ok(())
}

/// An idempotency record exists exactly when its effect exists: each revision of each object has one.
fn effects(rows: &[Record], requests: &[Arc<Request>], stored: &StoredResponses) -> Result<(), String> {
    let mut answers: BTreeMap<Uuid, BTreeMap<u64, &str>> = BTreeMap::new();
    for (number, response) in stored {
        let Some(revision) = response.revision else { continue };
        let id = object(response.body.get())?.id;
        let earlier = answers.entry(id).or_default().insert(revision, response.body.get());
        if earlier.is_some_and(|earlier| earlier != response.body.get()) {
            return Err(format!("request {number} is a second answer with revision {revision} of {id}"));
        }
    }
    let asked: BTreeSet<u8> = requests.iter().map(|request| request.collection.spec.tag).collect();
    for record in rows {
        let Some(Row::Record { resource, id, .. }) = Row::decode(&record.key) else { continue };
        if !asked.contains(&resource) {
            continue;
        }
        let known = answers.remove(&id).unwrap_or_default();
        if !known.keys().copied().eq(1..=record.revision) {
            let (revision, known) = (record.revision, known.keys());
            return Err(format!("{id} has revision {revision}, and idempotency records of {known:?}"));
        }
        if known.get(&record.revision).map(|body| body.as_bytes()) != Some(&record.value) {
            return Err(format!("{id} differs from the answer to its last change"));
        }
    }
    match answers.first_key_value() {
        None => Ok(()),
        Some((id, _)) => Err(format!("an idempotency record has no effect: {id} is not there")),
    }
}

/// Each change has its events, and no event has no change.
fn events(rows: &[Record], requests: &[Arc<Request>], stored: &StoredResponses) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Event<'a> {
        r#type: String,
        #[serde(borrow)]
        data: &'a RawValue,
    }
    let mut missing: BTreeMap<(OrganizationId, String, &str), i64> = BTreeMap::new();
    let mut changes = BTreeSet::new();
    for (number, response) in stored {
        let Some(revision) = response.revision else { continue };
        let (request, body) = (&requests[*number], response.body.get());
        let Object { id, object } = object(body)?;
        let owner = request.organization.id;
        let mut expect = |kind: String| *missing.entry((owner, kind, body)).or_default() += 1;
        // A change that changes nothing is answered with the revision that there is, and has no event.
        if object != "organization" && changes.insert((id, revision)) {
            expect(match (&*object, revision) {
                ("lead", _) => "lead.received".into(),
                (_, 1) => format!("{object}.created"),
                _ => format!("{object}.updated"),
            });
        }
        match request.sent_status().as_deref() {
            Some("COMPLETED") => expect("rental.completed".into()),
            Some("CANCELLED") => expect("rental.cancelled".into()),
            _ => {}
        }
    }
    for record in rows {
        let Some(Row::Record { organization, resource, .. }) = Row::decode(&record.key) else { continue };
        if resource == event::SPEC.tag {
            let Event { r#type, data } = parse(record)?;
            *missing.entry((organization, r#type, data.get())).or_default() -= 1;
        }
    }
    match missing.iter().find(|(_, count)| **count != 0) {
        None => Ok(()),
        Some(((_, kind, data), 1..)) => Err(format!("a change has no event {kind}: {data}")),
        Some(((_, kind, data), _)) => Err(format!("an event {kind} has no change, or came twice: {data}")),
    }
}

/// Each event of an organization with endpoints waits in the outbox, or has one delivery for each endpoint.
fn outbox(rows: &[Record]) -> Result<(), String> {
    let (mut waiting, mut due, mut subscribed) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut endpoints: BTreeMap<OrganizationId, BTreeSet<EndpointId>> = BTreeMap::new();
    let mut deliveries: BTreeMap<EventId, Vec<EndpointId>> = BTreeMap::new();
    let mut pending = BTreeSet::new();
    for record in rows {
        match Row::decode(&record.key) {
            Some(Row::Outbox { event, .. }) => drop(waiting.insert(event)),
            Some(Row::Subscribed { organization }) => drop(subscribed.insert(organization)),
            Some(Row::Due { delivery, .. }) if !due.insert(delivery) => {
                return Err(format!("delivery {delivery} is due twice"));
            }
            Some(Row::Record { resource, .. }) if resource == webhook_endpoint::SPEC.tag => {
                let endpoint: webhook_endpoint::WebhookEndpoint = parse(record)?;
                endpoints.entry(endpoint.organization_id).or_default().insert(endpoint.id);
            }
            Some(Row::Record { resource, .. }) if resource == rental_core::resources::delivery::SPEC.tag => {
                let delivery: Delivery = parse(record)?;
                pending.insert(delivery.id);
                deliveries.entry(delivery.event_id).or_default().push(delivery.endpoint_id);
            }
            _ => {}
        }
    }
    if pending != due {
        return Err("a delivery is not due, or a due row has no delivery".into());
    }
    for record in rows {
        let Some(Row::Record { organization, resource, id }) = Row::decode(&record.key) else { continue };
        if resource != event::SPEC.tag {
            continue;
        }
        let event = EventId::from_uuid(id);
        let mut made = deliveries.remove(&event).unwrap_or_default();
        made.sort_unstable();
        let whole = match (subscribed.contains(&organization), waiting.remove(&event)) {
            (false, waits) => !waits && made.is_empty(),
            (true, true) => made.is_empty(),
            (true, false) => endpoints.get(&organization).is_some_and(|all| made.iter().eq(all)),
        };
        if !whole {
            return Err(format!("event {event} has deliveries to {made:?}, or waits, or neither"));
        }
    }
    if waiting.is_empty() && deliveries.is_empty() { Ok(()) } else { Err("a delivery has no event".into()) }
}

/// No two rentals hold a vehicle on one night. Reads the rentals, and not the rows of the holds.
fn no_night_twice(rows: &[Record]) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Rental {
        id: Uuid,
        object: String,
        vehicle_id: Option<Uuid>,
        status: Option<String>,
        start_date: Option<String>,
        end_date: Option<String>,
    }
    let mut held: BTreeMap<Uuid, Vec<(String, String, Uuid)>> = BTreeMap::new();
    for record in rows {
        let Some(Row::Record { resource, .. }) = Row::decode(&record.key) else { continue };
        if resource != rental_core::resources::rental::SPEC.tag {
            continue;
        }
        let rental: Rental = parse(record)?;
        assert_eq!(rental.object, "rental");
        let holds = matches!(rental.status.as_deref(), Some("APPROVED" | "ACTIVE"));
        if let (true, Some(vehicle), Some(start), Some(end)) =
            (holds, rental.vehicle_id, rental.start_date, rental.end_date)
        {
            // A rental that ends on the day on which it begins holds that day: its end follows the day's text.
            let end = if end == start { format!("{end}+") } else { end };
            held.entry(vehicle).or_default().push((start, end, rental.id));
        }
    }
    for (vehicle, mut nights) in held {
        nights.sort();
        if let Some(pair) = nights.windows(2).find(|pair| pair[1].0 < pair[0].1) {
            return Err(format!("rentals overlap: two hold vehicle {vehicle} on one night: {pair:?}"));
        }
    }
    Ok(())
}
