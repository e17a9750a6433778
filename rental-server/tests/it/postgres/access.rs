//! Keys and plans that one of three servers changes: each server refuses or allows from its very next request on, whatever
//! the request is, and a refused one has no effect. Every server has just used the key, so that it may remember it.

use super::{
    AtTheEnd,
    alike::{Ask, With, ask},
    everywhere, three,
};
use crate::{
    idempotency::{replays, with_key},
    support::{
        Connection, Organization, Reply, Server,
        rules::{UNKNOWN_ID, ids, walk},
    },
    webhooks::wait_for,
};
use serde_json::{Value, json};
use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

/// Ids of a new read and a new read_write key, and the organization with these.
fn with_new_keys<'s>(organization: &Organization<'s>) -> ([String; 2], Organization<'s>) {
    let server = organization.server;
    let made = ["read", "read_write"].map(|scope| {
        let body = json!({"organization_id": organization.id, "scope": scope});
        server.admin("POST", "/admin/v1/api_keys", &body).ok()
    });
    let text = |of: &Value, name: &str| of[name].as_str().expect("text").to_owned();
    let [read, write] = made.each_ref().map(|key| text(key, "key"));
    (made.map(|key| text(&key, "id")), Organization { server, id: organization.id.clone(), read, write })
}

/// What an operator does, and what a request gets from then on.
#[derive(Clone, Copy, Debug)]
enum Change {
    Revoke,
    Rotate,
    Downgrade,
}

impl Change {
    #[track_caller]
    fn perform(self, server: &Server, organization: &Organization, keys: &[String; 2]) {
        match self {
            Self::Downgrade => set_plan(server, organization, "free"),
            Self::Revoke | Self::Rotate => {
                let (word, body) = match self {
                    Self::Revoke => ("revoke", Value::Null),
                    _ => ("rotate", json!({"overlap_seconds": 0})),
                };
                for key in keys {
                    server.admin("POST", &format!("/admin/v1/api_keys/{key}/{word}"), &body).ok();
                }
            }
        }
    }

    /// Status, type and code of a refusal.
    fn refusal(self) -> (u16, &'static str, &'static str) {
        match self {
            Self::Revoke => (401, "authentication_error", "api_key_revoked"),
            Self::Rotate => (401, "authentication_error", "api_key_expired"),
            Self::Downgrade => (403, "permission_error", "plan_required"),
        }
    }

    #[track_caller]
    fn refuses(self, reply: &Reply) {
        let (status, kind, code) = self.refusal();
        reply.error(status, kind, code);
    }
}

#[track_caller]
fn set_plan(server: &Server, organization: &Organization, plan: &str) {
    let path = format!("/admin/v1/organizations/{}", organization.id);
    server.admin("PATCH", &path, &json!({"plan": plan})).ok();
}

/// The newest event: every change leaves one.
fn newest_event(organization: &Organization) -> Value {
    let path = format!("/admin/v1/organizations/{}/events?limit=1", organization.id);
    organization.server.admin("GET", &path, &Value::Null).ok()["data"][0]["id"].clone()
}

/// Requests of every kind, and the status of each while its key is good.
fn requests(organization: &Organization, foreign: &str) -> Vec<(u16, Ask)> {
    const POST: &str = "/v1/vehicles";
    let vehicle = format!("/v1/vehicles/{}", organization.vehicle(json!({})));
    let held = json!({"vehicle_id": &vehicle[13..], "customer_id": organization.customer(json!({})),
        "start_date": "2027-03-01", "end_date": "2027-03-05", "status": "APPROVED"});
    organization.post("/v1/rentals", &held).ok();
    let held: &'static str = Box::leak(held.to_string().into_boxed_str());
    let kept = json!({"name": "Kept"});
    with_key(organization, "kept", "POST", POST, &kept).ok();
    with_key(organization, "kept-patch", "PATCH", &vehicle, &json!({"year": 2001})).ok();
    assert_eq!(with_key(organization, "kept-400", "POST", POST, &json!({"year": 1})).status, 400);
    let tag = organization.get(&vehicle).header("etag").expect("an ETag").to_owned();
    let nowhere = format!("/v1/vehicles/{UNKNOWN_ID}");
    let get = |status, path: &str| (status, ask(With::Write, "GET", path, ""));
    let post = |status, body| (status, ask(With::Write, "POST", POST, body));
    let patch = |status, path: &str, body| (status, ask(With::Write, "PATCH", path, body));
    let with = |(status, ask): (u16, Ask), name, value: &str| (status, ask.header(name, value));
    let keyed = |request, key: &str| with(request, "Idempotency-Key", key);
    vec![
        get(200, &vehicle),
        get(200, POST),
        get(200, "/v1/rentals?status=APPROVED&limit=1"),
        get(200, &format!("/v1/tolls?vehicle={UNKNOWN_ID}")),
        get(400, "/v1/vehicles?limit=0"),
        get(400, "/v1/rentals?status=LOST"),
        get(400, &format!("{vehicle}?expand=1")),
        get(404, &nowhere),
        get(404, "/v1/vehicles/x"),
        get(404, &format!("/v1/vehicles/{foreign}")),
        with(get(304, &vehicle), "If-None-Match", &tag),
        (200, ask(With::Read, "GET", &vehicle, "")),
        (200, ask(With::Read, "GET", POST, "")),
        (403, ask(With::Read, "POST", POST, "{\"name\":\"Scope\"}")),
        (403, ask(With::Read, "PATCH", &vehicle, "{\"name\":\"Scope\"}")),
        (200, ask(With::Write, "POST", "/v1/leads", "{}")),
        (409, ask(With::Write, "POST", "/v1/rentals", held)),
        (400, ask(With::Write, "POST", "/v1/rentals", "{\"vehicle_id\":\"x\",\"customer_id\":\"y\"}")),
        post(200, "{\"name\":\"New\"}"),
        post(400, "{\"name\":\"\",\"year\":1}"),
        post(400, "{\"name\":"),
        post(400, "[]"),
        post(400, ""),
        with(post(415, "name"), "Content-Type", "text/plain"),
        with(post(415, "{}"), "Content-Encoding", "gzip"),
        keyed(post(400, "{\"name\":\"New\"}"), "two words"),
        keyed(post(200, "{\"name\":\"Kept\"}"), "kept"),
        keyed(post(422, "{\"name\":\"Other\"}"), "kept"),
        keyed(post(400, "{\"year\":1}"), "kept-400"),
        patch(200, &vehicle, "{\"color\":\"red\"}"),
        patch(200, &vehicle, "{}"),
        patch(400, &vehicle, "{\"year\":1}"),
        patch(400, &vehicle, "{"),
        patch(404, &nowhere, "{}"),
        patch(404, "/v1/vehicles/x", "{}"),
        patch(404, &format!("/v1/vehicles/{foreign}"), "{}"),
        with(patch(412, &vehicle, "{\"color\":\"blue\"}"), "If-Match", "\"777\""),
        keyed(patch(200, &vehicle, "{\"year\":2001}"), "kept-patch"),
    ]
}

/// Sends a request whose key is good; what is answered otherwise than with `status` is added to `wrong`.
fn answered_as_ever(organization: &Organization, status: u16, ask: &Ask, wrong: &mut Vec<String>) {
    let reply = ask.send(organization);
    // Its tag is that of the beginning; a request before it may have changed the vehicle.
    if reply.status != status && (status, reply.status) != (304, 200) {
        wrong.push(format!("{ask:?}: {} {}", reply.status, reply.text()));
    }
}

/// Lets every server use both keys, changes them by way of one server, and sends a request to each. What is no refusal, or
/// had an effect, is added to `wrong`.
fn changed_and_refused(all: &[Organization; 3], change: Change, by: usize, ask: &Ask, wrong: &mut Vec<String>) {
    let (keys, changed) = with_new_keys(&all[by]);
    let changed = all.each_ref().map(|organization| changed.by_way_of(organization.server));
    for organization in &changed {
        for with in [With::Read, With::Write] {
            assert_eq!(self::ask(with, "GET", "/v1/customers?limit=1", "").send(organization).status, 200);
        }
    }
    let before = newest_event(&all[by]);
    change.perform(all[by].server, &all[by], &keys);
    let (status, _, code) = change.refusal();
    for server in [by + 1, by + 2, by, by + 1] {
        let reply = ask.send(&changed[server % 3]);
        let refused = reply.status == status && reply.json()["error"]["code"] == code;
        let bare = reply.header("idempotent-replayed").is_none() && reply.header("etag").is_none();
        if !refused || !bare {
            wrong.push(format!("{change:?}, then {ask:?}: {} {}", reply.status, reply.text()));
        }
    }
    if newest_event(&all[by]) != before {
        wrong.push(format!("{change:?}, then {ask:?}: it had an effect"));
    }
}

#[test]
fn a_key_that_one_server_revoked_or_rotated_is_refused_by_each_whatever_the_request_is() {
    let Some(servers) = three() else { return };
    let foreign = servers[0].organization().vehicle(json!({}));
    let (all, mut wrong) = (everywhere(&servers, &servers[0].organization()), Vec::new());
    for (n, (status, ask)) in requests(&all[0], &foreign).into_iter().enumerate() {
        let good = ask.send(&all[n % 3]);
        assert_eq!(good.status, status, "{ask:?}: {}", good.text());
        changed_and_refused(&all, Change::Revoke, n % 3, &ask, &mut wrong);
        if n % 3 == 0 {
            changed_and_refused(&all, Change::Rotate, n / 3 % 3, &ask, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_plan_that_one_server_changed_counts_on_each_whatever_the_request_is() {
    let Some(servers) = three() else { return };
    let foreign = servers[0].organization().vehicle(json!({}));
    let (all, mut wrong) = (everywhere(&servers, &servers[0].organization()), Vec::new());
    for (n, (status, ask)) in requests(&all[0], &foreign).into_iter().enumerate() {
        changed_and_refused(&all, Change::Downgrade, n % 3, &ask, &mut wrong);
        // Each has just refused these keys, and may remember why.
        for organization in &all {
            Change::Downgrade.refuses(&organization.get("/v1/vehicles"));
            Change::Downgrade.refuses(&self::ask(With::Read, "GET", "/v1/tolls", "").send(organization));
        }
        set_plan(all[(n + 1) % 3].server, &all[0], "pro");
        for server in [n, n + 2, n + 1] {
            answered_as_ever(&all[server % 3], status, &ask, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What was remembered is out of date, but nothing is refused for it: the request begins anew and ends as any other.
#[test]
fn a_change_that_takes_nothing_away_leaves_every_answer_as_it_is() {
    let Some(servers) = three() else { return };
    let foreign = servers[0].organization().vehicle(json!({}));
    let (all, mut wrong) = (everywhere(&servers, &servers[0].organization()), Vec::new());
    let mut requests = requests(&all[0], &foreign);
    requests.push((413, ask(With::Write, "POST", "/v1/vehicles", "x".repeat(2 << 20).leak())));
    for (n, (status, ask)) in requests.into_iter().enumerate() {
        for server in [n, n + 1, n + 2] {
            for with in [With::Read, With::Write] {
                assert_eq!(self::ask(with, "GET", "/v1/customers?limit=1", "").send(&all[server % 3]).status, 200);
            }
            let path = format!("/admin/v1/organizations/{}", all[0].id);
            let name = json!({"name": format!("Number {n} {server}")});
            all[(server + 1) % 3].server.admin("PATCH", &path, &name).ok();
            answered_as_ever(&all[server % 3], status, &ask, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_key_that_one_server_made_works_on_the_others_at_once() {
    let Some(servers) = three() else { return };
    for n in 0..9 {
        let made = servers[n % 3].organization();
        for organization in [1, 2].map(|other| made.by_way_of(&servers[(n + other) % 3])) {
            let vehicle = organization.vehicle(json!({}));
            let read = ask(With::Read, "GET", format!("/v1/vehicles/{vehicle}"), "").send(&organization);
            assert_eq!(read.id(), vehicle);
            let write = ask(With::Read, "POST", "/v1/leads", "{}").send(&organization);
            write.error(403, "permission_error", "insufficient_scope");
        }
    }
}

/// A refusal is no answer to keep: with a good key, the same idempotency key is a new request, and an old one is replayed.
#[test]
fn a_revoked_key_neither_uses_up_nor_replays_an_idempotency_key() {
    let Some(servers) = three() else { return };
    let all = everywhere(&servers, &servers[0].organization());
    let body = json!({"name": "One"});
    for round in 0..9 {
        let (keys, revoked) = with_new_keys(&all[round % 3]);
        let revoked = all.each_ref().map(|organization| revoked.by_way_of(organization.server));
        let (old, new) = (format!("old-{round}"), format!("new-{round}"));
        let first = with_key(&revoked[round % 3], &old, "POST", "/v1/vehicles", &body);
        for organization in &revoked {
            let again = with_key(organization, &old, "POST", "/v1/vehicles", &body);
            replays(&first, &again);
        }
        Change::Revoke.perform(all[round % 3].server, &all[0], &keys);
        for organization in revoked.iter().chain(&revoked) {
            Change::Revoke.refuses(&with_key(organization, &old, "POST", "/v1/vehicles", &body));
            Change::Revoke.refuses(&with_key(organization, &new, "POST", "/v1/vehicles", &body));
        }
        replays(&first, &with_key(&all[0], &old, "POST", "/v1/vehicles", &body));
        let fresh = with_key(&all[1], &new, "POST", "/v1/vehicles", &body);
        assert_eq!((fresh.status, fresh.header("idempotent-replayed")), (200, None));
    }
    assert_eq!(walk(&all[2], "vehicles", "", 100).len(), 18);
}

/// Requests of many clients may share a read of the store, also the one that confirms a key.
#[test]
fn a_crowd_is_refused_as_soon_as_the_revocation_or_the_plan_was_answered() {
    let Some(servers) = three() else { return };
    for round in 0..8_usize {
        let all = everywhere(&servers, &servers[0].organization());
        let (keys, used) = with_new_keys(&all[0]);
        let (change, by) = ([Change::Revoke, Change::Downgrade][round % 2], round % 3);
        let path = format!("/v1/vehicles/{}", all[0].vehicle(json!({})));
        let (answered, made) = (AtomicBool::new(false), Mutex::new(vec![path[13..].to_owned()]));
        thread::scope(|scope| {
            for client in 0..24 {
                let (used, path, answered, made) = (used.by_way_of(&servers[client % 3]), &path, &answered, &made);
                scope.spawn(move || {
                    let mut connection = Connection::open(&used.server.address);
                    let key = format!("Bearer {}", used.write);
                    let headers = [("Authorization", key.as_str()), ("Content-Type", "application/json")];
                    let (method, path, body): (_, &str, &[u8]) = match client / 3 {
                        0 | 1 => ("POST", "/v1/vehicles", b"{\"name\":\"One\"}"),
                        2 => ("PATCH", path, b"{\"color\":\"red\"}"),
                        3 => ("POST", "/v1/vehicles", b"{\"year\":1}"),
                        4 => ("GET", "/v1/vehicles?limit=3", b""),
                        _ => ("GET", path, b""),
                    };
                    let mut refused = 0;
                    while refused < 5 {
                        let late = answered.load(Ordering::SeqCst);
                        let reply = connection.send(method, path, &headers, body);
                        if [401, 403].contains(&reply.status) {
                            change.refuses(&reply);
                            refused += 1;
                            // A body that came too late for a refusal is not read.
                            if reply.header("connection") == Some("close") {
                                connection = Connection::open(&used.server.address);
                            }
                            continue;
                        }
                        assert!(!late, "{method} {path} after the answer to {change:?}: {}", reply.text());
                        assert_eq!(refused, 0, "{method} {path} was refused by {change:?} before");
                        if (method, reply.status) == ("POST", 200) {
                            made.lock().unwrap().push(reply.id());
                        }
                    }
                });
            }
            let _answered = AtTheEnd(&answered);
            let is_made = || (made.lock().unwrap().len() > 3).then_some(());
            wait_for("a write of the crowd", is_made, || "none".to_owned());
            change.perform(&servers[by], &all[0], &keys);
        });
        set_plan(&servers[by], &all[0], "pro");
        let mut made = made.into_inner().unwrap();
        made.sort_by(|a, b| b.cmp(a));
        assert!(made.len() > 3, "nobody wrote meanwhile");
        assert_eq!(ids(&walk(&all[1], "vehicles", "", 100)), made, "a refused request has no effect");
    }
}
