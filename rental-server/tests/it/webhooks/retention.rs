//! What is removed after 30 days, and what is not because somebody still waits for it.

use super::{PRIVATE, act, hook, wait_for};
use crate::{
    events_in_store::stop,
    support::{
        Connection, Server, flip,
        receiver::{Receiver, unix_seconds},
    },
};
use rental_core::{
    operations::Edge,
    resources::{
        Resource, audit_entry::AuditEntry, effects, event, lead, organization::SYSTEM, to_json,
        webhook_endpoint::WebhookEndpoint,
    },
    rows::key,
    store::{self, Batch, Commit, Prior, Span, Store, redb::Redb},
    value::{AuditEntryId, DeliveryId, EndpointId, EventId, OrganizationId, Timestamp},
    webhooks::fan_out,
};
use serde_json::{Value, json};
use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};
use uuid::Uuid;

/// Commits to the file of a server that is gone.
pub(super) fn commit(directory: &Path, batch: Batch) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
    let store = Redb::open(&directory.join("store.redb"), 16 << 20).expect("the server is gone");
    assert_eq!(runtime.block_on(store.commit(batch)), Ok(Commit::Applied));
    store.close().expect("the file is whole");
}

/// In 2020.
const LONG_AGO: i64 = 1_577_836_800_000;

/// Ids and times of a time in the past.
struct Past {
    millis: i64,
    ids: AtomicU64,
}

impl Past {
    fn at(millis: i64) -> Self {
        Self { millis, ids: AtomicU64::new(0) }
    }

    fn long_ago() -> Self {
        Self::at(LONG_AGO)
    }
}

impl Edge for Past {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.millis)
    }

    fn new_id(&self) -> Uuid {
        let count = u128::from(self.ids.fetch_add(1, Ordering::Relaxed));
        Uuid::from_u128((u128::from(self.now().millis()) << 80) | (0x7 << 76) | (0x2 << 62) | count)
    }
}

#[test]
fn an_old_event_stays_while_a_delivery_waits_and_is_sent_after_enable() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[PRIVATE]);
    let organization = server.organization();
    let receiver = Receiver::start();
    let hook = hook(&organization, &receiver);
    act(&server, &hook, "disable", &json!({})).ok();
    let owner = OrganizationId::parse(&organization.id).expect("an id");
    let endpoint = EndpointId::parse(&hook.id).expect("an id");
    drop(organization);
    stop(server);
    let edge = Past::long_ago();
    let [waiting, unwanted, lost] = [(); 3].map(|()| EventId::from_uuid(edge.new_id()));
    let place = |id| event::key(owner, id);
    let mut batch = Batch::default();
    for id in [waiting, unwanted] {
        batch.insert(place(id), br#"{"type":"lead.received"}"#.as_slice().into());
    }
    let made = [waiting, lost].map(|id| {
        fan_out::add(&mut batch, owner, endpoint, (id, "lead.received"), &edge).expect("it is made").id.to_string()
    });
    commit(directory.path(), batch);

    // Old events are removed at each start.
    let server = Server::start_on_file(directory.path(), &[PRIVATE]);
    let path = format!("/admin/v1/events/{unwanted}");
    wait_for(
        "the removal of the event that nobody waits for",
        || (server.admin("GET", &path, &Value::Null).status == 404).then_some(()),
        String::new,
    );
    act(&server, &hook, "enable", &json!({})).ok();
    assert_eq!(receiver.wait_for(1)[0].event(), waiting.to_string());
    let delivery = |id: &str| server.admin("GET", &format!("/admin/v1/deliveries/{id}"), &Value::Null).ok();
    for (id, status, error) in [(&made[0], "delivered", Value::Null), (&made[1], "failed", json!("event_removed"))] {
        wait_for(
            "the end of a delivery",
            || (delivery(id)["status"] == status).then_some(()),
            || delivery(id).to_string(),
        );
        assert_eq!(delivery(id)["last_error"], error);
    }
}

/// Overwrites a time of an endpoint, in the file of a server that is gone.
fn was_long_ago(directory: &Path, endpoint: EndpointId, field: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
    let store = Redb::open(&directory.join("store.redb"), 16 << 20).expect("the server is gone");
    let place = WebhookEndpoint::key(SYSTEM, endpoint);
    let record = runtime.block_on(store.get(&[place])).expect("the store answers").pop().flatten().expect("it exists");
    let mut object: Value = serde_json::from_slice(&record.value).expect("JSON");
    object[field] = json!("2020-01-01T00:00:00.000Z");
    let mut batch = Batch::default();
    batch.replace(record.key, record.revision, object.to_string().into());
    assert_eq!(runtime.block_on(store.commit(batch)), Ok(Commit::Applied));
    store.close().expect("the file is whole");
}

#[test]
fn an_old_delivery_fails_once_its_endpoint_has_been_disabled_for_30_days() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[PRIVATE]);
    let organization = server.organization();
    let receiver = Receiver::start();
    let hook = hook(&organization, &receiver);
    act(&server, &hook, "disable", &json!({})).ok();
    // This one is new: it waits on.
    super::one_event(&organization);
    let young = super::wait_for_deliveries(&organization, &hook, 1, "pending").remove(0);
    let owner = OrganizationId::parse(&organization.id).expect("an id");
    let endpoint = EndpointId::parse(&hook.id).expect("an id");
    drop(organization);
    stop(server);
    let edge = Past::long_ago();
    let event = EventId::from_uuid(edge.new_id());
    let mut batch = Batch::default();
    batch.insert(event::key(owner, event), br#"{"type":"lead.received"}"#.as_slice().into());
    let old = fan_out::add(&mut batch, owner, endpoint, (event, "lead.received"), &edge).expect("it is made").id;
    commit(directory.path(), batch);
    was_long_ago(directory.path(), endpoint, "disabled_at");

    let server = Server::start_on_file(directory.path(), &[PRIVATE]);
    let delivery = |id: &str| server.admin("GET", &format!("/admin/v1/deliveries/{id}"), &Value::Null).ok();
    let old = wait_for(
        "the delivery to fail",
        || Some(delivery(&old.to_string())).filter(|one| one["status"] == "failed"),
        || delivery(&old.to_string()).to_string(),
    );
    assert_eq!((&old["last_error"], &old["next_attempt_at"]), (&json!("retention_ended"), &Value::Null));
    // It is counted after the commit.
    let expired = || super::metric(&server, "rental_webhook_deliveries_expired_total");
    wait_for("its count", || (expired() == 1.0).then_some(()), || expired().to_string());
    let path = format!("/admin/v1/organizations/{owner}/deliveries?status=failed");
    assert_eq!(server.admin("GET", &path, &Value::Null).ok()["data"], json!([old]));
    wait_for(
        "the event to be removed",
        || (server.admin("GET", &format!("/admin/v1/events/{event}"), &Value::Null).status == 404).then_some(()),
        String::new,
    );
    let kept = || super::metric(&server, "rental_webhook_deliveries_kept");
    wait_for("its due row is gone, the other waits", || (kept() == 1.0).then_some(()), || kept().to_string());
    act(&server, &hook, "enable", &json!({})).ok();
    assert_eq!(json!(receiver.wait_for(1)[0].event()), young["event_id"]);
    super::quiet_while();
    assert_eq!(receiver.count(), 1);
}

/// A store whose server is stopped, with an endpoint of an organization, and its receiver.
fn stopped_with_endpoint(directory: &Path) -> (Receiver, OrganizationId, EndpointId) {
    let server = Server::start_on_file(directory, &[PRIVATE]);
    let organization = server.organization();
    let receiver = Receiver::start();
    let hook = hook(&organization, &receiver);
    let owner = OrganizationId::parse(&organization.id).expect("an id");
    let endpoint = EndpointId::parse(&hook.id).expect("an id");
    drop(organization);
    stop(server);
    (receiver, owner, endpoint)
}

#[test]
fn an_old_delivery_whose_event_is_damaged_fails_unless_its_endpoint_was_changed_since() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_receiver, owner, endpoint) = stopped_with_endpoint(directory.path());
    let (_other, other_owner, changed) = stopped_with_endpoint(directory.path());
    let edge = Past::long_ago();
    let mut batch = Batch::default();
    let (broken, sound) = (r#"{"type":"lead.received","data":"break-me-here"}"#, r#"{"type":"lead.received"}"#);
    // A server that was stopped for longer sends the sound one.
    let made = [(owner, endpoint, broken), (owner, endpoint, sound), (other_owner, changed, broken)];
    let made = made.map(|(owner, endpoint, value)| {
        let event = EventId::from_uuid(edge.new_id());
        batch.insert(event::key(owner, event), value.as_bytes().to_vec().into());
        fan_out::add(&mut batch, owner, endpoint, (event, "lead.received"), &edge).expect("it is made").id
    });
    commit(directory.path(), batch);
    // Its due row goes also when its time is not that of the record.
    let [before, other] = [LONG_AGO, LONG_AGO + 1].map(|millis| millis.unsigned_abs());
    let mut batch = Batch::default();
    batch.delete(key::due(endpoint, fan_out::FRESH, before, made[0]));
    batch.writes.push(fan_out::due((owner, endpoint, made[0]), fan_out::FRESH, other, Prior::New));
    commit(directory.path(), batch);
    was_long_ago(directory.path(), endpoint, "updated_at");
    flip(&directory.path().join("store.redb"), "break-me-here");
    let server = Server::start_on_file(directory.path(), &[PRIVATE]).expecting_errors("damaged");
    let delivery = |id: DeliveryId| server.admin("GET", &format!("/admin/v1/deliveries/{id}"), &Value::Null).ok();
    for (id, status) in [(made[0], "failed"), (made[1], "delivered")] {
        wait_for(status, || (delivery(id)["status"] == status).then_some(()), || delivery(id).to_string());
    }
    // The lanes look at the same time.
    super::quiet_while();
    assert_eq!(delivery(made[2])["status"], "pending");
    assert_eq!(super::metric(&server, "rental_webhook_deliveries_expired_total"), 1.0);
    stop(server);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
    let store = Redb::open(&directory.path().join("store.redb"), 16 << 20).expect("the server is gone");
    let place = key::due(endpoint, fan_out::FRESH, other, made[0]);
    assert_eq!(runtime.block_on(store.get(&[place])), Ok(vec![None]));
    store.close().expect("the file is whole");
}

#[test]
fn a_delivery_whose_event_is_damaged_fails_when_its_retention_ends_while_the_server_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_receiver, owner, endpoint) = stopped_with_endpoint(directory.path());
    // Due for an hour but 10 s: the attempt at the start finds the damage before the retention ends.
    let seconds = i64::try_from(unix_seconds()).expect("a time") - 3600 + 10;
    let edge = Past::at(seconds * 1000);
    let (mut batch, event) = (Batch::default(), EventId::from_uuid(edge.new_id()));
    let value = r#"{"type":"lead.received","data":"break-me-here"}"#;
    batch.insert(event::key(owner, event), value.as_bytes().into());
    let made = fan_out::add(&mut batch, owner, endpoint, (event, "lead.received"), &edge).expect("it is made").id;
    commit(directory.path(), batch);
    was_long_ago(directory.path(), endpoint, "updated_at");
    flip(&directory.path().join("store.redb"), "break-me-here");
    let server =
        Server::start_on_file(directory.path(), &[PRIVATE, "--delivery-retention", "1h"]).expecting_errors("damaged");
    let delivery = || server.admin("GET", &format!("/admin/v1/deliveries/{made}"), &Value::Null).ok();
    wait_for("its end", || (delivery()["status"] == "failed").then_some(()), || delivery().to_string());
    assert_eq!(delivery()["last_error"], "retention_ended");
    assert_eq!(super::metric(&server, "rental_webhook_deliveries_expired_total"), 1.0);
}

/// A lead and an audit entry of this time.
fn lead_and_entry(batch: &mut Batch, owner: OrganizationId, edge: &Past) -> [String; 2] {
    let (lead, entry, at) = (edge.new_id(), AuditEntryId::from_uuid(edge.new_id()), edge.now());
    let value = json!({
        "id": lead, "object": "lead", "source_channel": "api", "customer_id": null, "raw_data": null, "status": "NEW",
        "created_at": at, "updated_at": at,
    });
    batch.insert(key::record(owner, &lead::SPEC, lead), value.to_string().into());
    let value = json!({
        "id": entry, "object": "audit_entry", "action": "revokeApiKey", "actor": "root", "actor_id": null, "address": null,
        "organization_id": owner, "resource_id": null, "path": "/", "details": {}, "request_id": "", "created_at": at,
    });
    let object: AuditEntry = serde_json::from_value(value).expect("an entry");
    batch.insert(AuditEntry::key(SYSTEM, entry), to_json(&object).expect("JSON"));
    effects::index_keys(SYSTEM, &object).into_iter().for_each(|place| batch.mark(place, Prior::New));
    [lead.to_string(), entry.to_string()]
}

#[test]
fn old_leads_and_audit_entries_are_removed_when_a_retention_is_set_and_a_damaged_one_stops_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[]);
    let organization = server.organization();
    let young = organization.post("/v1/leads", &json!({})).id();
    let owner = OrganizationId::parse(&organization.id).expect("an id");
    drop(organization);
    stop(server);
    let edge = Past::long_ago();
    let mut batch = Batch::default();
    let damaged = edge.new_id();
    batch.insert(key::record(owner, &lead::SPEC, damaged), "nonsense".into());
    // More than one batch of a sweep.
    let old: Vec<_> = (0..450).map(|_| lead_and_entry(&mut batch, owner, &edge)).collect();
    commit(directory.path(), batch);

    let ids = |server: &Server, path: &str| -> Vec<String> {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = server.admin("GET", &format!("{path}limit=100{cursor}"), &Value::Null).ok();
            let data = page["data"].as_array().expect("a list");
            found.extend(data.iter().map(|one| one["id"].as_str().expect("an id").to_owned()));
            let Some(next) = page["next_cursor"].as_str() else { return found };
            cursor = format!("&starting_after={next}");
        }
    };
    let entries = format!("/admin/v1/audit_entries?organization={owner}&action=revokeApiKey&");
    let server = Server::start_on_file(directory.path(), &[]);
    // By default both stay for ever.
    assert_eq!(ids(&server, &entries).len(), old.len());
    stop(server);

    let server = Server::start_on_file(directory.path(), &["--lead-retention", "30d", "--audit-retention", "365d"])
        .expecting_errors("damaged");
    let removed = |object: &str| {
        let text = Connection::open(&server.address).send("GET", "/metrics", &[], b"").text();
        let line = format!("rental_retention_removed_total{{object=\"{object}\"}} {}", old.len());
        text.lines().any(|found| found == line)
    };
    wait_for("the removal of leads", || removed("lead").then_some(()), String::new);
    assert!(removed("audit_entry"), "audit entries are swept first");
    assert_eq!(ids(&server, &entries), Vec::<String>::new());
    let status = server.admin("GET", "/admin/v1/status", &Value::Null).ok();
    let kept = json!({"events_seconds": 2_592_000, "deliveries_seconds": 2_592_000, "leads_seconds": 2_592_000, "audit_entries_seconds": 31_536_000});
    assert_eq!(status["retention"], kept);
    stop(server);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
    let store = Redb::open(&directory.path().join("store.redb"), 16 << 20).expect("the server is gone");
    let left = runtime.block_on(store.scan(&Span::under(key::records(owner, &lead::SPEC)), 1000)).expect("it answers");
    let left: Vec<_> = left.iter().map(|row| store::key_of(row).id().expect("an id").to_string()).collect();
    assert_eq!(left, [damaged.to_string(), young]);
    store.close().expect("the file is whole");
}
