//! Enabling all endpoints that failures disabled since a time.

use super::{act, hook, many_events, state, wait_for_state, with_schedule};
use crate::support::receiver::{Act, Receiver};
use serde_json::{Value, json};

const PATH: &str = "/admin/v1/webhook_endpoints/enable";

/// The ids of the endpoints that a reply lists.
fn ids(reply: &Value) -> Vec<&str> {
    reply["enabled"].as_array().expect("a list").iter().map(|row| row["id"].as_str().expect("an id")).collect()
}

#[test]
fn endpoints_that_failures_disabled_are_enabled_and_those_of_the_operator_are_not() {
    let server = with_schedule("20ms,20ms,20ms,20ms,20ms");
    let receiver = Receiver::that(Act::Status(500));
    let organizations = [(); 2].map(|()| server.organization());
    let failed = organizations.each_ref().map(|organization| hook(organization, &receiver));
    for (organization, hook) in organizations.iter().zip(&failed) {
        many_events(organization, 8);
        wait_for_state(&server, hook, "disabled", |state| state["status"] == "disabled");
    }
    let by_hand = hook(&organizations[0], &receiver);
    act(&server, &by_hand, "disable", &Value::Null).ok();
    let second = state(&server, &failed[1])["disabled_at"].clone();

    let late = server.admin("POST", PATH, &json!({"disabled_since": second, "dry_run": true})).ok();
    assert_eq!((ids(&late), &late["examined"]), (vec![failed[1].id.as_str()], &json!(3)));
    assert_eq!(state(&server, &failed[1])["status"], "disabled", "a dry run changes nothing");

    receiver.now_does(Act::Status(200));
    let before = receiver.count();
    let all = server.admin("POST", PATH, &json!({"disabled_since": "2020-01-01T00:00:00Z"})).ok();
    assert_eq!(ids(&all), failed.each_ref().map(|hook| hook.id.as_str()));
    assert_eq!(all["enabled"][0]["organization_id"], json!(organizations[0].id));
    assert_eq!((&all["has_more"], &all["next_cursor"]), (&json!(false), &Value::Null));
    for hook in &failed {
        let state = state(&server, hook);
        assert_eq!((&state["status"], &state["failures_in_a_row"]), (&json!("enabled"), &json!(0)));
    }
    assert_eq!(state(&server, &by_hand)["status"], "disabled");
    // What waited is sent at once.
    receiver.wait_for(before + 2);
    let again = server.admin("POST", PATH, &json!({"disabled_since": "2020-01-01T00:00:00Z"})).ok();
    assert_eq!(ids(&again), Vec::<&str>::new());
}

#[test]
fn one_request_reads_200_endpoints_and_the_cursor_goes_on() {
    let server = with_schedule("1h");
    for _ in 0..5 {
        let organization = server.organization();
        for _ in 0..41 {
            super::hook_at(&organization, "https://example.com/", json!({}));
        }
    }
    let body = json!({"disabled_since": "2020-01-01T00:00:00Z"});
    let first = server.admin("POST", PATH, &body).ok();
    assert_eq!((&first["examined"], &first["has_more"]), (&json!(200), &json!(true)));
    let mut next = body;
    next["starting_after"] = first["next_cursor"].clone();
    let second = server.admin("POST", PATH, &next).ok();
    assert_eq!((&second["examined"], &second["has_more"]), (&json!(5), &json!(false)));
}

#[test]
fn a_time_is_required_and_checked() {
    for (body, code) in [(json!({}), "parameter_missing"), (json!({"disabled_since": "soon"}), "parameter_invalid")] {
        let reply = super::usual().admin("POST", PATH, &body);
        assert_eq!(reply.bad_fields(), [("disabled_since".to_owned(), code.to_owned())]);
    }
}
