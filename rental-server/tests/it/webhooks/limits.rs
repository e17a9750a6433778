//! What endpoints take and refuse, and how many there are (decisions, Webhooks and Operators).

use super::{Hook, hook, hook_at, one_event, quiet_while, state, usual};
use crate::support::{Reply, receiver::Receiver};
use serde_json::{Value, json};

fn create(body: &Value) -> Reply {
    usual().admin("POST", "/admin/v1/webhook_endpoints", body)
}

fn change(hook: &Hook, body: &Value) -> Reply {
    usual().admin("PATCH", &format!("/admin/v1/webhook_endpoints/{}", hook.id), body)
}

#[test]
fn an_organization_has_at_most_50_endpoints() {
    let (organization, other) = (usual().organization(), usual().organization());
    let body = |id: &str| json!({"organization_id": id, "url": "https://example.com/"});
    let made: Vec<String> = (0..50).map(|_| create(&body(&organization.id)).id()).collect();
    let refused = create(&body(&organization.id));
    assert_eq!(refused.status, 409, "{}", refused.text());
    create(&body(&other.id)).ok();
    usual().admin("DELETE", &format!("/admin/v1/webhook_endpoints/{}", made[7]), &Value::Null).ok();
    create(&body(&organization.id)).ok();
}

#[test]
fn at_most_50_endpoints_also_when_many_are_made_at_once() {
    let organization = usual().organization();
    let body = json!({"organization_id": organization.id, "url": "https://example.com/"});
    (0..44).for_each(|_| drop(create(&body).ok()));
    let made = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..16).map(|_| scope.spawn(|| create(&body).status)).collect();
        tries.into_iter().map(|one| one.join().unwrap()).filter(|status| *status == 200).count()
    });
    let path = format!("/admin/v1/webhook_endpoints?limit=100&organization={}", organization.id);
    let listed = usual().admin("GET", &path, &Value::Null).ok()["data"].as_array().map(Vec::len);
    assert_eq!((made, listed), (6, Some(50)));
}

#[test]
fn an_unknown_event_type_is_refused_with_the_one_that_was_meant() {
    let organization = usual().organization();
    let hook = hook_at(&organization, "https://example.com/", json!({"events": ["rental.created"]}));
    for (name, meant) in [
        ("rental.create", "rental.created"),
        ("customer.udpated", "customer.updated"),
        ("toll.attach", "toll.attached"),
    ] {
        let body = json!({"organization_id": organization.id, "url": "https://example.com/", "events": [name]});
        for reply in [create(&body), change(&hook, &json!({"events": ["rental.created", name]}))] {
            assert_eq!(reply.bad_fields(), [("events".to_owned(), "parameter_invalid".to_owned())]);
            let message = reply.json()["error"]["message"].as_str().expect("text").to_owned();
            assert!(message.contains(name) && message.contains(&format!("`{meant}`")), "{message}");
        }
    }
    for events in [json!([]), json!(["*"]), json!("rental.created"), json!([1]), json!({})] {
        assert_eq!(change(&hook, &json!({"events": events})).status, 400, "{events}");
    }
    assert_eq!(state(usual(), &hook)["events"], json!(["rental.created"]));
}

#[test]
fn an_endpoint_belongs_to_an_organization_that_exists_and_stays_there() {
    let (organization, other) = (usual().organization(), usual().organization());
    for id in ["0190d0f2-7c3a-7cc0-8000-000000000000", "x", ""] {
        let reply = create(&json!({"organization_id": id, "url": "https://example.com/"}));
        assert_eq!(reply.bad_fields()[0].0, "organization_id", "{id}");
    }
    let hook = hook_at(&organization, "https://example.com/", json!({}));
    assert_eq!(change(&hook, &json!({"organization_id": other.id})).status, 400);
    for name in ["status", "secret", "failures_in_a_row", "disabled_reason"] {
        assert_eq!(change(&hook, &json!({name: "enabled"})).status, 400, "{name} is the server's");
    }
    assert_eq!(state(usual(), &hook)["organization_id"], organization.id);
}

#[test]
fn a_change_of_url_and_events_counts_from_the_next_event_on() {
    let (organization, old, new) = (usual().organization(), Receiver::start(), Receiver::start());
    let hook = hook(&organization, &old);
    one_event(&organization);
    old.wait_for(1);
    change(&hook, &json!({"url": new.url(), "events": ["lead.received"]})).ok();
    one_event(&organization);
    organization.post("/v1/leads", &json!({})).ok();
    assert_eq!(new.wait_for(1)[0].kind(), "lead.received");
    change(&hook, &json!({"events": null})).ok();
    one_event(&organization);
    assert_eq!(new.wait_for(2)[1].kind(), "customer.created");
    quiet_while();
    assert_eq!((old.count(), new.count()), (1, 2));
}

#[test]
fn enabling_and_disabling_twice_is_the_same_as_once() {
    let organization = usual().organization();
    let hook = hook_at(&organization, "https://example.com/", json!({}));
    for (word, status) in [("disable", "disabled"), ("enable", "enabled")] {
        let first = super::act(usual(), &hook, word, &Value::Null).ok();
        let again = super::act(usual(), &hook, word, &Value::Null).ok();
        assert_eq!((&first["status"], &again), (&json!(status), &first));
        assert_eq!(first["disabled_reason"].is_string(), status == "disabled", "{first}");
    }
}

#[test]
fn an_unknown_endpoint_is_a_404_to_every_action() {
    let (organization, hook) =
        (usual().organization(), Hook { id: "0190d0f2-7c3a-7cc0-8000-000000000000".into(), secret: String::new() });
    for id in [hook.id.as_str(), organization.id.as_str(), "x"] {
        let path = format!("/admin/v1/webhook_endpoints/{id}");
        let mut replies = vec![
            usual().admin("GET", &path, &Value::Null),
            usual().admin("DELETE", &path, &Value::Null),
            usual().admin("PATCH", &path, &json!({"url": "https://example.com/"})),
            usual().admin("POST", &format!("{path}/recover"), &json!({"since": "2026-01-01T00:00:00Z"})),
        ];
        for word in ["enable", "disable", "test", "rotate_secret"] {
            replies.push(usual().admin("POST", &format!("{path}/{word}"), &Value::Null));
        }
        for reply in replies {
            reply.error(404, "invalid_request_error", "resource_missing");
        }
    }
}
