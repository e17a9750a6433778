//! GET /v1/events

use crate::support::{Server, rules};
use serde_json::{Value, json};

#[test]
fn an_organization_reads_its_own_events_oldest_first() {
    let [organization, other] = [Server::shared().organization(), Server::shared().organization()];
    let vehicle = organization.vehicle(json!({}));
    other.vehicle(json!({}));
    organization.patch(&format!("/v1/vehicles/{vehicle}"), &json!({"color": "Red"})).ok();
    organization.customer(json!({}));
    let events = rules::walk(&organization, "events", "", 2);
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["vehicle.created", "vehicle.updated", "customer.created"]);
    assert_eq!((&events[1]["data"]["color"], &events[1]["data"]["id"]), (&json!("Red"), &json!(vehicle)));
    assert!(events.iter().all(|event| event["object"] == "event" && event["api_version"] == "2026-05-05"));
}

#[test]
fn a_walk_shows_what_is_added_while_it_goes_on_and_can_be_continued_later() {
    let organization = Server::shared().organization();
    organization.vehicle(json!({}));
    organization.vehicle(json!({}));
    let first = rules::page(&organization, "/v1/events?limit=1");
    let last = |page: &Value| page["data"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_owned();
    assert_eq!(first["next_cursor"], json!(last(&first)));
    organization.customer(json!({}));
    let rest = rules::page(&organization, &format!("/v1/events?starting_after={}", last(&first)));
    assert_eq!(rest["data"].as_array().unwrap().len(), 2);
    organization.post("/v1/leads", &json!({})).ok();
    let later = rules::page(&organization, &format!("/v1/events?starting_after={}", last(&rest)));
    assert_eq!(later["data"][0]["type"], "lead.received");
    assert_eq!(later["data"].as_array().unwrap().len(), 1);
}

#[test]
fn events_are_selected_by_type_and_time() {
    let organization = Server::shared().organization();
    let vehicle = organization.get(&format!("/v1/vehicles/{}", organization.vehicle(json!({})))).ok();
    std::thread::sleep(std::time::Duration::from_millis(5));
    let customer = organization.get(&format!("/v1/customers/{}", organization.customer(json!({})))).ok();
    let types = |query: &str| -> Vec<String> {
        let events = rules::walk(&organization, "events", query, 10);
        events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(types("&type=customer.created"), ["customer.created"]);
    let at = customer["created_at"].as_str().unwrap();
    assert_ne!(vehicle["created_at"], customer["created_at"]);
    assert_eq!(types(&format!("&created[gte]={at}")), ["customer.created"]);
    assert_eq!(types(&format!("&created[lt]={at}")), ["vehicle.created"]);
    assert_eq!(types(&format!("&created[lt]={at}&type=customer.created")), [""; 0]);
    let found = organization.get("/v1/events?type=vehicle.crated").bad_fields();
    assert_eq!(found, [("type".to_owned(), "parameter_invalid".to_owned())]);
}
