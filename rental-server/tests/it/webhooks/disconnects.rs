//! What follows a commit happens whatever the client does: these clients close their socket right after they have sent
//! a request (decisions, Second round).

use super::{Hook, PRIVATE, hook, hook_at, one_event, quiet_while, signed, state, wait_for};
use crate::support::{Connection, Organization, Server, receiver::Receiver};
use serde_json::{Value, json};
use std::{
    cell::Cell,
    collections::BTreeSet,
    time::{Duration, Instant},
};

/// Times between sending and closing: from before the request is handled until after its response was sent.
fn pauses(count: u32) -> impl Iterator<Item = Duration> {
    (0..count).map(|n| Duration::from_micros(50 + u64::from(n % 20) * 100))
}

/// Sends a request and closes the socket after `pause`, whatever the server does.
fn abandon(server: &Server, request: &str, token: &str, body: &Value, pause: Duration) {
    let body = body.to_string();
    let bytes = format!(
        "{request} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut connection = Connection::open(&server.address);
    connection.write(bytes.as_bytes()).expect("sent");
    // A sleep would be too coarse.
    let began = Instant::now();
    while began.elapsed() < pause {
        std::hint::spin_loop();
    }
}

fn abandon_act(server: &Server, hook: &Hook, word: &str, body: &Value, pause: Duration) {
    let request = format!("POST /admin/v1/webhook_endpoints/{}/{word}", hook.id);
    abandon(server, &request, &server.admin_token, body, pause);
}

/// Abandons a request until the server has done what it asks for: a request whose client goes before the server has
/// read its body is not handled.
#[track_caller]
fn abandon_until<T>(what: &str, pause: Duration, abandon: impl Fn(Duration), done: impl Fn() -> Option<T>) -> T {
    let longer = Cell::new(pause);
    let look = || {
        abandon(longer.get());
        longer.set(longer.get() + Duration::from_micros(200));
        (0..20).find_map(|_| {
            std::thread::sleep(Duration::from_millis(5));
            done()
        })
    };
    wait_for(what, look, || "nothing".into())
}

/// The ids of all objects at `path`, which an admin token or a key may list.
fn ids(organization: &Organization) -> BTreeSet<String> {
    let (mut found, mut cursor) = (BTreeSet::new(), String::new());
    loop {
        let page = organization.get(&format!("/v1/vehicles?limit=100{cursor}")).ok();
        found.extend(page["data"].as_array().expect("a list").iter().map(|one| one["id"].to_string()));
        let Some(next) = page["next_cursor"].as_str() else { return found };
        cursor = format!("&starting_after={next}");
    }
}

#[test]
fn every_committed_change_is_delivered_when_its_client_has_gone() {
    let server = Server::start(&[PRIVATE]);
    let (organization, receiver) = (server.organization(), Receiver::start());
    hook(&organization, &receiver);
    for pause in pauses(200) {
        abandon(&server, "POST /v1/vehicles", &organization.write, &json!({"name": "x"}), pause);
    }
    assert!(!ids(&organization).is_empty());
    // No other write comes, and every read is made anew: a request may be committed after its client has gone.
    receiver.wait_until("the events of all vehicles", |seen| {
        let told: BTreeSet<String> = seen.iter().map(|one| one.json()["data"]["id"].to_string()).collect();
        told.is_superset(&ids(&organization))
    });
}

#[test]
fn an_endpoint_is_served_although_the_client_that_made_it_has_gone() {
    let server = Server::start(&[PRIVATE]);
    for pause in pauses(20) {
        let (organization, receiver) = (server.organization(), Receiver::start());
        let body = json!({"organization_id": organization.id, "url": receiver.url()});
        let make = |pause| abandon(&server, "POST /admin/v1/webhook_endpoints", &server.admin_token, &body, pause);
        let path = format!("/admin/v1/webhook_endpoints?organization={}", organization.id);
        let made = || server.admin("GET", &path, &Value::Null).ok()["data"][0]["id"].as_str().map(str::to_owned);
        abandon_until("the endpoint", pause, make, made);
        one_event(&organization);
        receiver.wait_for(1);
    }
}

#[test]
fn a_disabled_endpoint_gets_nothing_although_the_client_that_disabled_it_has_gone() {
    let server = Server::start(&[PRIVATE]);
    for pause in pauses(20) {
        let (organization, receiver) = (server.organization(), Receiver::start());
        let hook = hook(&organization, &receiver);
        one_event(&organization);
        receiver.wait_for(1);
        let disable = |pause| abandon_act(&server, &hook, "disable", &json!({}), pause);
        abandon_until("disabled", pause, disable, || (state(&server, &hook)["status"] == "disabled").then_some(()));
        quiet_while();
        one_event(&organization);
        quiet_while();
        assert_eq!(receiver.count(), 1, "{pause:?}: {}", state(&server, &hook));
    }
}

#[test]
fn an_old_secret_signs_no_more_although_the_client_that_rotated_it_has_gone() {
    let server = Server::start(&[PRIVATE]);
    for pause in pauses(20) {
        let (organization, receiver) = (server.organization(), Receiver::start());
        let hook = hook(&organization, &receiver);
        one_event(&organization);
        let seen = receiver.wait_for(1);
        assert_eq!(seen[0].header("Service-Signature"), signed(&seen[0], &[&hook.secret]));
        let rotate = |pause| abandon_act(&server, &hook, "rotate_secret", &json!({"overlap_seconds": 0}), pause);
        let path = format!("/admin/v1/audit_entries?organization={}", organization.id);
        let rotated = || {
            let entries = server.admin("GET", &path, &Value::Null).ok();
            let newest = entries["data"][0]["action"].to_string();
            newest.contains("otate").then_some(())
        };
        abandon_until("the rotation", pause, rotate, rotated);
        quiet_while();
        one_event(&organization);
        let seen = receiver.wait_for(2);
        assert_ne!(seen[1].header("Service-Signature"), signed(&seen[1], &[&hook.secret]), "{pause:?}");
    }
}

#[test]
fn a_revoked_key_is_refused_although_the_client_that_revoked_it_has_gone() {
    let server = Server::start(&[]);
    let organization = server.organization();
    for pause in pauses(20) {
        let body = json!({"organization_id": organization.id, "scope": "read"});
        let made = server.admin("POST", "/admin/v1/api_keys", &body).ok();
        let text = |name: &str| made[name].as_str().expect("a text").to_owned();
        let (id, bearer) = (text("id"), format!("Bearer {}", text("key")));
        let ask = || {
            let headers = [("Authorization", bearer.as_str())];
            Connection::open(&server.address).send("GET", "/v1/vehicles", &headers, b"").status
        };
        assert_eq!(ask(), 200);
        let request = format!("POST /admin/v1/api_keys/{id}/revoke");
        let revoke = |pause| abandon(&server, &request, &server.admin_token, &json!({}), pause);
        let state =
            || server.admin("GET", &format!("/admin/v1/api_keys/{id}"), &Value::Null).ok()["revoked_at"].clone();
        abandon_until("the revocation", pause, revoke, || state().is_string().then_some(()));
        quiet_while();
        assert_eq!(ask(), 401, "{pause:?}");
    }
}

#[test]
fn a_key_of_idempotency_is_in_use_until_its_commit_has_ended() {
    let server = Server::start(&[PRIVATE]);
    let (organization, receiver) = (server.organization(), Receiver::start());
    hook_at(&organization, &receiver.url(), json!({}));
    for (n, pause) in pauses(60).enumerate() {
        let key = format!("once-{n}");
        let request = format!("POST /v1/vehicles HTTP/1.1\r\nIdempotency-Key: {key}\r\nX: x");
        // The rest of the request line becomes the value of a header.
        abandon(&server, &request, &organization.write, &json!({"name": key}), pause);
        let again =
            || organization.call_with("POST", "/v1/vehicles", &[("Idempotency-Key", &key)], &json!({"name": key}));
        let reply = wait_for("an answer", || Some(again()).filter(|reply| reply.status != 409), || "409".into());
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    assert_eq!(ids(&organization).len(), 60, "each was made once");
    receiver.wait_for(60);
    quiet_while();
    assert_eq!(receiver.count(), 60, "each was told once");
}
