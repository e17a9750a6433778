//! GET /v1/events/{id}

use crate::support::{Server, rules};
use serde_json::json;

#[test]
fn one_event_is_what_the_list_shows_and_of_its_organization_alone() {
    let [organization, other] = [Server::shared().organization(), Server::shared().organization()];
    organization.vehicle(json!({}));
    let event = rules::walk(&organization, "events", "", 10)[0].clone();
    let path = format!("/v1/events/{}", event["id"].as_str().unwrap());
    assert_eq!(organization.get(&path).ok(), event);
    other.get(&path).error(404, "invalid_request_error", "resource_missing");
}
