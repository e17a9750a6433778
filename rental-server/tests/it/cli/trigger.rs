//! `trigger`: every event type really happens.

use super::{Cli, ran, url};
use crate::support::{Organization, Server};
use rental_core::{resources::event::EVENT_TYPES, value::Timestamp};
use serde_json::{Value, json};

/// The events of an organization, newest first.
fn events(organization: &Organization<'_>) -> Vec<Value> {
    let path = format!("/admin/v1/organizations/{}/events?limit=100", organization.id);
    organization.server.admin("GET", &path, &Value::Null).ok()["data"].as_array().expect("a list").clone()
}

/// The keys that `trigger` made for an organization.
fn own_keys(organization: &Organization<'_>) -> Vec<Value> {
    let path = format!("/admin/v1/api_keys?organization={}", organization.id);
    let keys = organization.server.admin("GET", &path, &Value::Null).ok();
    let keys = keys["data"].as_array().expect("a list").iter();
    keys.filter(|key| key["name"] == "Triggered by rental-cli").cloned().collect()
}

#[test]
fn each_type_really_happens() {
    let Some(cli) = Cli::find() else { return };
    for event_spec in EVENT_TYPES {
        let (kind, object) = (event_spec.name, event_spec.object());
        let organization = Server::shared().organization();
        let ran = cli.run(organization.server, &format!("trigger {kind} --organization {} --json", organization.id));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{kind}");
        let told = ran.json();
        let recorded = events(&organization);
        let event = told["events"].as_array().unwrap().iter().find(|event| event["type"] == kind);
        let event = event.unwrap_or_else(|| panic!("{kind} is not told: {told}"));
        let found = recorded.iter().find(|recorded| recorded["id"] == event["id"]);
        let found = found.unwrap_or_else(|| panic!("{kind} did not happen"));
        assert_eq!((&found["type"], &found["data"]["object"]), (&json!(kind), &json!(object)));
        assert!(found["data"].to_string().contains("Triggered by rental-cli"), "{kind}: {found}");
        assert_eq!(told["events"].as_array().unwrap().len(), recorded.len(), "{kind}: all that happened is told");
        if object == "vehicle" {
            assert_eq!(found["data"]["daily_rate"], 50, "{kind}: a vehicle without a rate is not for rent");
        }
    }
}

#[test]
fn without_a_key_one_is_made_for_minutes_and_revoked_at_the_end() {
    let Some(cli) = Cli::find() else { return };
    let organization = Server::shared().organization();
    let ran = cli.run(organization.server, &format!("trigger lead.received --organization {}", organization.id));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let kept = "1 object stays in the organization, named \"Triggered by rental-cli\"; use an organization of its own for tests";
    assert!(ran.stderr.contains(kept), "{}", ran.stderr);
    assert!(!(ran.stdout + &ran.stderr).contains("rk_live_"), "its text is nowhere");
    let keys = own_keys(&organization);
    assert_eq!(keys.len(), 1);
    assert!(keys[0]["revoked_at"].is_string(), "{}", keys[0]);
    let time = |name: &str| Timestamp::parse(keys[0][name].as_str().unwrap()).unwrap().millis();
    assert!(time("expires_at") - time("created_at") <= 5 * 60_000 + 1000, "{}", keys[0]);
}

#[test]
fn the_key_is_revoked_after_a_failure_too() {
    let Some(cli) = Cli::find() else { return };
    let free = Server::shared().organization_with(&json!({"name": "Free", "plan": "free"}));
    let ran = cli.run(free.server, &format!("trigger vehicle.created --organization {}", free.id));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(5), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("--plan pro"), "{}", ran.stderr);
    assert!(own_keys(&free)[0]["revoked_at"].is_string());
}

#[test]
fn the_key_that_is_set_is_used_and_none_is_made() {
    let Some(cli) = Cli::find() else { return };
    let organization = Server::shared().organization();
    let words = format!("trigger toll.attached --organization {}", organization.id);
    let ran = ran(cli.command(&url(organization.server), &words).env("RENTAL_API_KEY", &organization.write));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(own_keys(&organization).len(), 0);
}

#[test]
fn a_key_of_another_organization_is_refused_before_anything_is_made() {
    let Some(cli) = Cli::find() else { return };
    let [one, other] = [Server::shared().organization(), Server::shared().organization()];
    let words = format!("trigger vehicle.created --organization {}", one.id);
    let ran = ran(cli.command(&url(one.server), &words).env("RENTAL_API_KEY", &other.write));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
    assert_eq!(events(&one).len() + events(&other).len(), 0);
}

#[test]
fn the_list_has_all_types_and_needs_no_server() {
    let Some(cli) = Cli::find() else { return };
    let ran = ran(cli.command("http://127.0.0.1:1", "trigger --list").env_remove("RENTAL_ADMIN_TOKEN"));
    assert_eq!((ran.code, ran.stdout.lines().count()), (Some(0), 1 + EVENT_TYPES.len()), "{}", ran.stderr);
    for kind in EVENT_TYPES.iter().map(|event| event.name) {
        assert!(ran.stdout.contains(&format!("\n{kind}\t")), "{kind}");
    }
}
