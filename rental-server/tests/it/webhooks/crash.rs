//! kill -9 at any moment: every event of every acknowledged write arrives, and no other (spec, Delivery guarantees).
//! `RENTAL_KILLS` sets the number of kills (5 without it).
//!
//! Twice arrives only what was under way at a kill: an attempt whose outcome was not committed. These are at most ten
//! for each endpoint and kill, since no more are in flight. The relay turns outbox rows into deliveries and removes them
//! in one transaction, so a kill in it adds nothing to that.

use super::{PRIVATE, hook, observed};
use crate::support::{
    Connection, Organization, Server,
    receiver::{Act, PATIENCE, Receiver, Seen},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
    time::{Duration, Instant},
};

const WRITERS: usize = 4;
const IN_FLIGHT: usize = rental_core::webhooks::concurrency::MOST as usize;
const FLAGS: [&str; 3] = [PRIVATE, "--webhook-retry-schedule", "200ms,200ms,200ms,200ms,200ms"];

/// What writers were told: the types of events by object, and what was in doubt when the server went away.
#[derive(Default)]
struct Ledger {
    promised: BTreeMap<(String, String), usize>,
    /// Markers of customers whose creation was not answered.
    in_doubt: BTreeSet<String>,
    /// Customers whose change was not answered.
    maybe_updated: BTreeMap<String, usize>,
}

fn try_call(organization: &Organization, method: &str, path: &str, body: &Value) -> Option<Value> {
    let key = format!("Bearer {}", organization.write);
    let headers = [("Authorization", key.as_str()), ("Content-Type", "application/json")];
    let mut connection = Connection::try_open(&organization.server.address).ok()?;
    Some(connection.try_send(method, path, &headers, body.to_string().as_bytes()).ok()?.ok())
}

/// Makes and changes customers until the server is gone.
fn write(organization: &Organization, ledger: &Mutex<Ledger>, name: &str) {
    for number in 0.. {
        let marker = format!("{name}-{number}");
        let Some(made) = try_call(organization, "POST", "/v1/customers", &json!({"full_name": marker})) else {
            ledger.lock().unwrap().in_doubt.insert(marker);
            return;
        };
        let id = made["id"].as_str().expect("an id").to_owned();
        *ledger.lock().unwrap().promised.entry((id.clone(), "customer.created".into())).or_default() += 1;
        let path = format!("/v1/customers/{id}");
        if try_call(organization, "PATCH", &path, &json!({"notes": marker})).is_none() {
            *ledger.lock().unwrap().maybe_updated.entry(id).or_default() += 1;
            return;
        }
        *ledger.lock().unwrap().promised.entry((id, "customer.updated".into())).or_default() += 1;
    }
}

fn again<'s>(server: &'s Server, keys: &[String; 3]) -> Organization<'s> {
    let [id, read, write] = keys.clone();
    Organization { server, id, read, write }
}

/// How many events were promised until now.
fn promised(ledger: &Mutex<Ledger>) -> usize {
    ledger.lock().unwrap().promised.values().sum()
}

/// One life of the server: writers write until it is killed.
fn live_and_die(server: &Server, keys: &[String; 3], ledger: &Mutex<Ledger>, life: u64) {
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || write(&again(server, keys), ledger, &format!("{life}-{writer}")));
        }
        // From one that has hardly begun to one in full flow, however slow the machine is.
        let enough = promised(ledger) + 20 * ((life as usize + 1) % 3);
        let deadline = Instant::now() + PATIENCE;
        while promised(ledger) < enough {
            assert!(Instant::now() < deadline, "the writers do not get on");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(20 + life.wrapping_mul(2_654_435_761) % 100));
        server.signal("KILL");
    });
    server.wait_until_gone();
}

/// How often each event arrived.
fn arrivals(seen: &[Seen]) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    seen.iter().for_each(|one| *found.entry(one.event().to_owned()).or_default() += 1);
    found
}

/// Everything that the store has as an event is what writers were told, and at most what they were not answered about.
fn check_events(events: &[Value], ledger: &Ledger) {
    let mut found: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut unpromised = Vec::new();
    for event in events {
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let key = (text(&event["data"]["id"]), text(&event["type"]));
        *found.entry(key.clone()).or_default() += 1;
        if !ledger.promised.contains_key(&key) {
            unpromised.push((key, text(&event["data"]["full_name"])));
        }
    }
    for (key, count) in &ledger.promised {
        assert_eq!(found.get(key), Some(count), "{key:?} was acknowledged");
    }
    for ((id, kind), marker) in unpromised {
        let known = if kind == "customer.created" {
            ledger.in_doubt.contains(&marker)
        } else {
            ledger.maybe_updated.contains_key(&id)
        };
        assert!(known, "{kind} of {marker}, which nobody wrote");
    }
}

#[test]
fn every_event_of_an_acknowledged_write_arrives_over_kill_9_at_any_moment() {
    let kills: u64 = std::env::var("RENTAL_KILLS").map_or(5, |kills| kills.parse().expect("a number"));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let slow =
        |number: usize, _: &Seen| Act::After(Duration::from_millis(number as u64 % 7), Box::new(Act::Status(200)));
    let receivers = [Receiver::start(), Receiver::with(slow)];
    let ledger = Mutex::new(Ledger::default());
    let mut server = Server::start_in(directory.path(), &FLAGS);
    let keys = {
        let organization = server.organization();
        receivers.iter().for_each(|receiver| drop(hook(&organization, receiver)));
        [organization.id.clone(), organization.read.clone(), organization.write.clone()]
    };
    for life in 0..kills {
        live_and_die(&server, &keys, &ledger, life);
        server = Server::start_in(directory.path(), &FLAGS);
    }
    let organization = again(&server, &keys);
    let ledger = ledger.into_inner().unwrap();
    let deadline = Instant::now() + PATIENCE * 2;
    while observed(&organization, "deliveries", "").iter().any(|one| one["status"] == "pending") {
        assert!(Instant::now() < deadline, "deliveries are still pending");
        std::thread::sleep(Duration::from_millis(50));
    }
    let events = observed(&organization, "events", "");
    check_events(&events, &ledger);
    let stored: BTreeSet<&str> = events.iter().map(|event| event["id"].as_str().expect("an id")).collect();
    for receiver in &receivers {
        let arrived = arrivals(&receiver.seen());
        assert_eq!(arrived.keys().map(String::as_str).collect::<BTreeSet<_>>(), stored, "all of them and no other");
        let twice: usize = arrived.values().map(|count| count - 1).sum();
        assert!(twice <= IN_FLIGHT * kills as usize, "{twice} arrived again after {kills} kills");
    }
    assert!(events.len() > 5 * kills as usize, "only {} events: the run says nothing", events.len());
}

/// The commit of a write is the moment from which its event is sure: also when the kill follows at once.
#[test]
fn an_event_whose_write_was_answered_just_before_a_kill_arrives() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let receiver = Receiver::start();
    let mut server = Server::start_in(directory.path(), &FLAGS);
    let keys = {
        let organization = server.organization();
        hook(&organization, &receiver);
        [organization.id.clone(), organization.read.clone(), organization.write.clone()]
    };
    let mut made = BTreeSet::new();
    for _ in 0..5 {
        made.insert(again(&server, &keys).customer(json!({})));
        server.signal("KILL");
        server.wait_until_gone();
        server = Server::start_in(directory.path(), &FLAGS);
    }
    let told = |seen: &[Seen]| -> BTreeSet<String> {
        seen.iter().map(|one| one.json()["data"]["id"].as_str().expect("an id").to_owned()).collect()
    };
    let seen = receiver.wait_until("an event of each write", |seen| told(seen).len() >= made.len());
    assert_eq!(told(&seen), made);
}

/// A stop in order leaves nothing half done: what was under way is finished, so nothing arrives twice.
#[test]
fn after_an_ordered_stop_nothing_arrives_twice() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let receiver = Receiver::that(Act::After(Duration::from_millis(30), Box::new(Act::Status(200))));
    let server = Server::start_in(directory.path(), &FLAGS);
    let organization = server.organization();
    hook(&organization, &receiver);
    super::many_events(&organization, 40);
    receiver.wait_for(1);
    server.signal("TERM");
    server.wait_until_gone();
    let _second = Server::start_in(directory.path(), &FLAGS);
    let seen = receiver.wait_until("all 40 events", |seen| arrivals(seen).len() >= 40);
    super::quiet_while();
    assert_eq!((seen.len(), receiver.count()), (40, 40));
}
