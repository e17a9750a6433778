//! A deleted endpoint leaves nothing behind: no due row, no pending delivery, no secret, whatever is killed.

use super::{Hook, PRIVATE, act, hook, many_events, observed, one_event, wait_for, wait_for_deliveries};
use crate::{
    events_in_store::stop,
    support::{
        Organization, Server, database,
        receiver::{Act, Receiver, unix_seconds},
    },
};
use rental_core::{
    check::{self, Report},
    operations::Edge,
    rows::key,
    store::{
        Batch, Commit, Store,
        redb::{ClosedFile, Redb},
    },
    value::{EndpointId, EventId, OrganizationId, Timestamp},
    webhooks::fan_out,
};
use serde_json::{Value, json};
use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use uuid::Uuid;

/// An endpoint that waits for its operator: nothing is sent to it.
fn disabled_hook(organization: &Organization) -> Hook {
    let hook = hook(organization, &Receiver::start());
    act(organization.server, &hook, "disable", &json!({})).ok();
    hook
}

fn delete(server: &Server, hook: &Hook) {
    server.admin("DELETE", &format!("/admin/v1/webhook_endpoints/{}", hook.id), &Value::Null).ok();
}

/// Ids of today that rise: what is older than 30 days, retention removes.
struct Ids(AtomicU64, i64);

impl Edge for Ids {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.1)
    }

    fn new_id(&self) -> Uuid {
        let count = u128::from(self.0.fetch_add(1, Ordering::Relaxed));
        Uuid::from_u128((u128::from(self.now().millis()) << 80) | (0x7 << 76) | (0x2 << 62) | count)
    }
}

/// Runs on the file of a server that is gone.
fn on_file<T>(directory: &Path, act: impl AsyncFnOnce(&Redb) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
    let store = Redb::open(&directory.join("store.redb"), 16 << 20).expect("the server is gone");
    let done = runtime.block_on(act(&store));
    store.close().expect("the file is whole");
    done
}

/// Adds deliveries to an endpoint.
async fn add_deliveries(store: &Redb, organization: OrganizationId, endpoint: EndpointId, count: usize) {
    let ids = Ids(AtomicU64::new(0), unix_seconds().cast_signed() * 1000);
    for _ in 0..count / 500 {
        let mut batch = Batch::default();
        for _ in 0..500 {
            fan_out::add(&mut batch, organization, endpoint, (EventId::from_uuid(ids.new_id()), "lead.received"), &ids)
                .expect("it is made");
        }
        assert_eq!(store.commit(batch).await, Ok(Commit::Applied));
    }
}

/// What a check of the store finds, and how many due rows and tasks it has.
fn look(directory: &Path, endpoint: EndpointId) -> (Report, usize, usize) {
    let closed = ClosedFile::open(&directory.join("store.redb"), 16 << 20).expect("the server is gone");
    let report = check::of_file(&closed, &mut |_| {});
    drop(closed);
    let count = async |store: &Redb, span| store.scan(&span, usize::MAX).await.expect("the store answers").len();
    let (due, tasks) = on_file(directory, async |store| {
        (count(store, key::all_due_rows(endpoint)).await, count(store, key::tasks()).await)
    });
    (report, due, tasks)
}

#[test]
fn a_deletion_with_thousands_of_deliveries_goes_on_after_a_kill() {
    const DELIVERIES: usize = 10_000;
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[PRIVATE]);
    let organization = server.organization();
    let hook = disabled_hook(&organization);
    let owner = OrganizationId::parse(&organization.id).expect("an id");
    let endpoint = EndpointId::parse(&hook.id).expect("an id");
    drop(organization);
    stop(server);
    on_file(directory.path(), async |store| add_deliveries(store, owner, endpoint, DELIVERIES).await);

    let server = Server::start_on_file(directory.path(), &[PRIVATE]);
    delete(&server, &hook);
    server.signal("KILL");
    server.wait_until_gone();
    drop(server);
    let (report, due, tasks) = look(directory.path(), endpoint);
    assert!(due > 0, "the kill came too late to say anything");
    assert_eq!((report.problems, tasks), (0, 1), "{:?}", report.listed);

    let server = Server::start_on_file(directory.path(), &[PRIVATE]);
    let waiting = || super::metric(&server, "rental_webhook_deliveries_kept");
    wait_for("the end of the deletion", || (waiting() == 0.0).then_some(()), || waiting().to_string());
    stop(server);
    let (report, due, tasks) = look(directory.path(), endpoint);
    assert_eq!((report.problems, due, tasks), (0, 0, 0), "{:?}", report.listed);
    let secrets = on_file(directory.path(), async |store| store.get(&[key::secrets(endpoint)]).await);
    assert_eq!(secrets, Ok(vec![None]));
    let deliveries = on_file(directory.path(), async |store| {
        let span = rental_core::store::Span::under(key::records(owner, &rental_core::resources::delivery::SPEC));
        store.scan(&span, usize::MAX).await.expect("the store answers")
    });
    assert_eq!(deliveries.len(), DELIVERIES);
    for delivery in deliveries {
        let delivery: Value = serde_json::from_slice(&delivery.expect("it is sound").value).expect("JSON");
        assert_eq!((&delivery["status"], &delivery["last_error"]), (&json!("failed"), &json!("endpoint_deleted")));
    }
}

/// Programs that kept no tasks left such rows when they were killed.
#[test]
fn due_rows_of_a_deleted_endpoint_without_a_task_are_removed_after_the_next_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[PRIVATE]);
    let organization = server.organization();
    let [id, read, write] = [&organization.id, &organization.read, &organization.write].map(Clone::clone);
    drop(organization);
    stop(server);
    let (owner, endpoint) = (OrganizationId::parse(&id).expect("an id"), EndpointId::from_u128(77));
    on_file(directory.path(), async |store| {
        let ids = Ids(AtomicU64::new(0), unix_seconds().cast_signed() * 1000);
        let mut batch = Batch::default();
        let event = (EventId::from_uuid(ids.new_id()), "lead.received");
        fan_out::add(&mut batch, owner, endpoint, event, &ids).expect("it is made");
        // There is no such endpoint.
        batch.checks.clear();
        assert_eq!(store.commit(batch).await, Ok(Commit::Applied));
    });
    let (report, due, tasks) = look(directory.path(), endpoint);
    assert_eq!((report.problems, due, tasks), (1, 1, 0), "{:?}", report.listed);

    let server = Server::start_on_file(directory.path(), &[PRIVATE]);
    let organization = Organization { server: &server, id, read, write };
    let delivery = wait_for(
        "the end of the delivery",
        || observed(&organization, "deliveries", "").pop().filter(|one| one["status"] == "failed"),
        || format!("{:?}", observed(&organization, "deliveries", "")),
    );
    assert_eq!(delivery["last_error"], "endpoint_deleted");
    drop(organization);
    stop(server);
    let (report, due, tasks) = look(directory.path(), endpoint);
    assert_eq!((report.problems, due, tasks), (0, 0, 0), "{:?}", report.listed);
}

#[test]
fn an_attempt_in_flight_at_the_deletion_leaves_no_retry() {
    let server = Server::start(&[PRIVATE]);
    let organization = server.organization();
    let receiver = Receiver::that(Act::After(Duration::from_millis(400), Box::new(Act::Status(500))));
    let hook = hook(&organization, &receiver);
    one_event(&organization);
    receiver.wait_for(1);
    delete(&server, &hook);
    let delivery = wait_for(
        "the outcome of the attempt",
        || observed(&organization, "deliveries", "").pop().filter(|one| one["attempts"] == 1),
        String::new,
    );
    assert_eq!((&delivery["status"], &delivery["next_attempt_at"]), (&json!("failed"), &Value::Null), "{delivery}");
    assert_eq!(delivery["last_error"], "endpoint_deleted");
    assert_eq!(delivery["last_response_status"], 500, "the attempt was made, and is told");
}

#[test]
fn deliveries_of_a_deleted_endpoint_cannot_be_recovered() {
    let server = super::usual();
    let organization = server.organization();
    let hook = disabled_hook(&organization);
    one_event(&organization);
    delete(server, &hook);
    let since = json!({"since": "2026-01-01T00:00:00Z"});
    act(server, &hook, "recover", &since).error(404, "invalid_request_error", "resource_missing");
}

#[test]
fn another_server_finishes_a_deletion_whose_server_was_killed() {
    const EVENTS: usize = 700;
    let Some(url) = database() else { return };
    let [asked, other] = [(); 2].map(|()| Server::start_on(&url, &[PRIVATE]));
    let organization = other.organization();
    let hook = disabled_hook(&organization);
    many_events(&organization, EVENTS);
    wait_for_deliveries(&organization, &hook, EVENTS, "pending");
    delete(&asked, &hook);
    asked.signal("KILL");
    asked.wait_until_gone();
    let deliveries = wait_for_deliveries(&organization, &hook, EVENTS, "failed");
    assert!(deliveries.iter().all(|one| one["last_error"] == "endpoint_deleted"), "{:?}", deliveries[0]);
    let kept = || super::metric(&other, "rental_webhook_deliveries_kept");
    wait_for("the count without them", || (kept() == 0.0).then_some(()), || kept().to_string());
}
