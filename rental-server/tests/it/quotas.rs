//! Quotas of organizations: objects, bytes, requests per second; and the counts on which they rest.

mod servers;

use crate::{
    events_in_store::stop,
    support::{Connection, Organization, Reply, Server, receiver::PATIENCE},
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The organization, as operators see it.
fn seen(organization: &Organization<'_>) -> Value {
    organization.server.admin("GET", &format!("/admin/v1/organizations/{}", organization.id), &Value::Null).ok()
}

fn set(organization: &Organization<'_>, quotas: &Value) {
    organization.server.admin("PATCH", &format!("/admin/v1/organizations/{}", organization.id), quotas).ok();
}

/// Objects and bytes that the organization uses.
fn used(organization: &Organization<'_>) -> (u64, u64) {
    let usage = &seen(organization)["usage"];
    (usage["objects"].as_u64().expect("a number"), usage["bytes"].as_u64().expect("a number"))
}

/// Waits until something is there.
#[track_caller]
fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The counts, once they stay the same.
fn settled(organization: &Organization<'_>) -> (u64, u64) {
    until("the end of counting", || {
        let before = used(organization);
        std::thread::sleep(Duration::from_millis(2500));
        (used(organization) == before).then_some(before)
    })
}

fn make(organization: &Organization<'_>) -> Reply {
    organization.post("/v1/vehicles", &json!({"name": "One more"}))
}

/// A lead whose data takes about this many bytes.
fn lead(organization: &Organization<'_>, bytes: usize) -> Reply {
    organization.post("/v1/leads", &json!({"raw_data": {"text": "x".repeat(bytes)}}))
}

#[track_caller]
fn refused(reply: &Reply, quota: &str) {
    let body = reply.error(403, "permission_error", "quota_exceeded");
    let message = body["message"].as_str().expect("a message");
    assert!(message.contains(quota) && message.contains(&format!("`max_{quota}`")), "{message}");
    assert!(message.contains("Ask the operator"), "{message}");
}

#[test]
fn objects_above_the_quota_are_refused_and_everything_else_goes_on() {
    let server = Server::shared();
    let (full, other) = (server.organization_with(&json!({"name": "Full", "max_objects": 3})), server.organization());
    let vehicle = full.vehicle(json!({}));
    // The quota counts about a second behind.
    until("a refusal", || (make(&full).status == 403).then_some(()));
    refused(&make(&full), "objects");
    let (objects, _) = used(&full);
    assert!(objects >= 3, "{objects}");
    full.get(&format!("/v1/vehicles/{vehicle}")).ok();
    full.patch(&format!("/v1/vehicles/{vehicle}"), &json!({"color": "red"})).ok();
    make(&other).ok();
    // Operators set the quota, and are not held by it.
    full.recorded("tolls", &json!({"amount": 1, "agency": "MTA", "vehicle_id": vehicle}));
    set(&full, &json!({"max_objects": objects + 5}));
    make(&full).ok();
    set(&full, &json!({"max_objects": 0}));
    refused(&make(&full), "objects");
    set(&full, &json!({"max_objects": null}));
    make(&full).ok();
    let usage = &seen(&full)["usage"];
    assert_eq!(usage["max_objects"], json!(10_000_000), "the default of the server: {usage}");
}

#[test]
fn bytes_above_the_quota_are_refused_and_responses_are_still_replayed() {
    let server = Server::shared();
    let (full, other) =
        (server.organization_with(&json!({"name": "Full", "max_bytes": 100_000})), server.organization());
    let keyed = || full.call_with("POST", "/v1/vehicles", &[("Idempotency-Key", "one")], &json!({"name": "One"}));
    let first = keyed().ok();
    let vehicle = format!("/v1/vehicles/{}", first["id"].as_str().expect("an id"));
    until("a refusal", || (lead(&full, 20_000).status == 403).then_some(()));
    refused(&make(&full), "bytes");
    assert_eq!(keyed().ok(), first);
    full.get(&vehicle).ok();
    lead(&other, 20_000).ok();
    set(&full, &json!({"max_bytes": 100_000_000}));
    make(&full).ok();
    full.patch(&vehicle, &json!({"color": "red"})).ok();
    // What was written counts, with index entries, events and stored responses.
    let (_, bytes) = settled(&full);
    assert!((100_000..100_000_000).contains(&bytes), "{bytes}");
    // Changes go on up to a tenth above the quota.
    set(&full, &json!({"max_bytes": bytes}));
    refused(&make(&full), "bytes");
    full.patch(&vehicle, &json!({"color": "blue"})).ok();
    set(&full, &json!({"max_bytes": bytes / 2}));
    refused(&full.patch(&vehicle, &json!({"color": "green"})), "bytes");
}

#[test]
fn all_keys_of_an_organization_share_its_requests_per_second() {
    let server = Server::shared();
    let busy = server.organization_with(&json!({"name": "Busy", "max_requests_per_second": 1}));
    let other = server.organization();
    let mut connection = Connection::open(&server.address);
    let mut get =
        |key: &str| connection.send("GET", "/v1/vehicles", &[("Authorization", &format!("Bearer {key}"))], b"");
    let statuses: Vec<u16> = (0..20).map(|_| get(&busy.read).status).collect();
    assert!(statuses.starts_with(&[200, 200]) && statuses.contains(&429), "a burst of two: {statuses:?}");
    let limited = until("a refusal of the other key", || {
        let reply = busy.get("/v1/vehicles");
        (reply.status == 429).then_some(reply)
    });
    let message = limited.error(429, "rate_limit_error", "rate_limited")["message"].to_string();
    assert!(message.contains("of this organization, with all its keys"), "{message}");
    assert_eq!(limited.header("retry-after"), Some("1"));
    assert_eq!(limited.header("ratelimit-policy"), Some("\"organization\";q=2;w=2"));
    assert!(limited.header("ratelimit").is_some_and(|left| left.starts_with("\"organization\";r=0;t=")));
    let statuses: Vec<u16> = (0..20).map(|_| get(&other.read).status).collect();
    assert_eq!(statuses, [200; 20]);
    set(&busy, &json!({"max_requests_per_second": 1_000_000}));
    let statuses: Vec<u16> = (0..20).map(|_| get(&busy.read).status).collect();
    assert_eq!(statuses, [200; 20]);
    let page = Connection::open(&server.address).send("GET", "/metrics", &[], b"").text();
    assert!(page.contains("rental_organization_quota_refusals_total{quota=\"requests\"}"), "{page}");
}

#[test]
fn requests_over_the_limit_of_a_key_take_none_from_the_other_keys() {
    let server = Server::start(&["--rate-limit", "1"]);
    // The organization could have twenty at once.
    let organization = server.organization_with(&json!({"name": "Busy", "max_requests_per_second": 10}));
    let mut connection = Connection::open(&server.address);
    let mut get =
        |key: &str| connection.send("GET", "/v1/vehicles", &[("Authorization", &format!("Bearer {key}"))], b"");
    let refused: Vec<_> = (0..300).map(|_| get(&organization.read)).filter(|reply| reply.status == 429).collect();
    assert!(refused.len() > 100, "{}", refused.len());
    for reply in &refused {
        assert_eq!(reply.header("ratelimit-policy"), Some("\"default\";q=2;w=2"), "its own limit refuses it");
    }
    organization.get("/v1/vehicles").ok();
}

#[test]
fn the_defaults_of_the_server_are_for_organizations_without_quotas() {
    let flags = ["--organization-objects", "2", "--organization-bytes", "0", "--organization-requests", "0"];
    let server = Server::start(&flags);
    let (usual, special) =
        (server.organization(), server.organization_with(&json!({"name": "Special", "max_objects": 1000})));
    let usage = seen(&usual)["usage"].clone();
    let limits = ["max_objects", "max_bytes", "max_requests_per_second"].map(|name| usage[name].clone());
    assert_eq!(limits, [json!(2), Value::Null, Value::Null]);
    until("a refusal", || (make(&usual).status == 403).then_some(()));
    (0..5).for_each(|_| drop(make(&special).ok()));
}

/// Does a bit of everything.
fn work(organization: &Organization<'_>) {
    organization.one_of_each();
    for n in 0..10 {
        let key = format!("key-{n}");
        let made =
            organization.call_with("POST", "/v1/customers", &[("Idempotency-Key", &key)], &json!({"full_name": "A"}));
        organization.patch(&format!("/v1/customers/{}", made.id()), &json!({"notes": "n".repeat(100)})).ok();
    }
    let vehicle = organization.vehicle(json!({"plate": "ABC 123"}));
    let days = json!({"status": "APPROVED", "start_date": "2030-01-01", "end_date": "2030-01-05"});
    let rental = organization.rental(&vehicle, days);
    organization.patch(&format!("/v1/rentals/{rental}"), &json!({"end_date": "2030-01-09"})).ok();
    organization.patch(&format!("/v1/rentals/{rental}"), &json!({"status": "CANCELLED"})).ok();
    lead(organization, 3000).ok();
}

/// The result of the last recount that the server has logged.
fn corrected(server: &Server) -> Option<u64> {
    let log = server.log();
    let line = log.lines().rfind(|line| line.contains("what organizations use was recounted"))?;
    line.split_once("corrected=")?.1.split_whitespace().next()?.parse().ok()
}

#[test]
fn counts_survive_a_restart_and_a_recount_finds_the_same() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_in(directory.path(), &[]);
    until("the recount of the new store", || corrected(&server));
    let organization = server.organization();
    work(&organization);
    let counted = settled(&organization);
    assert_eq!(counted.0, 22, "one of each, 10 customers, a vehicle, a rental with its customer, a lead");
    let keys = (organization.id.clone(), organization.read.clone(), organization.write.clone());
    drop(organization);
    stop(server);
    let of = |server| Organization { server, id: keys.0.clone(), read: keys.1.clone(), write: keys.2.clone() };

    let server = Server::start_in(directory.path(), &[]);
    until("the counts of before", || (used(&of(&server)) == counted).then_some(()));
    // It is counted again after a crash. Nothing was lost, because all was saved.
    make(&of(&server)).ok();
    let counted = settled(&of(&server));
    server.signal("KILL");
    server.wait_until_gone();
    let server = Server::start_in(directory.path(), &[]);
    assert_eq!(until("a recount", || corrected(&server)), 0, "{}", server.log());
    assert_eq!(settled(&of(&server)), counted);
}

#[test]
fn what_a_crash_left_uncounted_is_counted_after_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_in(directory.path(), &[]);
    let organization = server.organization();
    make(&organization).ok();
    settled(&organization);
    (0..40).for_each(|_| drop(make(&organization).ok()));
    server.signal("KILL");
    let keys = (organization.id.clone(), organization.read.clone(), organization.write.clone());
    server.wait_until_gone();
    drop(organization);
    let server = Server::start_in(directory.path(), &[]);
    let after = Organization { server: &server, id: keys.0, read: keys.1, write: keys.2 };
    until("the count of what is there", || (used(&after).0 == 41).then_some(()));
}
