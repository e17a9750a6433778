//! What operators see and do: test deliveries, the log of attempts, filters, deletion, metrics (decisions, Operators).

use super::{
    Hook, act, hook, hook_at, many_events, metric, observed, one_event, quiet_while, state, usual, wait_for,
    wait_for_deliveries, with_schedule,
};
use crate::support::{
    Organization,
    receiver::{Act, Receiver},
};
use rental_core::value::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn a_test_delivery_is_signed_and_tells_how_it_ended() {
    let (organization, receiver) = (usual().organization(), Receiver::that(Act::body(202, b"thanks")));
    let hook = hook_at(&organization, &receiver.url(), json!({"events": ["toll.attached"]}));
    let told = act(usual(), &hook, "test", &Value::Null).ok();
    assert_eq!((&told["delivered"], &told["status"]), (&json!(true), &json!(202)), "{told}");
    assert_eq!((&told["response"], &told["error"]), (&json!("thanks"), &Value::Null), "{told}");
    let seen = receiver.wait_for(1).remove(0);
    assert_eq!(seen.kind(), "toll.attached", "a type that the endpoint wants");
    assert_eq!((&seen.json()["type"], &seen.json()["data"]["object"]), (&json!("toll.attached"), &json!("toll")));
    assert_eq!(seen.header("Service-Signature"), super::signed(&seen, &[&hook.secret]));
    assert_eq!(observed(&organization, "events", "").len() + observed(&organization, "deliveries", "").len(), 0);
}

#[test]
fn a_failed_test_delivery_is_told_and_counts_for_nothing() {
    let (organization, receiver) = (usual().organization(), Receiver::that(Act::body(500, b"broken")));
    let hook = hook(&organization, &receiver);
    for _ in 0..25 {
        let told = act(usual(), &hook, "test", &Value::Null).ok();
        assert_eq!((&told["delivered"], &told["status"]), (&json!(false), &json!(500)), "{told}");
        assert_eq!(told["response"], "broken");
    }
    let state = state(usual(), &hook);
    assert_eq!((&state["status"], &state["failures_in_a_row"]), (&json!("enabled"), &json!(0)));
    assert_eq!(receiver.count(), 25, "a test is not repeated");
}

fn delivery_of(organization: &Organization, hook: &Hook) -> Value {
    observed(organization, "deliveries", &format!("&endpoint={}", hook.id)).pop().expect("a delivery")
}

#[test]
fn the_log_has_time_duration_status_and_the_first_kilobyte_of_each_answer() {
    let server = with_schedule("20ms,20ms,20ms");
    let organization = server.organization();
    let long = [b"a".repeat(1024), b"b".repeat(5000)].concat();
    let receiver = Receiver::with(move |number, _| match number {
        0 => Act::body(500, &long),
        1 => Act::Raw(b"garbage\r\n\r\n".to_vec()),
        2 => Act::After(Duration::from_millis(60), Box::new(Act::body(404, "nö \u{0}\"\\".as_bytes()))),
        _ => Act::Status(204),
    });
    let hook = hook(&organization, &receiver);
    one_event(&organization);
    wait_for_deliveries(&organization, &hook, 1, "delivered");
    let delivery = delivery_of(&organization, &hook);
    let log = delivery["log"].as_array().expect("a log");
    let expected = [
        (json!(500), Value::Null, json!("a".repeat(1024))),
        (Value::Null, json!("bad_answer"), Value::Null),
        (json!(404), Value::Null, json!("nö \u{0}\"\\")),
        (json!(204), Value::Null, json!("")),
    ];
    assert_eq!(log.len(), 4);
    for (entry, (status, error, response)) in log.iter().zip(expected) {
        assert_eq!((&entry["status"], &entry["error"], &entry["response"]), (&status, &error, &response));
    }
    assert!(log[2]["duration_ms"].as_u64() >= Some(60), "{}", log[2]);
    let times: Vec<Timestamp> =
        log.iter().map(|entry| Timestamp::parse(entry["at"].as_str().expect("text")).expect("a time")).collect();
    assert!(times.windows(2).all(|pair| pair[0].millis() + 20 <= pair[1].millis()), "{times:?}");
    assert_eq!((&delivery["attempts"], &delivery["last_response_status"]), (&json!(4), &json!(204)));
}

#[test]
fn deliveries_are_listed_by_endpoint_by_event_and_by_both() {
    let (organization, receivers) = (usual().organization(), [(); 2].map(|()| Receiver::start()));
    let hooks = receivers.each_ref().map(|receiver| hook(&organization, receiver));
    many_events(&organization, 3);
    hooks.iter().for_each(|hook| drop(wait_for_deliveries(&organization, hook, 3, "delivered")));
    let event = receivers[0].seen()[1].event().to_owned();
    let ends = |query: &str| -> Vec<(Value, Value)> {
        let found = observed(&organization, "deliveries", query);
        found.iter().map(|one| (one["endpoint_id"].clone(), one["event_id"].clone())).collect()
    };
    assert_eq!(ends("").len(), 6);
    let by_endpoint = ends(&format!("&endpoint={}", hooks[0].id));
    assert!(by_endpoint.len() == 3 && by_endpoint.iter().all(|one| one.0 == hooks[0].id), "{by_endpoint:?}");
    let by_event = ends(&format!("&event={event}"));
    assert!(by_event.len() == 2 && by_event.iter().all(|one| one.1 == event), "{by_event:?}");
    let by_both = ends(&format!("&event={event}&endpoint={}", hooks[1].id));
    assert_eq!(by_both, [(json!(hooks[1].id), json!(event))]);
    let one = observed(&organization, "deliveries", "").remove(0);
    let path = format!("/admin/v1/deliveries/{}", one["id"].as_str().expect("an id"));
    assert_eq!(usual().admin("GET", &path, &Value::Null).ok(), one);
    let other = usual().organization();
    assert_eq!(observed(&other, "deliveries", &format!("&endpoint={}", hooks[0].id)).len(), 0, "another's");
}

#[test]
fn events_are_listed_by_type() {
    let organization = usual().organization();
    let vehicle = organization.vehicle(json!({}));
    organization.patch(&format!("/v1/vehicles/{vehicle}"), &json!({"color": "red"})).ok();
    one_event(&organization);
    assert_eq!(observed(&organization, "events", "").len(), 3);
    let found = observed(&organization, "events", "&type=vehicle.updated");
    assert_eq!(found.iter().map(|event| &event["type"]).collect::<Vec<_>>(), ["vehicle.updated"]);
}

#[test]
fn after_a_deletion_nothing_more_is_sent_and_the_endpoint_is_gone() {
    let server = with_schedule("200ms,200ms,200ms");
    let (organization, receiver, other) = (server.organization(), Receiver::that(Act::Status(500)), Receiver::start());
    let hook = hook(&organization, &receiver);
    super::hook(&organization, &other);
    one_event(&organization);
    receiver.wait_for(1);
    wait_for("a retry to wait for", || (delivery_of(&organization, &hook)["attempts"] == 1).then_some(()), String::new);
    let path = format!("/admin/v1/webhook_endpoints/{}", hook.id);
    server.admin("DELETE", &path, &Value::Null).ok();
    let before = receiver.count();
    one_event(&organization);
    other.wait_for(2);
    quiet_while();
    quiet_while();
    assert_eq!(receiver.count(), before);
    server.admin("GET", &path, &Value::Null).error(404, "invalid_request_error", "resource_missing");
    server.admin("DELETE", &path, &Value::Null).error(404, "invalid_request_error", "resource_missing");
    // What never arrives any more is not shown as if it were still on its way.
    let left = delivery_of(&organization, &hook);
    assert!(left["next_attempt_at"].is_null(), "there is no next attempt: {left}");
}

/// A counter's value.
#[test]
fn metrics_count_attempts_by_how_they_ended_and_disabled_endpoints() {
    let server = with_schedule("10ms,10ms,10ms");
    let organization = server.organization();
    let receiver = Receiver::with(|number, _| match number {
        0 => Act::Status(500),
        // No close without a byte: such a request is sent again within its attempt.
        1 => Act::Raw(b"not HTTP\r\n\r\n".to_vec()),
        number if number < 4 => Act::Status(200),
        _ => Act::Status(404),
    });
    let hook = hook(&organization, &receiver);
    one_event(&organization);
    wait_for_deliveries(&organization, &hook, 1, "delivered");
    one_event(&organization);
    wait_for_deliveries(&organization, &hook, 2, "delivered");
    let attempts = |ending: &str| {
        metric(&server, &format!("rental_webhook_attempt_duration_seconds_count{{outcome=\"{ending}\"}}"))
    };
    assert_eq!([attempts("delivered"), attempts("refused"), attempts("unanswered")], [2.0, 1.0, 1.0]);
    assert_eq!(metric(&server, "rental_webhook_endpoints_disabled_total"), 0.0);
    many_events(&organization, 10);
    super::wait_for_state(&server, &hook, "disabled", |state| state["status"] == "disabled");
    wait_for(
        "the metric",
        || (metric(&server, "rental_webhook_endpoints_disabled_total") == 1.0).then_some(()),
        String::new,
    );
    assert_eq!(attempts("refused"), 21.0);
    assert!(metric(&server, "rental_webhook_attempt_duration_seconds_sum{outcome=\"refused\"}") >= 0.0);
}
