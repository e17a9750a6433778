//! Sending again what is stored: one event, or all that did not arrive since a time (decisions, Webhooks).

use super::{
    Hook, PRIVATE, act, hook, hook_at, many_events, observed, one_event, quiet_while, usual, wait_for_deliveries,
    wait_for_state, with_schedule,
};
use crate::support::{
    Organization, Reply, Server,
    receiver::{Act, Receiver, Seen},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn resend(organization: &Organization, event: &str, body: &Value) -> Reply {
    organization.server.admin("POST", &format!("/admin/v1/events/{event}/resend"), body)
}

fn ids(seen: &[Seen]) -> BTreeSet<String> {
    seen.iter().map(|one| one.event().to_owned()).collect()
}

#[test]
fn an_event_is_resent_to_all_endpoints_that_want_it_with_the_same_id_and_bytes() {
    let (organization, receivers) = (usual().organization(), [(); 3].map(|()| Receiver::start()));
    hook(&organization, &receivers[0]);
    hook(&organization, &receivers[1]);
    hook_at(&organization, &receivers[2].url(), json!({"events": ["lead.received"]}));
    one_event(&organization);
    let first = receivers[0].wait_for(1).remove(0);
    let made = resend(&organization, first.event(), &Value::Null).ok();
    assert_eq!(made["data"].as_array().map(Vec::len), Some(2), "{made}");
    for receiver in &receivers[..2] {
        let seen = receiver.wait_for(2);
        assert_eq!((seen[1].event(), &seen[1].body), (first.event(), &first.body));
    }
    quiet_while();
    assert_eq!(receivers.each_ref().map(Receiver::count), [2, 2, 0]);
    assert_eq!(observed(&organization, "events", "").len(), 1, "resending makes no event");
}

#[test]
fn an_event_is_resent_to_one_endpoint() {
    let (organization, receivers) = (usual().organization(), [(); 2].map(|()| Receiver::start()));
    let hooks = receivers.each_ref().map(|receiver| hook(&organization, receiver));
    one_event(&organization);
    receivers.iter().for_each(|receiver| drop(receiver.wait_for(1)));
    let event = receivers[0].seen()[0].event().to_owned();
    let made = resend(&organization, &event, &json!({"endpoint_id": hooks[1].id})).ok();
    assert_eq!(made["data"][0]["endpoint_id"], hooks[1].id);
    receivers[1].wait_for(2);
    quiet_while();
    assert_eq!(receivers.each_ref().map(Receiver::count), [1, 2]);
}

#[test]
fn resending_names_the_endpoints_that_are_disabled() {
    let (organization, receivers) = (usual().organization(), [(); 2].map(|()| Receiver::start()));
    let hooks = receivers.each_ref().map(|receiver| hook(&organization, receiver));
    one_event(&organization);
    let event = receivers.each_ref().map(|receiver| receiver.wait_for(1).remove(0))[0].event().to_owned();
    assert_eq!(resend(&organization, &event, &Value::Null).ok()["disabled_endpoint_ids"], json!([]));
    act(organization.server, &hooks[1], "disable", &json!({})).ok();
    let made = resend(&organization, &event, &Value::Null).ok();
    assert_eq!(
        (&made["disabled_endpoint_ids"], made["data"].as_array().map(Vec::len)),
        (&json!([hooks[1].id]), Some(2))
    );
}

#[test]
fn an_event_is_never_resent_to_an_endpoint_of_another_organization() {
    let (ours, theirs) = (usual().organization(), usual().organization());
    let (our_receiver, their_receiver) = (Receiver::start(), Receiver::start());
    hook(&ours, &our_receiver);
    let foreign = hook(&theirs, &their_receiver);
    one_event(&ours);
    let event = our_receiver.wait_for(1)[0].event().to_owned();
    for id in [foreign.id.as_str(), "0190d0f2-7c3a-7cc0-8000-000000000000", "x"] {
        let refused = resend(&ours, &event, &json!({"endpoint_id": id}));
        assert_eq!(refused.bad_fields(), [("endpoint_id".to_owned(), "resource_missing".to_owned())]);
    }
    for id in ["0190d0f2-7c3a-7cc0-8000-000000000000", "x", ours.id.as_str()] {
        resend(&ours, id, &Value::Null).error(404, "invalid_request_error", "resource_missing");
    }
    quiet_while();
    assert_eq!((our_receiver.count(), their_receiver.count()), (1, 0));
}

#[test]
fn a_failed_delivery_can_be_resent_and_has_its_attempts_anew() {
    let server = with_schedule("10ms");
    let (organization, receiver) = (server.organization(), Receiver::that(Act::Status(500)));
    let hook = hook(&organization, &receiver);
    one_event(&organization);
    let failed = wait_for_deliveries(&organization, &hook, 1, "failed").remove(0);
    resend(&organization, failed["event_id"].as_str().expect("an id"), &Value::Null).ok();
    let both = wait_for_deliveries(&organization, &hook, 2, "failed");
    assert!(both.iter().all(|one| one["attempts"] == 2 && one["event_id"] == failed["event_id"]), "{both:?}");
    assert_eq!(receiver.count(), 4);
}

/// Calls `recover` until it says that there is no more; gives how many events were examined and resent, and the calls.
fn recover(server: &Server, hook: &Hook, since: &str) -> (u64, u64, usize) {
    let (mut examined, mut resent, mut calls, mut cursor) = (0, 0, 0, Value::Null);
    loop {
        let mut body = json!({"since": since});
        if !cursor.is_null() {
            body["starting_after"] = cursor;
        }
        let page = act(server, hook, "recover", &body).ok();
        examined += page["examined"].as_u64().expect("a number");
        resent += page["resent"].as_u64().expect("a number");
        calls += 1;
        assert_eq!(page["has_more"], json!(page["next_cursor"].is_string()), "{page}");
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            return (examined, resent, calls);
        }
    }
}

#[test]
fn recovering_resends_only_what_did_not_arrive() {
    let server = with_schedule("10ms");
    let organization = server.organization();
    let bad = |seen: &Seen| seen.json()["data"]["full_name"].as_str().is_some_and(|name| name.starts_with("Bad"));
    let receiver = Receiver::with(move |_, seen| Act::Status(if bad(seen) { 500 } else { 200 }));
    let hook = hook(&organization, &receiver);
    let names = ["Good 1", "Bad 1", "Good 2", "Bad 2", "Bad 3", "Good 3"];
    for (number, name) in names.iter().enumerate() {
        organization.post("/v1/customers", &json!({"full_name": name})).ok();
        wait_for_state(&server, &hook, "the end of its delivery", |_| {
            let all = observed(&organization, "deliveries", "");
            all.len() > number && all.iter().all(|one| one["status"] != "pending")
        });
    }
    let lost: BTreeSet<String> = ids(&receiver.seen().into_iter().filter(bad).collect::<Vec<_>>());
    let before = receiver.count();
    receiver.now_does(Act::Status(200));
    assert_eq!(recover(&server, &hook, "2020-01-01T00:00:00Z"), (6, 3, 1));
    let seen = receiver.wait_for(before + 3);
    assert_eq!(ids(&seen[before..]), lost);
    quiet_while();
    assert_eq!(recover(&server, &hook, "2020-01-01T00:00:00Z"), (6, 0, 1), "what has arrived is not resent again");
    assert_eq!(receiver.count(), before + 3);
}

#[test]
fn recovering_takes_in_what_happened_before_there_was_an_endpoint_and_respects_since_and_the_filter() {
    let organization = usual().organization();
    many_events(&organization, 2);
    std::thread::sleep(std::time::Duration::from_millis(20));
    let second = organization.post("/v1/leads", &json!({})).ok()["created_at"].as_str().expect("a time").to_owned();
    one_event(&organization);
    let (all, leads) = (Receiver::start(), Receiver::start());
    let hooks = [hook(&organization, &all), hook_at(&organization, &leads.url(), json!({"events": ["lead.received"]}))];
    assert_eq!(recover(usual(), &hooks[0], &second), (2, 2, 1), "the lead and what followed it");
    all.wait_for(2);
    assert_eq!(recover(usual(), &hooks[1], "2020-01-01T00:00:00Z").1, 1);
    leads.wait_for(1);
    assert_eq!(recover(usual(), &hooks[0], "2999-01-01T00:00:00Z"), (0, 0, 1));
    quiet_while();
    assert_eq!((all.count(), leads.count()), (2, 1));
}

#[test]
fn recovering_more_than_a_page_leaves_nothing_out_and_repeats_nothing() {
    let server = Server::start(&[PRIVATE]);
    let organization = server.organization();
    many_events(&organization, 430);
    let receiver = Receiver::start();
    let hook = hook(&organization, &receiver);
    let (examined, resent, calls) = recover(&server, &hook, "2020-01-01T00:00:00Z");
    assert_eq!((examined, resent), (430, 430));
    assert!(calls > 1, "430 events are more than a page");
    let seen = receiver.wait_for(430);
    wait_for_deliveries(&organization, &hook, 430, "delivered");
    assert_eq!((ids(&seen).len(), receiver.count()), (430, 430));
}

#[test]
fn recovering_while_events_are_on_their_way_sends_none_of_them_twice() {
    let server = Server::start(&[PRIVATE]);
    let organization = server.organization();
    let receiver = Receiver::start();
    let hook = hook(&organization, &receiver);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4).map(|_| scope.spawn(|| many_events(&organization, 100))).collect();
        while writers.iter().any(|writer| !writer.is_finished()) {
            assert_eq!(recover(&server, &hook, "2020-01-01T00:00:00Z").1, 0, "all of them still arrive by themselves");
        }
    });
    wait_for_deliveries(&organization, &hook, 400, "delivered");
    quiet_while();
    assert_eq!((ids(&receiver.seen()).len(), receiver.count()), (400, 400));
}

#[test]
fn a_recovery_needs_a_time() {
    let organization = usual().organization();
    let hook = hook_at(&organization, "https://example.com/", json!({}));
    for body in [json!({}), json!({"since": "yesterday"}), json!({"since": 1}), json!({"since": null})] {
        assert_eq!(act(usual(), &hook, "recover", &body).status, 400, "{body}");
    }
    let body = json!({"since": "2026-01-01T00:00:00Z", "starting_after": "x"});
    assert_eq!(act(usual(), &hook, "recover", &body).bad_fields()[0].0, "starting_after");
}
