//! Long tasks: each step is one batch, and nothing but the row of the task is kept from one step to the next.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests do")]

#[path = "shared/between.rs"]
mod between;
#[path = "tasks/organization_deletion.rs"]
mod organization_deletion;
#[path = "tasks/sealing_anew.rs"]
mod sealing_anew;

use between::Between;
use rental_core::{
    erasing::CustomerErasure,
    error::Error,
    operations::edge::Edge,
    resources::{
        Resource,
        delivery::{self, Delivery, DeliveryStatus},
        organization::SYSTEM,
        parse,
        webhook_endpoint::WebhookEndpoint,
    },
    rows::{
        key,
        outbox::{self, OutboxEvent},
    },
    store::{Batch, Commit, Prior, Record, Revision, Span, Store, Write, memory::Memory},
    tasks::{KINDS, Step, Task, Work, begin_left_over_deletions, step},
    value::{CustomerId, DeliveryId, EndpointId, EventId, OrganizationId, TaskId, Timestamp},
    webhooks::{
        deletion, fan_out,
        secret::{MasterKey, MasterKeys},
    },
};
use serde_json::json;
use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
};
use uuid::Uuid;

/// Ids that rise, at a time that stands still.
#[derive(Default)]
struct Fixed(AtomicU64);

impl Edge for Fixed {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_000)
    }

    fn new_id(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::Relaxed)) + 100)
    }
}

const ORGANIZATION: OrganizationId = OrganizationId::from_u128(1);
const ENDPOINT: EndpointId = EndpointId::from_u128(2);
const OTHER: EndpointId = EndpointId::from_u128(3);

fn later() -> Timestamp {
    Timestamp::from_millis(9_000)
}

async fn commit(store: &Memory, batch: Batch) -> Commit {
    store.commit(batch).await.unwrap()
}

/// A store with the records of these endpoints and so many deliveries for each of them.
async fn store(endpoints: &[EndpointId], deliveries: usize) -> Memory {
    let (store, edge) = (Memory::default(), Fixed::default());
    for endpoint in endpoints {
        let mut batch = Batch::default();
        batch.insert(WebhookEndpoint::key(SYSTEM, *endpoint), "{}".into());
        assert_eq!(commit(&store, batch).await, Commit::Applied);
        for _ in 0..deliveries {
            let mut batch = Batch::default();
            fan_out::add(
                &mut batch,
                ORGANIZATION,
                *endpoint,
                (EventId::from_uuid(edge.new_id()), "vehicle.created"),
                &edge,
            )
            .unwrap();
            assert_eq!(commit(&store, batch).await, Commit::Applied);
        }
    }
    store
}

/// Deletes an endpoint and begins the task.
async fn delete(store: &Memory, endpoint: EndpointId) {
    let mut batch = Batch::default();
    batch.delete(WebhookEndpoint::key(SYSTEM, endpoint));
    Task::endpoint_deletion(endpoint, later()).begin(&mut batch).unwrap();
    assert_eq!(commit(store, batch).await, Commit::Applied);
}

async fn rows(store: &Memory, span: &Span) -> Vec<Record> {
    store.scan(span, usize::MAX).await.unwrap().into_iter().map(|row| row.unwrap()).collect()
}

async fn task(store: &Memory) -> Option<Record> {
    rows(store, &key::tasks()).await.pop()
}

/// The statuses of all deliveries to an endpoint, counted.
async fn statuses(store: &Memory, endpoint: EndpointId) -> HashMap<&'static str, usize> {
    let mut counts = HashMap::new();
    for row in rows(store, &Span::under(key::records(ORGANIZATION, &delivery::SPEC))).await {
        let delivery: Delivery = parse(&row.key, &row.value).unwrap();
        if delivery.endpoint_id == endpoint {
            *counts.entry(delivery.status.as_str()).or_default() += 1;
        }
    }
    counts
}

/// The master keys of a server that has one.
fn keys() -> MasterKeys {
    MasterKeys::new(vec![MasterKey::new(&[7; 32])]).unwrap()
}

async fn next_step(store: &dyn Store, record: &Record) -> Step {
    next_step_with(&keys(), store, record).await
}

async fn next_step_with(keys: &MasterKeys, store: &dyn Store, record: &Record) -> Step {
    let mut damaged = Vec::new();
    let step = step(store, record, (keys, later()), &mut damaged).await.unwrap();
    assert_eq!(damaged, []);
    step
}

#[tokio::test]
async fn a_deletion_goes_on_from_its_row_and_leaves_nothing_behind() {
    let all = 2 * deletion::BATCH + 10;
    let store = store(&[ENDPOINT, OTHER], all).await;
    delete(&store, ENDPOINT).await;
    let mut steps = Vec::new();
    // Nothing but the row is kept from one step to the next, as after a kill.
    while let Some(record) = task(&store).await {
        let left = rows(&store, &key::all_due_rows(ENDPOINT)).await.len();
        assert_eq!(left, all - steps.len() * deletion::BATCH);
        let Work::WebhookEndpointDeletion(state) = Task::read(&record).unwrap().work else { panic!("{record:?}") };
        assert_eq!(state.deliveries, (all - left) as u64);
        steps.push(next_step(&store, &record).await);
    }
    assert_eq!(steps, [Step::Continue, Step::Continue, Step::Done]);
    assert_eq!(rows(&store, &key::all_due_rows(ENDPOINT)).await, []);
    assert_eq!(statuses(&store, ENDPOINT).await, [("failed", all)].into());
    assert_eq!(statuses(&store, OTHER).await, [("pending", all)].into(), "another endpoint's stay");
    assert_eq!(rows(&store, &key::all_due_rows(OTHER)).await.len(), all);
}

#[tokio::test]
async fn of_two_servers_at_one_step_one_does_it_and_the_other_changes_nothing() {
    let store = store(&[ENDPOINT], 2 * deletion::BATCH).await;
    delete(&store, ENDPOINT).await;
    let seen = task(&store).await.unwrap();
    assert_eq!(next_step(&store, &seen).await, Step::Continue);
    let left = rows(&store, &Span::everything()).await;
    assert_eq!(next_step(&store, &seen).await, Step::Overtaken);
    assert_eq!(rows(&store, &Span::everything()).await, left);
    while let Some(record) = task(&store).await {
        next_step(&store, &record).await;
    }
    assert_eq!(next_step(&store, &seen).await, Step::Overtaken, "the task is finished");
    assert_eq!(statuses(&store, ENDPOINT).await, [("failed", 2 * deletion::BATCH)].into());
}

#[tokio::test]
async fn a_delivery_that_arrives_during_the_step_stays_delivered() {
    let store = store(&[ENDPOINT], 2).await;
    delete(&store, ENDPOINT).await;
    let row = rows(&store, &Span::under(key::records(ORGANIZATION, &delivery::SPEC))).await.pop().unwrap();
    let mut delivered: Delivery = parse(&row.key, &row.value).unwrap();
    delivered.status = DeliveryStatus::Delivered;
    let mut outcome = Batch::default();
    outcome.replace(row.key, row.revision, serde_json::to_vec(&delivered).unwrap().into());
    let contended = Between(&store, std::sync::Mutex::new(Some(outcome)));
    let seen = task(&store).await.unwrap();
    assert_eq!(next_step(&contended, &seen).await, Step::Continue, "stale, and to be repeated");
    assert_eq!(next_step(&contended, &task(&store).await.unwrap()).await, Step::Done);
    let expected = [("delivered", 1), ("failed", 1)].into();
    assert_eq!(statuses(&store, ENDPOINT).await, expected);
}

fn endpoint_object(id: EndpointId) -> WebhookEndpoint {
    serde_json::from_value(json!({
        "id": id, "object": "webhook_endpoint", "organization_id": ORGANIZATION, "url": "https://example.com/",
        "events": null, "status": "enabled", "disabled_reason": null, "disabled_at": null, "failures_in_a_row": 0,
        "api_version": "2026-05-05", "created_at": later(), "updated_at": later(),
    }))
    .unwrap()
}

#[tokio::test]
async fn nothing_new_appears_for_an_endpoint_that_was_deleted_after_it_was_read() {
    let (store, edge) = (store(&[ENDPOINT], 1).await, Fixed(AtomicU64::new(1_000)));
    let waiting = OutboxEvent {
        event: EventId::from_uuid(edge.new_id()),
        organization: ORGANIZATION,
        kind: "vehicle.created".into(),
    };
    let mut batch = Batch::default();
    batch.put(key::outbox(ORGANIZATION, waiting.event), outbox::value(ORGANIZATION, &waiting.kind), Prior::New);
    assert_eq!(commit(&store, batch).await, Commit::Applied);
    let (fanned_out, _) =
        fan_out::plan(&[waiting], &[(ORGANIZATION, vec![endpoint_object(ENDPOINT)])].into(), &edge).unwrap();
    let mut resent = Batch::default();
    fan_out::add(&mut resent, ORGANIZATION, ENDPOINT, (EventId::from_uuid(edge.new_id()), "vehicle.created"), &edge)
        .unwrap();
    delete(&store, ENDPOINT).await;
    for batch in [fanned_out, resent] {
        assert_eq!(commit(&store, batch).await, Commit::Stale(WebhookEndpoint::key(SYSTEM, ENDPOINT)));
    }
}

#[tokio::test]
async fn due_rows_without_an_endpoint_get_a_task_once() {
    let store = store(&[ENDPOINT, OTHER], 3).await;
    assert_eq!(begin_left_over_deletions(&store, later()).await.unwrap(), 0);
    let mut batch = Batch::default();
    batch.delete(WebhookEndpoint::key(SYSTEM, ENDPOINT));
    commit(&store, batch).await;
    assert_eq!(begin_left_over_deletions(&store, later()).await.unwrap(), 1);
    assert_eq!(begin_left_over_deletions(&store, later()).await.unwrap(), 0);
    assert_eq!(next_step(&store, &task(&store).await.unwrap()).await, Step::Done);
    assert_eq!(statuses(&store, ENDPOINT).await, [("failed", 3)].into());
    assert_eq!(statuses(&store, OTHER).await, [("pending", 3)].into());
}

#[tokio::test]
async fn a_corrupted_due_row_is_removed_and_told() {
    let store = store(&[ENDPOINT], 1).await;
    delete(&store, ENDPOINT).await;
    let short = key::due(ENDPOINT, 0, 5, DeliveryId::from_u128(77));
    let mut batch = Batch::default();
    batch.put(short.clone(), "short".into(), Prior::New);
    commit(&store, batch).await;
    let mut damaged = Vec::new();
    let outcome = step(&store, &task(&store).await.unwrap(), (&keys(), later()), &mut damaged).await.unwrap();
    assert_eq!((outcome, damaged.len()), (Step::Done, 1));
    assert_eq!(damaged[0].key, short);
    assert_eq!(rows(&store, &key::all_due_rows(ENDPOINT)).await, []);
}

#[test]
fn a_task_is_stored_as_json_with_its_kind_and_state() {
    let task = Task::endpoint_deletion(ENDPOINT, later());
    let mut batch = Batch::default();
    task.begin(&mut batch).unwrap();
    let [Write::Put(key, 1, value, _)] = &batch.writes[..] else { panic!("{batch:?}") };
    let stored: serde_json::Value = serde_json::from_slice(value).unwrap();
    let expected = json!({
        "id": ENDPOINT, "kind": "webhook_endpoint_deletion", "state": {"endpoint_id": ENDPOINT, "deliveries": 0},
        "created_at": later(),
    });
    assert_eq!(stored, expected);
    let other = serde_json::to_value(Task::sealing_anew(later())).unwrap();
    let state = json!({"organization_id": ORGANIZATION, "endpoint_ids": [], "began_at": later(), "request_id": "", "report_id": OTHER, "rows": 0, "tag": 0, "after": null});
    let third = Task::organization_deletion(serde_json::from_value(state).unwrap(), later());
    let third = serde_json::to_value(third).unwrap();
    let state = CustomerErasure::new(ORGANIZATION, CustomerId::from_u128(9), Vec::new());
    let work = Work::CustomerErasure(state);
    let fourth = serde_json::to_value(Task { id: TaskId::from_u128(9), work, created_at: later() }).unwrap();
    let state = json!({"kind": "organization_hold", "state": {"organization_id": ORGANIZATION}, "id": ORGANIZATION, "created_at": later()});
    let fifth = serde_json::to_value(serde_json::from_value::<Task>(state).unwrap()).unwrap();
    let kinds = [&stored, &other, &third, &fourth, &fifth].map(|task| task["kind"].as_str().unwrap());
    assert_eq!(KINDS, kinds, "every kind is listed");
    let revision: Revision = 1;
    let record = Record { key: key.clone(), revision, value: value.clone() };
    assert_eq!(Task::read(&record), Ok(task));
}

#[test]
fn a_task_of_an_unknown_kind_or_another_id_is_refused() {
    let unknown = json!({"id": ENDPOINT, "kind": "unknown", "state": {}, "created_at": later()});
    let another = serde_json::to_value(Task::endpoint_deletion(OTHER, later())).unwrap();
    for value in [unknown, another] {
        let record =
            Record { key: key::task(deletion::task_id(ENDPOINT)), revision: 1, value: value.to_string().into() };
        assert!(matches!(Task::read(&record), Err(Error::Damaged(_))), "{value}");
    }
}
