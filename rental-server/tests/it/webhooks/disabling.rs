//! 20 consecutive failures across all events disable an endpoint, and nothing else does (spec, Retries 3; decisions,
//! Webhooks).

use super::{
    PRIVATE, act, hook, hook_at, many_events, observed, one_event, quiet_while, wait_for, wait_for_deliveries,
    wait_for_state, with_schedule,
};
use crate::support::{
    Organization, Server,
    receiver::{Act, Receiver, Seen},
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Duration};

/// Five retries in quick succession; attempts after a failure are as far apart.
const QUICK: &str = "20ms,20ms,20ms,20ms,20ms";
/// Retries so late that no test sees one: every attempt is another event's.
const NEVER: [&str; 3] = [PRIVATE, "--webhook-retry-schedule", "1h"];

fn ids(seen: &[Seen]) -> BTreeSet<&str> {
    seen.iter().map(Seen::event).collect()
}

fn failing(number: usize, upto: usize) -> Act {
    Act::Status(if number < upto { 500 } else { 200 })
}

#[test]
fn twentieth_failure_disables_the_endpoint_and_says_why() {
    let server = with_schedule(QUICK);
    let (organization, receiver) = (server.organization(), Receiver::that(Act::Status(500)));
    let hook = hook(&organization, &receiver);
    many_events(&organization, 8);
    let state = wait_for_state(&server, &hook, "disabled", |state| state["status"] == "disabled");
    quiet_while();
    assert_eq!(receiver.count(), 20, "20 attempts, and none after the one that disabled it");
    assert_eq!(state["failures_in_a_row"], 20);
    assert!(state["disabled_reason"].as_str().is_some_and(|reason| reason.contains("20 failures")), "{state}");
    assert!(state["disabled_at"].is_string(), "{state}");
}

#[test]
fn nineteen_failures_and_a_success_disable_nothing_and_start_the_count_anew() {
    let server = with_schedule(QUICK);
    let organization = server.organization();
    let receiver = Receiver::with(|number, _| match number {
        19 | 39 => Act::Status(200),
        number => failing(number, 59),
    });
    let hook = hook(&organization, &receiver);
    many_events(&organization, 12);
    receiver.wait_for(20);
    let state = wait_for_state(&server, &hook, "a count that began anew", |state| state["failures_in_a_row"] != 19);
    assert_eq!(state["status"], "enabled");
    receiver.wait_for(60);
    let state = wait_for_state(&server, &hook, "no failures", |state| state["failures_in_a_row"] == 0);
    assert_eq!((&state["status"], &state["disabled_reason"]), (&json!("enabled"), &Value::Null));
}

#[test]
fn failures_of_different_events_count_together() {
    let server = Server::start(&NEVER);
    let (organization, receiver) = (server.organization(), Receiver::that(Act::Status(404)));
    let hook = hook_at(&organization, &receiver.url(), json!({}));
    act(&server, &hook, "disable", &Value::Null).ok();
    many_events(&organization, 12);
    act(&server, &hook, "enable", &Value::Null).ok();
    let seen = receiver.wait_for(12);
    assert_eq!(ids(&seen).len(), 12, "no event was tried twice");
    wait_for_state(&server, &hook, "12 failures", |state| state["failures_in_a_row"] == 12);
}

fn revived<'s>(server: &'s Server, old: &Organization) -> Organization<'s> {
    Organization { server, id: old.id.clone(), read: old.read.clone(), write: old.write.clone() }
}

#[test]
fn the_count_survives_kill_9_and_a_restart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let flags = [PRIVATE, "--webhook-retry-schedule", QUICK];
    let receiver = Receiver::with(|number, _| if number < 12 { Act::Status(500) } else { Act::Hang });
    let first = Server::start_in(directory.path(), &flags);
    let before = first.organization();
    let hook = hook(&before, &receiver);
    many_events(&before, 30);
    receiver.wait_for(13);
    wait_for_state(&first, &hook, "12 failures", |state| state["failures_in_a_row"] == 12);
    first.signal("KILL");
    first.wait_until_gone();
    receiver.now_does(Act::Status(500));
    let second = Server::start_in(directory.path(), &flags);
    let state = wait_for_state(&second, &hook, "disabled", |state| state["status"] == "disabled");
    quiet_while();
    assert_eq!(state["failures_in_a_row"], 20);
    // The one that hung when the server was killed was never answered, so it does not count.
    assert_eq!(receiver.count(), 13 + 8, "12 failures before the kill and 8 after it");
}

#[test]
fn a_disabled_endpoint_stays_disabled_over_a_restart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let flags = [PRIVATE, "--webhook-retry-schedule", QUICK];
    let receiver = Receiver::that(Act::Status(500));
    let first = Server::start_in(directory.path(), &flags);
    let before = first.organization();
    let hook = hook(&before, &receiver);
    many_events(&before, 8);
    wait_for_state(&first, &hook, "disabled", |state| state["status"] == "disabled");
    first.signal("KILL");
    first.wait_until_gone();
    let second = Server::start_in(directory.path(), &flags);
    one_event(&revived(&second, &before));
    quiet_while();
    assert_eq!(receiver.count(), 20);
    wait_for_state(&second, &hook, "disabled", |state| state["status"] == "disabled");
}

#[test]
fn what_a_disabled_endpoint_missed_is_kept_and_sent_once_it_is_enabled() {
    let server = with_schedule(QUICK);
    let (organization, receiver) = (server.organization(), Receiver::that(Act::Status(500)));
    let hook = hook(&organization, &receiver);
    many_events(&organization, 10);
    wait_for_state(&server, &hook, "disabled", |state| state["status"] == "disabled");
    many_events(&organization, 20);
    let all: BTreeSet<String> = observed(&organization, "events", "")
        .iter()
        .map(|event| event["id"].as_str().expect("an id").to_owned())
        .collect();
    // What is `failed` by now had its six attempts; everything else waits.
    let waiting = |status: &str| {
        let deliveries = observed(&organization, "deliveries", &format!("&endpoint={}", hook.id));
        deliveries.iter().filter(|one| one["status"] == status).count()
    };
    let counts = || (waiting("pending"), waiting("failed"));
    let all_there = || Some(counts()).filter(|(pending, failed)| pending + failed == 30);
    let (pending, _) = wait_for("30 deliveries", all_there, || format!("{:?}", counts()));
    assert_eq!((all.len(), waiting("delivered")), (30, 0));
    let before = receiver.count();
    receiver.now_does(Act::Status(204));
    let state = act(&server, &hook, "enable", &Value::Null).ok();
    assert_eq!((&state["status"], &state["failures_in_a_row"]), (&json!("enabled"), &json!(0)));
    assert_eq!((&state["disabled_reason"], &state["disabled_at"]), (&Value::Null, &Value::Null));
    let seen = receiver.wait_for(before + pending);
    quiet_while();
    assert_eq!((receiver.count(), ids(&seen[before..]).len()), (before + pending, pending), "each once");
    assert_eq!((waiting("pending"), waiting("delivered")), (0, pending));
}

#[test]
fn after_a_failure_there_is_one_attempt_at_a_time() {
    let server = Server::start(&[PRIVATE, "--webhook-retry-schedule", "10ms,10ms,10ms,10ms,10ms"]);
    let organization = server.organization();
    let receiver = Receiver::that(Act::After(Duration::from_millis(150), Box::new(Act::Status(503))));
    let hook = hook(&organization, &receiver);
    act(&server, &hook, "disable", &Value::Null).ok();
    many_events(&organization, 30);
    act(&server, &hook, "enable", &Value::Null).ok();
    wait_for_state(&server, &hook, "disabled", |state| state["failures_in_a_row"] == 20);
    let seen = receiver.wait_until("20 answers", |seen| seen.iter().filter(|one| one.ended.is_some()).count() >= 20);
    let first_failure = seen.iter().filter_map(|one| one.ended).min().expect("it ended");
    let later: Vec<&Seen> = seen.iter().filter(|one| one.began > first_failure).collect();
    assert!(later.len() >= 10, "at most 10 are under way when the first fails, not {}", seen.len() - later.len());
    for pair in later.windows(2) {
        assert!(pair[1].began >= pair[0].ended.expect("it ended"), "two attempts at once after a failure: {pair:?}");
    }
}

#[test]
fn a_receiver_that_was_down_with_100_events_waiting_is_not_disabled_and_gets_all() {
    let server = with_schedule("5s,5s,5s,5s,5s");
    let organization = server.organization();
    let receiver = Receiver::start();
    let (address, hook) = (receiver.address, hook(&organization, &receiver));
    one_event(&organization);
    receiver.wait_for(1);
    wait_for_deliveries(&organization, &hook, 1, "delivered");
    receiver.close();
    many_events(&organization, 100);
    wait_for_state(&server, &hook, "a few failures", |state| state["failures_in_a_row"].as_u64() >= Some(2));
    let receiver = Receiver::at(address, |_, _| Act::Status(200));
    let seen = receiver.wait_until("all 100 events", |seen| ids(seen).len() >= 100);
    wait_for_deliveries(&organization, &hook, 101, "delivered");
    assert_eq!(seen.len(), 100, "each arrives once");
    let state = wait_for_state(&server, &hook, "no failures", |state| state["failures_in_a_row"] == 0);
    assert_eq!(state["status"], "enabled");
}
