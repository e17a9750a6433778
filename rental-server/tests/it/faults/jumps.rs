//! A clock that cannot be trusted: nothing is written and nothing expires until it is right again, or confirmed.

use super::clocks::{HOUR, confirm, near, seconds, set, start, ticks};
use crate::support::{
    Connection, Organization, Reply, Server, database,
    receiver::{PATIENCE, Receiver},
};
use serde_json::{Value, json};
use std::{fs, path::Path, thread, time::Duration};

const DAY: i64 = 24 * HOUR;
const FAR: i64 = 400 * DAY;

fn refused(reply: &Reply) {
    reply.error(503, "api_error", "clock_jumped");
    assert!(reply.header("retry-after").is_some());
}

fn ready(server: &Server) -> Reply {
    Connection::open(&server.address).send("GET", "/readyz", &[], b"")
}

fn jump(server: &Server) -> Value {
    server.admin("GET", "/admin/v1/status", &Value::Null).ok()["clock_jump"].clone()
}

/// A server on a file in this directory, whose clock the file `clock` there sets.
fn start_on(directory: &Path, offset: i64) -> Option<Server> {
    let store = format!("redb:{}", directory.join("store.redb").display());
    let flags = ["--webhook-allow-private", "--webhook-retry-schedule", "1s,1s", "--store", &store];
    start(&directory.join("clock"), offset, &[], &flags)
}

/// The organization on a server that was started again.
fn on<'s>(server: &'s Server, known: &[String; 3]) -> Organization<'s> {
    let [id, read, write] = known.clone();
    Organization { server, id, read, write }
}

fn keys(organization: &Organization<'_>) -> [String; 3] {
    [&organization.id, &organization.read, &organization.write].map(String::clone)
}

#[test]
fn while_the_clock_has_jumped_reads_go_on_and_nothing_is_written_or_expires() {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = directory.path().join("clock");
    let Some(server) = start_on(directory.path(), 0) else { return };
    let (organization, receiver) = (server.organization(), Receiver::start());
    let expires = rental_core::value::Timestamp::from_millis((super::clocks::clock(0) + 30 * DAY) * 1000);
    let key = json!({"organization_id": organization.id, "scope": "read", "expires_at": expires.to_string()});
    let key = server.admin("POST", "/admin/v1/api_keys", &key).ok()["key"].as_str().expect("a key").to_owned();
    let hook = json!({"organization_id": organization.id, "url": receiver.url()});
    server.admin("POST", "/admin/v1/webhook_endpoints", &hook).ok();
    let once =
        || organization.call_with("POST", "/v1/vehicles", &[("Idempotency-Key", "one")], &json!({"name": "One"}));
    let first = once();
    let path = format!("/v1/vehicles/{}", first.id());
    receiver.wait_for(1);
    for offset in [FAR, HOUR, -HOUR, -FAR] {
        set(&clock, offset);
        refused(&organization.post("/v1/vehicles", &json!({"name": "Two"})));
        refused(&organization.patch(&path, &json!({"name": "Two"})));
        refused(&server.admin("POST", "/admin/v1/organizations", &json!({"name": "Two"})));
        refused(&ready(&server));
        let told = jump(&server);
        assert_eq!(told["against"], "boot_clock");
        assert!((told["seconds"].as_i64().expect("seconds") - offset).abs() < 5, "{told}");
        assert_eq!(organization.get(&path).ok()["name"], "One");
        let bearer = format!("Bearer {key}");
        let read = Connection::open(&server.address).send("GET", &path, &[("Authorization", &bearer)], b"");
        assert_eq!(read.status, 200, "no key expires: {}", read.text());
        let before = ticks(&server);
        thread::sleep(Duration::from_secs(1));
        assert!(ticks(&server) - before < 75, "a busy loop");
        set(&clock, 0);
        assert_eq!(ready(&server).status, 200);
        let again = once();
        assert_eq!((again.id(), again.header("idempotent-replayed")), (first.id(), Some("true")));
        near(
            seconds(&organization.post("/v1/customers", &json!({"full_name": "Ann"})).ok()["created_at"]),
            0,
            "created_at",
        );
    }
    assert_eq!(receiver.wait_for(5).len(), 5, "each event comes once");
    server.signal("TERM");
    server.wait_until_gone();
}

/// What was written under a clock that was wrong does not date what follows, also after a start.
#[test]
fn after_a_confirmation_dates_follow_the_clock_and_only_ids_go_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = directory.path().join("clock");
    let Some(server) = start_on(directory.path(), 0) else { return };
    let organization = server.organization();
    let customer =
        |organization: &Organization<'_>| organization.post("/v1/customers", &json!({"full_name": "Ann"})).ok();
    let before = customer(&organization);
    set(&clock, FAR);
    confirm(&server);
    let during = customer(&organization);
    near(seconds(&during["created_at"]), FAR, "created_at");
    set(&clock, 0);
    refused(&organization.post("/v1/customers", &json!({"full_name": "Ann"})));
    let wrong = server.admin("POST", "/admin/v1/clock/confirm", &json!({"seconds": 60}));
    wrong.error(409, "invalid_request_error", "state_conflict");
    confirm(&server);
    let known = keys(&organization);
    dates_are_right(&organization, &before, &during);
    server.signal("TERM");
    server.wait_until_gone();

    let Some(server) = start_on(directory.path(), 0) else { return };
    assert_eq!((ready(&server).status, jump(&server)), (200, Value::Null), "it was confirmed");
    dates_are_right(&on(&server, &known), &before, &during);
    let entries = server.admin("GET", "/admin/v1/audit_entries?action=confirmClock", &Value::Null).ok();
    assert_eq!(entries["data"].as_array().map(Vec::len), Some(2), "{entries}");
}

#[track_caller]
fn dates_are_right(organization: &Organization<'_>, before: &Value, during: &Value) {
    let server = organization.server;
    let made = organization.post("/v1/customers", &json!({"full_name": "Ann"})).ok();
    let text = |object: &Value, name: &str| object[name].as_str().expect("text").to_owned();
    assert!(text(&made, "id") > text(during, "id") && text(during, "id") > text(before, "id"), "ids rise");
    for field in ["created_at", "updated_at"] {
        near(seconds(&made[field]), 0, field);
    }
    let events = organization.get("/v1/events?limit=100").ok();
    let newest = events["data"].as_array().and_then(|all| all.last()).expect("an event").clone();
    assert_eq!(newest["data"]["id"], made["id"], "the newest event comes last");
    near(newest["created"].as_i64().expect("seconds"), 0, "created");
    let invoices = format!("/admin/v1/organizations/{}/invoices", organization.id);
    let invoice = json!({"customer_id": made["id"], "lines": [{"description": "One", "amount": 1}]});
    let invoice = server.admin("POST", &invoices, &invoice).ok();
    near(seconds(&invoice["created_at"]), 0, "the invoice");
    let paid = format!("/admin/v1/invoices/{}/pay", text(&invoice, "id"));
    near(
        seconds(&server.admin("POST", &paid, &json!({"paid_at": invoice["created_at"]})).ok()["paid_at"]),
        0,
        "paid_at",
    );
    let expires = rental_core::value::Timestamp::from_millis((super::clocks::clock(0) + 30 * DAY) * 1000).to_string();
    let key = json!({"organization_id": organization.id, "scope": "read", "expires_at": expires});
    server.admin("POST", "/admin/v1/api_keys", &key).ok();
    let entry = server.admin("GET", "/admin/v1/audit_entries?limit=1", &Value::Null).ok()["data"][0].clone();
    near(seconds(&entry["created_at"]), 0, "the audit entry");
}

#[test]
fn a_start_whose_newest_object_is_more_than_a_day_ahead_writes_nothing_until_the_clock_is_right() {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = directory.path().join("clock");
    let Some(server) = start_on(directory.path(), FAR) else { return };
    let known = keys(&server.organization());
    server.signal("TERM");
    server.wait_until_gone();
    for is_confirmed in [false, true] {
        let Some(server) = start_on(directory.path(), 0) else { return };
        let organization = on(&server, &known);
        refused(&organization.post("/v1/vehicles", &json!({"name": "One"})));
        refused(&ready(&server));
        assert_eq!(jump(&server)["against"], "newest_object");
        assert_eq!(organization.get("/v1/vehicles").status, 200);
        if is_confirmed {
            confirm(&server);
        } else {
            set(&clock, FAR);
        }
        organization.post("/v1/vehicles", &json!({"name": "One"})).ok();
        assert_eq!(ready(&server).status, 200);
        server.signal("TERM");
        server.wait_until_gone();
    }
    // Long after the newest object: that is only a warning.
    let Some(server) = start_on(directory.path(), FAR) else { return };
    assert_eq!(ready(&server).status, 200);
    assert!(server.log().contains("more than 30 days old"), "{}", server.log());
}

#[test]
fn a_server_whose_clock_differs_from_the_databases_writes_nothing_and_removes_nothing() {
    let Some(url) = database() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let good = Server::start_on(&url, &[]);
    let organization = good.organization();
    organization.vehicle(json!({}));
    let key = directory.path().join("store.master-key");
    fs::write(&key, "5".repeat(64)).expect("a file");
    let flags = ["--store", &url, "--master-key-file", key.to_str().expect("text")];
    let Some(bad) = start(&directory.path().join("clock"), FAR, &[], &flags) else { return };
    let theirs = organization.by_way_of(&bad);
    refused(&theirs.post("/v1/vehicles", &json!({"name": "One"})));
    refused(&ready(&bad));
    assert_eq!(jump(&bad)["against"], "database");
    // The sweeps of the start would have removed the event, which is older than its retention by that clock.
    thread::sleep(PATIENCE / 10);
    assert_eq!(theirs.get("/v1/events").ok()["data"].as_array().map(Vec::len), Some(1));
    near(seconds(&organization.post("/v1/vehicles", &json!({"name": "Two"})).ok()["created_at"]), 0, "the good server");
    set(&directory.path().join("clock"), 0);
    near(seconds(&theirs.post("/v1/vehicles", &json!({"name": "Three"})).ok()["created_at"]), 0, "the set clock");
}

#[test]
fn no_backup_is_made_or_removed_while_the_clock_has_jumped() {
    let (directory, backups) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let (clock, store) = (directory.path().join("clock"), directory.path().join("store.redb"));
    let store = format!("redb:{}", store.display());
    let flags = ["--backup-to", backups.path().to_str().expect("text"), "--backup-every", "1s", "--store", &store];
    let Some(server) = start(&clock, 0, &[], &flags) else { return };
    let files = || fs::read_dir(backups.path()).expect("a directory").count();
    let deadline = std::time::Instant::now() + PATIENCE;
    while files() < 3 {
        assert!(std::time::Instant::now() < deadline, "no backups: {}", server.log());
        thread::sleep(Duration::from_millis(20));
    }
    set(&clock, FAR);
    refused(&ready(&server));
    thread::sleep(Duration::from_secs(1));
    let before = files();
    thread::sleep(Duration::from_secs(3));
    assert_eq!(files(), before, "{}", server.log());
}
