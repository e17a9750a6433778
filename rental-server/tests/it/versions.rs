//! What objects keep of the time at which they were made: the version of the API, the time zone of a rental.

use crate::support::{Organization, Server};
use serde_json::{Value, json};

const VERSION: &str = "2026-05-05";

#[track_caller]
fn is_the_servers(reply: &crate::support::Reply, field: &str) {
    assert_eq!(reply.bad_fields(), [(field.to_owned(), "parameter_unknown".to_owned())]);
    assert!(reply.text().contains("is set by the server"), "{}", reply.text());
}

#[test]
fn a_rental_keeps_the_time_zone_of_its_creation() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    let rental = |fields: Value| organization.rental(&vehicle, fields);
    let zone = |id: &str| organization.get(&format!("/v1/rentals/{id}")).ok()["time_zone"].clone();
    let before = rental(json!({}));
    let place = format!("/admin/v1/organizations/{}", organization.id);
    organization.server.admin("PATCH", &place, &json!({"time_zone": "America/Los_Angeles"})).ok();
    let after = rental(json!({}));
    assert_eq!((zone(&before), zone(&after)), (json!("America/New_York"), json!("America/Los_Angeles")));
    organization.patch(&format!("/v1/rentals/{before}"), &json!({"booking_id": "x"})).ok();
    assert_eq!(zone(&before), "America/New_York", "a change keeps it");
    let sent = json!({"time_zone": "America/Chicago"});
    is_the_servers(&organization.patch(&format!("/v1/rentals/{before}"), &sent), "time_zone");
    let customer = organization.customer(json!({}));
    let body = json!({"customer_id": customer, "vehicle_id": vehicle, "time_zone": "America/Chicago"});
    is_the_servers(&organization.post("/v1/rentals", &body), "time_zone");
}

fn endpoints(organization: &Organization<'_>) -> Vec<Value> {
    let path = format!("/admin/v1/webhook_endpoints?organization={}", organization.id);
    organization.server.admin("GET", &path, &Value::Null).ok()["data"].as_array().unwrap().clone()
}

#[test]
fn a_webhook_endpoint_keeps_the_version_of_its_creation() {
    let server = Server::shared();
    let organization = server.organization();
    let mut body = json!({"organization_id": organization.id, "url": "https://example.com/hooks"});
    let made = server.admin("POST", "/admin/v1/webhook_endpoints", &body).ok();
    assert_eq!(made["api_version"], VERSION);
    assert_eq!(endpoints(&organization)[0]["api_version"], VERSION);
    body["api_version"] = json!("2020-01-01");
    is_the_servers(&server.admin("POST", "/admin/v1/webhook_endpoints", &body), "api_version");
    let path = format!("/admin/v1/webhook_endpoints/{}", made["id"].as_str().unwrap());
    is_the_servers(&server.admin("PATCH", &path, &json!({"api_version": "2020-01-01"})), "api_version");
}

#[test]
fn an_event_says_in_which_version_its_data_is() {
    let organization = Server::shared().organization();
    let reply = organization.post("/v1/vehicles", &json!({"name": "a"}));
    let path = format!("/admin/v1/organizations/{}/events", organization.id);
    let events = organization.server.admin("GET", &path, &Value::Null);
    assert_eq!(events.ok()["data"][0]["api_version"], VERSION);
    assert_eq!(reply.header("service-version"), Some(VERSION));
    let head = format!("\"object\":\"event\",\"api_version\":\"{VERSION}\",\"type\":\"vehicle.created\",\"created\":");
    assert!(events.text().contains(&head), "{}", events.text());
}
