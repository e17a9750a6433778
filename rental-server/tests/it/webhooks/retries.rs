//! When a failed delivery is tried again (spec, Retries 2; decisions, Webhooks).

use super::{
    PRIVATE, hook, metric, observed, one_event, quiet_while, usual, wait_for, wait_for_deliveries, with_schedule,
};
use crate::support::{
    Organization, Server,
    receiver::{Act, Receiver, Seen},
};
use rental_core::value::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

/// The server's times are whole milliseconds.
const ROUNDING: Duration = Duration::from_millis(2);

/// How long after the end of an attempt the next one came.
fn gap(pair: &[Seen]) -> Duration {
    pair[1].began.saturating_duration_since(pair[0].ended.expect("the first has ended")) + ROUNDING
}

fn millis(time: &Value) -> i64 {
    Timestamp::parse(time.as_str().expect("a time")).expect("RFC 3339").millis().try_into().expect("a time")
}

/// Waits until the organization's only delivery was tried, and gives it.
#[track_caller]
fn tried(organization: &Organization) -> Value {
    let look = || observed(organization, "deliveries", "").pop();
    wait_for("an attempt", || look().filter(|one| one["attempts"] != 0), || format!("{:?}", look()))
}

#[test]
fn five_retries_follow_the_first_attempt_and_then_the_delivery_has_failed() {
    let delays = [100, 150, 200, 250, 300];
    let server = with_schedule("100ms,150ms,200ms,250ms,300ms");
    let (organization, receiver) = (server.organization(), Receiver::that(Act::Status(500)));
    let hook = hook(&organization, &receiver);
    one_event(&organization);
    let delivery = wait_for_deliveries(&organization, &hook, 1, "failed").remove(0);
    assert_eq!((&delivery["attempts"], &delivery["next_attempt_at"]), (&json!(6), &Value::Null));
    assert_eq!(delivery["log"].as_array().map(Vec::len), Some(6));
    quiet_while();
    let seen = receiver.seen();
    assert_eq!(seen.len(), 6);
    for (pair, delay) in seen.windows(2).zip(delays) {
        assert!(gap(pair) >= Duration::from_millis(delay), "{:?} is less than {delay} ms", gap(pair));
        assert_eq!((pair[0].event(), &pair[0].body), (pair[1].event(), &pair[1].body));
    }
}

#[test]
fn a_success_ends_the_retries() {
    let server = with_schedule("20ms,20ms,20ms,20ms,20ms");
    let organization = server.organization();
    let receiver = Receiver::with(|number, _| Act::Status(if number < 5 { 500 } else { 201 }));
    let hook = hook(&organization, &receiver);
    one_event(&organization);
    let delivery = wait_for_deliveries(&organization, &hook, 1, "delivered").remove(0);
    assert_eq!((&delivery["attempts"], &delivery["last_response_status"]), (&json!(6), &json!(201)));
    quiet_while();
    assert_eq!(receiver.count(), 6);
    let delay = |what: &str| metric(&server, &format!("rental_webhook_delivery_delay_seconds_{what}"));
    assert_eq!(delay("count"), 1.0, "attempts that are refused deliver nothing");
    assert!(delay("sum") >= 0.09, "{}: the retries count", delay("sum"));
}

#[test]
fn the_usual_first_retry_is_30_seconds_after_the_failed_attempt() {
    let (organization, receiver) = (usual().organization(), Receiver::that(Act::Status(500)));
    hook(&organization, &receiver);
    one_event(&organization);
    let delivery = tried(&organization);
    let attempt = &delivery["log"][0];
    let ended = millis(&attempt["at"]) + attempt["duration_ms"].as_i64().expect("a number");
    let wait = millis(&delivery["next_attempt_at"]) - ended;
    assert!((29_990..40_000).contains(&wait), "{wait} ms: {delivery}");
    assert_eq!(delivery["status"], "pending");
}

#[test]
fn retries_wait_for_their_time_over_a_restart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let flags = [PRIVATE, "--webhook-retry-schedule", "1500ms"];
    let receiver = Receiver::with(|number, _| Act::Status(if number == 0 { 500 } else { 200 }));
    let first = Server::start_in(directory.path(), &flags);
    let organization = first.organization();
    hook(&organization, &receiver);
    one_event(&organization);
    tried(&organization);
    first.signal("KILL");
    first.wait_until_gone();
    let _second = Server::start_in(directory.path(), &flags);
    let seen = receiver.wait_for(2);
    assert!(gap(&seen) >= Duration::from_millis(1500), "{:?}", gap(&seen));
    assert_eq!((seen[0].event(), &seen[0].body), (seen[1].event(), &seen[1].body));
}

#[test]
fn retry_after_delays_a_retry() {
    let server = with_schedule("50ms,50ms");
    for status in [429, 503] {
        let organization = server.organization();
        let receiver = Receiver::with(move |number, _| match number {
            0 => Act::header(status, "Retry-After: 2"),
            _ => Act::Status(200),
        });
        hook(&organization, &receiver);
        one_event(&organization);
        let seen = receiver.wait_for(2);
        assert!(gap(&seen) >= Duration::from_secs(2), "{status}: {:?}", gap(&seen));
    }
}

#[test]
fn retry_after_never_hastens_a_retry() {
    // Longer than the second for which an endpoint is left alone after a failure, which would hide it.
    let server = with_schedule("1800ms,1800ms");
    let values = ["0", "1", "-1", "soon", "", "0.1", "Thu, 01 Jan 1970 00:00:00 GMT"];
    let receivers = values.map(|value| {
        let organization = server.organization();
        let line = format!("Retry-After: {value}");
        let receiver = Receiver::with(move |number, _| match number {
            0 => Act::header(503, &line),
            _ => Act::Status(200),
        });
        hook(&organization, &receiver);
        one_event(&organization);
        receiver
    });
    for (receiver, value) in receivers.iter().zip(values) {
        let seen = receiver.wait_for(2);
        assert!(gap(&seen) >= Duration::from_millis(1800), "`{value}`: {:?}", gap(&seen));
    }
}

#[test]
fn no_retry_after_puts_a_retry_off_for_more_than_a_day() {
    for value in ["99999999", "Sun, 06 Nov 2095 08:00:00 GMT"] {
        let answer = Act::header(503, &format!("Retry-After: {value}"));
        let (organization, receiver) = (usual().organization(), Receiver::that(answer));
        hook(&organization, &receiver);
        one_event(&organization);
        let delivery = tried(&organization);
        let wait = millis(&delivery["next_attempt_at"]) - millis(&delivery["created_at"]);
        assert!((24 * 3_600_000..=25 * 3_600_000).contains(&wait), "{value}: {wait} ms");
    }
}

#[test]
fn every_2xx_is_a_success() {
    let organization = usual().organization();
    for status in [200, 201, 202, 204, 226, 299] {
        let receiver = Receiver::that(Act::Status(status));
        let hook = hook(&organization, &receiver);
        one_event(&organization);
        let delivery = wait_for_deliveries(&organization, &hook, 1, "delivered").remove(0);
        assert_eq!((&delivery["attempts"], &delivery["last_response_status"]), (&json!(1), &json!(status)));
        super::act(usual(), &hook, "disable", &Value::Null).ok();
    }
}

#[test]
fn a_new_event_does_not_wait_for_the_retry_of_an_old_one() {
    let server = with_schedule("1h");
    let organization = server.organization();
    let receiver = Receiver::with(|number, _| Act::Status(if number == 0 { 500 } else { 200 }));
    hook(&organization, &receiver);
    one_event(&organization);
    receiver.wait_for(1);
    one_event(&organization);
    let seen = receiver.wait_for(2);
    assert_ne!(seen[0].event(), seen[1].event());
}
