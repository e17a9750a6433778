//! Idempotency keys that race through three servers: one object and one answer for each key.

use super::{everywhere, three};
use crate::{
    holds,
    idempotency::{race, replays, vehicles, with_key},
    support::{
        Organization, Reply,
        rules::{ids, walk},
    },
};
use serde_json::{Value, json};
use std::sync::Mutex;

/// Waits for the first answer to a key.
fn settled(organization: &Organization, key: &str, method: &str, path: &str, body: &Value) -> Reply {
    loop {
        let reply = with_key(organization, key, method, path, body);
        if reply.status != 409 || reply.json()["error"]["code"] != "idempotency_key_in_use" {
            return reply;
        }
    }
}

#[test]
fn one_key_sent_to_three_servers_at_once_makes_one_object_and_one_answer() {
    let Some(servers) = three() else { return };
    let all = everywhere(&servers, &servers[0].organization());
    let (each, customer) = (all.each_ref(), all[0].customer(json!({})));
    let mut made = Vec::new();
    for round in 0..12 {
        let (key, body) = (format!("post-{round}"), json!({"name": format!("{round}")}));
        let done = race(&each, &key, "POST", "/v1/vehicles", &body);
        let vehicle = done[0].id();
        let path = format!("/v1/vehicles/{vehicle}");
        race(&each, &format!("patch-{round}"), "PATCH", &path, &json!({"year": 2000 + round}));
        // A booking is in the way of its own repetition, unless it is known to be one.
        let booking = json!({"vehicle_id": vehicle, "customer_id": customer, "status": "APPROVED",
            "start_date": "2027-03-10", "end_date": "2027-03-12"});
        race(&each, &format!("book-{round}"), "POST", "/v1/rentals", &booking);
        let first = done.iter().find(|reply| reply.header("idempotent-replayed").is_none()).expect("one was first");
        for organization in &all {
            replays(first, &with_key(organization, &key, "POST", "/v1/vehicles", &body));
            assert_eq!(organization.get(&path).header("etag"), Some("\"2\""), "changed once");
            for (method, path, other) in [
                ("POST", "/v1/vehicles", json!({"name": "Other"})),
                ("POST", "/v1/leads", body.clone()),
                ("PATCH", path.as_str(), body.clone()),
            ] {
                let reply = with_key(organization, &key, method, path, &other);
                reply.error(422, "idempotency_error", "idempotency_key_reused");
            }
        }
        made.push(vehicle);
    }
    made.sort();
    for organization in &all {
        let mut listed = ids(&vehicles(organization));
        listed.sort();
        assert_eq!(listed, made);
        assert_eq!(walk(organization, "rentals", "", 100).len(), made.len());
    }
}

#[test]
fn many_keys_at_once_on_three_servers_are_each_carried_out_once() {
    const KEYS: usize = 30;
    let Some(servers) = three() else { return };
    let all = everywhere(&servers, &servers[0].organization());
    let answers = [(); KEYS].map(|()| Mutex::new(Vec::new()));
    holds::race(9, |client| {
        // Each three start at another place, so that keys meet each other, not only themselves.
        for step in 0..KEYS {
            let key = (step + client / 3 * 10) % KEYS;
            let (name, body) = (format!("key-{key}"), json!({"name": format!("{key}")}));
            let reply = settled(&all[client % 3], &name, "POST", "/v1/vehicles", &body);
            answers[key].lock().unwrap().push(reply);
        }
    });
    let mut made = Vec::new();
    for (key, answers) in answers.into_iter().enumerate() {
        let answers = answers.into_inner().unwrap();
        let firsts = answers.iter().filter(|reply| reply.header("idempotent-replayed").is_none()).count();
        assert_eq!((answers.len(), firsts), (9, 1), "key {key}");
        for reply in &answers {
            assert_eq!((reply.ok(), reply.header("etag")), (answers[0].ok(), answers[0].header("etag")));
        }
        made.push(answers[0].id());
    }
    each_lists(&all, made);
}

#[test]
fn of_different_requests_that_race_with_one_key_one_is_carried_out() {
    let Some(servers) = three() else { return };
    let all = everywhere(&servers, &servers[0].organization());
    let mut made = Vec::new();
    for round in 0..15 {
        let answers = Mutex::new(Vec::new());
        holds::race(6, |client| {
            let body = json!({"name": format!("{round} by {client}")});
            let reply = settled(&all[client % 3], &format!("key-{round}"), "POST", "/v1/vehicles", &body);
            answers.lock().unwrap().push(reply);
        });
        let (won, lost): (Vec<_>, Vec<_>) =
            answers.into_inner().unwrap().into_iter().partition(|reply| reply.status == 200);
        assert_eq!((won.len(), lost.len()), (1, 5), "round {round}");
        for reply in lost {
            reply.error(422, "idempotency_error", "idempotency_key_reused");
        }
        made.push(won[0].id());
    }
    each_lists(&all, made);
}

#[track_caller]
fn each_lists(all: &[Organization; 3], mut made: Vec<String>) {
    made.sort();
    for organization in all {
        let mut listed = ids(&vehicles(organization));
        listed.sort();
        assert_eq!(listed, made);
    }
}
