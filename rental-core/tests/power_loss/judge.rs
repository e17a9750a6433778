//! Whether the rows of a store can be those after some of the requests: nothing acknowledged is lost, and nothing is half
//! there. It knows the requests and their responses, and not how the store works.

use crate::{
    accounts::{accounts, assignments, keys, no_night_twice, personal_data},
    requests::{Act, Request},
};
use rental_core::{
    check::Audit,
    erasing::Erasure,
    resources::{
        delivery::{Delivery, DeliveryStatus},
        event,
        invoice::Settlement,
        webhook_endpoint,
    },
    rows::{Row, key},
    store::{Key, Record},
    value::{EndpointId, EventId, OrganizationId},
    webhooks::deletion,
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
    let promised: Vec<&Response> = promised.collect();
    let (stored, erased) = (stored_responses(rows)?, Erased::of(rows)?);
    acknowledged(&stored, requests, &promised, &erased)?;
    no_night_twice(rows)?;
    effects(rows, requests, &stored, &erased)?;
    events(rows, requests, &stored, &erased)?;
    outbox(rows)?;
    accounts(rows)?;
    assignments(rows)?;
    keys(rows, requests, &promised)?;
    personal_data(rows, &promised, &erased)?;
    consistent(rows)
}

/// The customers who were erased, as text. Copies of what is about them change.
pub(crate) struct Erased(pub(crate) BTreeSet<String>);

impl Erased {
    fn of(rows: &[Record]) -> Result<Self, String> {
        let rows = rows.iter().filter(|row| matches!(Row::decode(&row.key), Some(Row::Erased { .. })));
        let customer = |row| Erasure::read(row).map(|erasure| erasure.customer_id.to_string());
        rows.map(customer).collect::<Result<_, _>>().map(Self).map_err(|error| format!("{error:?}"))
    }

    fn is_in(&self, body: &[u8]) -> bool {
        !self.0.is_empty() && std::str::from_utf8(body).is_ok_and(|body| self.0.iter().any(|id| body.contains(id)))
    }
}

pub(crate) fn parse<'a, T: Deserialize<'a>>(record: &'a Record) -> Result<T, String> {
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

fn acknowledged(
    stored: &StoredResponses,
    requests: &[Arc<Request>],
    promised: &[&Response],
    erased: &Erased,
) -> Result<(), String> {
    for response in promised {
        let Some(found) = stored.get(&response.request) else {
            if matches!(requests[response.request].act, Act::CreateDaysAgo) {
                continue; // It had expired, and the sweep may have removed it.
            }
            return Err(format!("request {} was acknowledged, and lost", response.request));
        };
        let same = (found.status, found.body.get()) == (response.status, &*response.body);
        if !same && !erased.is_in(response.body.as_bytes()) {
            return Err(format!(
                "request {} was answered, and now otherwise: {response:?}, {}",
                response.request, found.body
            ));
        }
    }
    Ok(())
}

/// The resources that other changes change as well: invoices and credit notes, and the server when it attaches.
const CHANGED_BY_OTHERS: &[&str] = &["toll", "violation", "invoice"];

/// An idempotency record exists exactly when its effect exists: each revision of each object has one.
fn effects(
    rows: &[Record],
    requests: &[Arc<Request>],
    stored: &StoredResponses,
    erased: &Erased,
) -> Result<(), String> {
    // Without a body: that of an erasure is a report.
    let mut answers: BTreeMap<Uuid, BTreeMap<u64, Option<&str>>> = BTreeMap::new();
    for (number, response) in stored {
        let (Some(revision), body) = (response.revision, response.body.get()) else { continue };
        let (id, body) = match &requests[*number].act {
            Act::Erase(id) => (id.parse().map_err(|error| format!("{id}: {error}"))?, None),
            _ => (object(body)?.id, Some(body)),
        };
        let earlier = answers.entry(id).or_default().insert(revision, body);
        let differs = earlier.flatten().zip(body).is_some_and(|(earlier, body)| earlier != body);
        if differs && !erased.is_in(response.body.get().as_bytes()) {
            return Err(format!("request {number} is a second answer with revision {revision} of {id}"));
        }
    }
    let asked: BTreeMap<u8, bool> = requests
        .iter()
        .map(|request| request.collection.spec)
        .map(|spec| (spec.tag, CHANGED_BY_OTHERS.contains(&spec.object)))
        .collect();
    for record in rows {
        let Some(Row::Record { resource, id, .. }) = Row::decode(&record.key) else { continue };
        let Some(by_others) = asked.get(&resource) else { continue };
        let (known, is_erased) = (answers.remove(&id).unwrap_or_default(), erased.is_in(&record.value));
        let revisions = known.keys().copied();
        let whole = match *by_others || is_erased {
            false => revisions.eq(1..=record.revision),
            true => known.contains_key(&1) && known.keys().all(|revision| (1..=record.revision).contains(revision)),
        };
        if !whole {
            let (revision, known) = (record.revision, known.keys());
            return Err(format!("{id} has revision {revision}, and idempotency records of {known:?}"));
        }
        let last = known.get(&record.revision).copied().flatten();
        if !is_erased && last.is_some_and(|body| body.as_bytes() != record.value) {
            return Err(format!("{id} differs from the answer to its last change"));
        }
    }
    match answers.first_key_value() {
        None => Ok(()),
        Some((id, _)) => Err(format!("an idempotency record has no effect: {id} is not there")),
    }
}

#[derive(Deserialize)]
struct Event<'a> {
    r#type: String,
    #[serde(borrow)]
    data: &'a RawValue,
}

/// Each change has its events, and no event has no change.
fn events(rows: &[Record], requests: &[Arc<Request>], stored: &StoredResponses, erased: &Erased) -> Result<(), String> {
    let mut missing: BTreeMap<(OrganizationId, String, &str), i64> = BTreeMap::new();
    let mut changes = BTreeSet::new();
    for (number, response) in stored {
        let Some(revision) = response.revision else { continue };
        let (request, body) = (&requests[*number], response.body.get());
        if erased.is_in(body.as_bytes()) {
            continue;
        }
        let Object { id, object } = object(body)?;
        let owner = request.organization.id;
        let mut expect = |kind: String| *missing.entry((owner, kind, body)).or_default() += 1;
        // A change that changes nothing is answered with the revision that there is, and has no event.
        if changes.insert((id, revision)) {
            match (&*object, &request.act) {
                ("lead", _) => expect("lead.received".into()),
                ("invoice", Act::Settle(_, how)) => expect(if matches!(how, Settlement::Void) {
                    "invoice.voided".into()
                } else {
                    "invoice.paid".into()
                }),
                ("credit_note", Act::Refund(_)) => expect("credit_note.refunded".into()),
                ("vehicle" | "customer" | "rental" | "invoice" | "credit_note", _) if revision == 1 => {
                    expect(format!("{object}.created"));
                }
                ("vehicle" | "customer" | "rental", _) => expect(format!("{object}.updated")),
                _ => {}
            }
        }
        match request.sent_status().as_deref() {
            Some("COMPLETED") => expect("rental.completed".into()),
            Some("CANCELLED") => expect("rental.cancelled".into()),
            _ => {}
        }
    }
    for record in rows {
        let Some(Row::Record { organization, resource, .. }) = Row::decode(&record.key) else { continue };
        if resource == event::SPEC.tag && !erased.is_in(&record.value) {
            let Event { r#type, data } = parse(record)?;
            // The server attaches and detaches, too: see `attached`.
            if !is_of_payer(&r#type) {
                *missing.entry((organization, r#type, data.get())).or_default() -= 1;
            }
        }
    }
    match missing.iter().find(|(_, count)| **count != 0) {
        None => attached(rows, erased),
        Some(((_, kind, data), 1..)) => Err(format!("a change has no event {kind}: {data}")),
        Some(((_, kind, data), _)) => Err(format!("an event {kind} has no change, or came twice: {data}")),
    }
}

/// Whether an event says that a toll or violation got another customer, or lost it.
fn is_of_payer(event: &str) -> bool {
    event.ends_with(".attached") || event.ends_with(".detached")
}

/// The last event of the customer of a toll or violation says which one it has, and no change has two.
fn attached(rows: &[Record], erased: &Erased) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Charge {
        id: Uuid,
        customer_id: Option<Uuid>,
    }
    let (mut told, mut last) = (BTreeSet::new(), BTreeMap::new());
    for record in rows {
        let Some(Row::Record { resource, .. }) = Row::decode(&record.key) else { continue };
        if resource != event::SPEC.tag || erased.is_in(&record.value) {
            continue;
        }
        let Event { r#type, data } = parse(record)?;
        if is_of_payer(&r#type) {
            let charge: Charge = serde_json::from_str(data.get()).map_err(|error| error.to_string())?;
            last.insert(charge.id, charge.customer_id);
            if !told.insert(data.get()) {
                return Err(format!("an event {type} came twice: {data}", r#type = r#type));
            }
        }
    }
    let tags = [rental_core::resources::toll::SPEC.tag, rental_core::resources::violation::SPEC.tag];
    for record in rows {
        let Some(Row::Record { resource, .. }) = Row::decode(&record.key) else { continue };
        if !tags.contains(&resource) || erased.is_in(&record.value) {
            continue;
        }
        let charge: Charge = parse(record)?;
        if last.get(&charge.id).copied().unwrap_or_default() != charge.customer_id {
            return Err(format!("a change has no event: {} is attached to {:?}", charge.id, charge.customer_id));
        }
    }
    Ok(())
}

/// Each event of an organization with endpoints waits in the outbox, or has one delivery for each endpoint. A delivery to a
/// deleted endpoint is pending only as long as the task of the deletion is there.
fn outbox(rows: &[Record]) -> Result<(), String> {
    let (mut waiting, mut due, mut subscribed) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut endpoints: BTreeMap<OrganizationId, BTreeSet<EndpointId>> = BTreeMap::new();
    let mut deliveries: BTreeMap<EventId, Vec<EndpointId>> = BTreeMap::new();
    let (mut pending, mut waits) = (BTreeSet::new(), BTreeSet::new());
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
                if delivery.status == DeliveryStatus::Pending {
                    pending.insert(delivery.id);
                    waits.insert(delivery.endpoint_id);
                }
                deliveries.entry(delivery.event_id).or_default().push(delivery.endpoint_id);
            }
            _ => {}
        }
    }
    if pending != due {
        return Err("a delivery is not due, or a due row has no delivery".into());
    }
    let existing: BTreeSet<EndpointId> = endpoints.values().flatten().copied().collect();
    for endpoint in waits.difference(&existing) {
        let task = key::task(deletion::task_id(*endpoint));
        if rows.binary_search_by(|row| row.key.cmp(&task)).is_err() {
            return Err(format!("endpoint {endpoint} is deleted, and its deliveries wait"));
        }
    }
    for record in rows {
        let Some(Row::Record { organization, resource, id }) = Row::decode(&record.key) else { continue };
        if resource != event::SPEC.tag {
            continue;
        }
        let event = EventId::from_uuid(id);
        let mut made = deliveries.remove(&event).unwrap_or_default();
        made.sort_unstable();
        made.retain(|endpoint| existing.contains(endpoint));
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
