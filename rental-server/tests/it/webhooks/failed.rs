//! The list of failed deliveries, whatever made them fail.

use super::{
    Hook, act, hook, hook_at, observed, one_event, usual, wait_for, wait_for_deliveries, wait_for_state, with_schedule,
};
use crate::support::{
    Organization,
    receiver::{Act, Receiver},
    rules,
};
use serde_json::{Value, json};

fn failed(organization: &Organization, query: &str) -> Vec<String> {
    rules::ids(&observed(organization, "deliveries", &format!("&status=failed{query}")))
}

#[track_caller]
fn wait_for_failed(organization: &Organization, query: &str, count: usize) -> Vec<Value> {
    let look = || observed(organization, "deliveries", &format!("&status=failed{query}"));
    let found = wait_for(
        &format!("{count} failed deliveries"),
        || Some(look()).filter(|found| found.len() >= count),
        || format!("{:?}", look()),
    );
    assert!(found.len() == count && found.iter().all(|one| one["status"] == "failed"), "{found:?}");
    found
}

/// An endpoint whose deliveries wait.
fn waiting_hook(organization: &Organization) -> Hook {
    let hook = hook(organization, &Receiver::start());
    act(organization.server, &hook, "disable", &json!({})).ok();
    hook
}

#[test]
fn failed_deliveries_are_listed_alone_and_with_their_endpoint() {
    let server = with_schedule("10ms");
    let (ours, theirs) = (server.organization(), server.organization());
    let [refusing, also_refusing, accepting] =
        [Receiver::that(Act::Status(500)), Receiver::that(Act::Status(500)), Receiver::start()];
    let hooks = [&refusing, &also_refusing].map(|receiver| hook(&ours, receiver));
    let accepted = hook(&ours, &accepting);
    let waiting = waiting_hook(&ours);
    hook(&theirs, &refusing);
    assert!(failed(&ours, "").is_empty());
    for _ in 0..2 {
        one_event(&ours);
    }
    one_event(&theirs);
    let each: Vec<Vec<Value>> = hooks.iter().map(|hook| wait_for_deliveries(&ours, hook, 2, "failed")).collect();
    wait_for_deliveries(&ours, &accepted, 2, "delivered");
    wait_for_deliveries(&ours, &waiting, 2, "pending");
    for (hook, expected) in hooks.iter().zip(&each) {
        assert_eq!(failed(&ours, &format!("&endpoint={}", hook.id)), rules::ids(expected));
    }
    assert!(failed(&ours, &format!("&endpoint={}", accepted.id)).is_empty());
    let mut all: Vec<String> = each.iter().flat_map(|one| rules::ids(one)).collect();
    all.sort_unstable_by(|one, other| other.cmp(one));
    assert_eq!(failed(&ours, ""), all, "newest first, and none of another organization");
    wait_for_failed(&theirs, "", 1);
}

#[test]
fn deliveries_to_a_deleted_endpoint_are_listed_as_failed() {
    let organization = usual().organization();
    let hook = waiting_hook(&organization);
    one_event(&organization);
    wait_for_deliveries(&organization, &hook, 1, "pending");
    organization.server.admin("DELETE", &format!("/admin/v1/webhook_endpoints/{}", hook.id), &Value::Null).ok();
    let found = wait_for_failed(&organization, &format!("&endpoint={}", hook.id), 1);
    assert_eq!(found[0]["last_error"], "endpoint_deleted");
}

#[test]
fn only_failed_deliveries_can_be_listed_by_status() {
    let organization = usual().organization();
    let path = format!("/admin/v1/organizations/{}/deliveries", organization.id);
    let ask = |query: &str| organization.server.admin("GET", &format!("{path}?{query}"), &Value::Null);
    for word in ["pending", "delivered", "Failed", "faild"] {
        let refused = ask(&format!("status={word}"));
        assert_eq!(refused.bad_fields(), [("status".to_owned(), "parameter_invalid".to_owned())], "{word}");
        assert!(refused.text().contains("must be failed"), "{}", refused.text());
    }
    let event = ask("status=failed&event=0190d0f2-7c3a-7cc0-8000-000000000000");
    assert_eq!(event.status, 400, "no index serves both: {}", event.text());
}

#[test]
fn a_resent_delivery_that_arrives_leaves_the_failed_one_in_the_list() {
    let server = with_schedule("10ms");
    let (organization, receiver) = (server.organization(), Receiver::that(Act::Status(500)));
    let hook = hook_at(&organization, &receiver.url(), json!({}));
    one_event(&organization);
    let first = wait_for_failed(&organization, "", 1).remove(0);
    receiver.now_does(Act::Status(200));
    let path = format!("/admin/v1/events/{}/resend", first["event_id"].as_str().expect("an id"));
    server.admin("POST", &path, &Value::Null).ok();
    wait_for_state(&server, &hook, "a success", |state| state["failures_in_a_row"] == 0);
    assert_eq!(failed(&organization, ""), [first["id"].as_str().expect("an id")]);
}
