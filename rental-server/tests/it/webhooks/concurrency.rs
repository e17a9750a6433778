//! How many attempts are in flight for one endpoint: more for a receiver that keeps up, one for a receiver that fails.

use super::{PRIVATE, act, hook, many_events, wait_for_state, with_schedule};
use crate::support::{
    Server,
    receiver::{Act, Receiver, Seen},
};
use serde_json::Value;
use std::time::Duration;

/// A response that takes its time, but less than a tenth of the time-out.
fn in_a_while(status: u16) -> Act {
    Act::After(Duration::from_millis(600), Box::new(Act::Status(status)))
}

/// The most requests that were in flight at once.
fn most_at_once(seen: &[Seen]) -> usize {
    let ends: Vec<_> = seen.iter().filter_map(|one| one.ended).collect();
    let running = |at| seen.iter().filter(|one| one.began <= at).count() - ends.iter().filter(|end| **end < at).count();
    seen.iter().map(|one| running(one.began)).max().unwrap_or(0)
}

#[test]
fn a_receiver_that_keeps_up_gets_more_and_more_at_once() {
    let server = Server::start(&[PRIVATE]);
    let (organization, receiver) = (server.organization(), Receiver::that(in_a_while(200)));
    let hook = hook(&organization, &receiver);
    act(&server, &hook, "disable", &Value::Null).ok();
    many_events(&organization, 600);
    act(&server, &hook, "enable", &Value::Null).ok();
    let seen = receiver.wait_until("all events", |seen| seen.iter().filter(|one| one.ended.is_some()).count() >= 600);
    let most = most_at_once(&seen);
    assert!((40..=100).contains(&most), "{most} at once");
}

#[test]
fn a_slow_receiver_gets_ten_at_once() {
    let server = Server::start(&[PRIVATE, "--webhook-timeout", "2s"]);
    let receiver = Receiver::that(Act::After(Duration::from_millis(400), Box::new(Act::Status(200))));
    let organization = server.organization();
    hook(&organization, &receiver);
    many_events(&organization, 60);
    let seen = receiver.wait_for(60);
    let most = most_at_once(&seen);
    assert!(most <= 10, "{most} at once, each a fifth of the time-out");
}

#[test]
fn attempts_in_flight_at_the_first_failure_are_at_most_10_of_the_20_that_disable() {
    const HEALTHY: usize = 300;
    let server = with_schedule("20ms,20ms,20ms,20ms,20ms");
    let organization = server.organization();
    // Goes away under full load: what is in flight then fails a while later, all at once.
    let receiver = Receiver::with(|number, _| match number {
        0..HEALTHY => in_a_while(200),
        _ => Act::After(Duration::from_millis(1500), Box::new(Act::Status(503))),
    });
    let hook = hook(&organization, &receiver);
    act(&server, &hook, "disable", &Value::Null).ok();
    many_events(&organization, HEALTHY + 150);
    act(&server, &hook, "enable", &Value::Null).ok();
    let state = wait_for_state(&server, &hook, "disabled", |state| state["status"] == "disabled");
    assert_eq!(state["failures_in_a_row"], 20);
    let seen = receiver.seen();
    let failed = &seen[HEALTHY..];
    let first_failure = failed.iter().filter_map(|one| one.ended).min().expect("one failed");
    let (in_flight, probes): (Vec<&Seen>, Vec<&Seen>) = failed.iter().partition(|one| one.began < first_failure);
    assert!(in_flight.len() >= 30, "only {} were in flight", in_flight.len());
    assert!(probes.len() >= 10, "{} in flight and {} probes", in_flight.len(), probes.len());
    for pair in probes.windows(2).rev().take(9) {
        assert!(pair[1].began >= pair[0].ended.expect("it ended"), "two probes at once: {pair:?}");
    }
}
