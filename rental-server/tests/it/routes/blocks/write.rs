//! POST and PATCH /v1/blocks: a block holds its vehicle like a rental (decisions, Second round).

use crate::support::{Organization, Reply, Server};
use serde_json::{Value, json};

#[track_caller]
fn block(organization: &Organization<'_>, vehicle: &str, (start, end): (&str, &str)) -> Reply {
    organization.post("/v1/blocks", &json!({"vehicle_id": vehicle, "start_date": start, "end_date": end}))
}

#[track_caller]
fn rental(organization: &Organization<'_>, vehicle: &str, (start, end): (&str, &str)) -> Reply {
    let customer = organization.customer(json!({}));
    let body = json!({
        "vehicle_id": vehicle, "customer_id": customer, "start_date": start, "end_date": end, "status": "APPROVED",
    });
    organization.post("/v1/rentals", &body)
}

/// A 409 that names what holds the vehicle, and nothing else.
#[track_caller]
fn refused(reply: &Reply, object: &str, holder: &str) {
    let error = reply.error(409, "invalid_request_error", "vehicle_unavailable");
    let other = if object == "block" { "conflicting_rental_id" } else { "conflicting_block_id" };
    assert_eq!((&error[format!("conflicting_{object}_id")], &error[other]), (&json!(holder), &Value::Null));
    assert!(error["message"].as_str().unwrap().contains(&format!("{object} {holder}")), "{error}");
}

#[test]
fn a_block_needs_a_vehicle_and_dates_and_starts_active() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    let made = block(&organization, &vehicle, ("2027-01-01", "2027-01-03")).ok();
    let expected = json!({
        "id": made["id"], "object": "block", "vehicle_id": vehicle, "start_date": "2027-01-01", "end_date": "2027-01-03",
        "reason": "other", "notes": null, "status": "active", "source": "api",
        "calendar_feed_id": null, "calendar_uid": null, "conflicts_with": null,
        "created_at": made["created_at"], "updated_at": made["updated_at"],
    });
    assert_eq!(made, expected);
    let missing = organization.post("/v1/blocks", &json!({})).bad_fields();
    let params: Vec<&str> = missing.iter().map(|(param, _)| param.as_str()).collect();
    assert_eq!(params, ["vehicle_id", "start_date", "end_date"]);
    let reply = block(&organization, &vehicle, ("2027-02-03", "2027-02-01"));
    assert_eq!(reply.bad_fields().len(), 2, "both dates are named");
    let sent =
        json!({"vehicle_id": vehicle, "start_date": "2028-01-01", "end_date": "2028-01-02", "status": "conflict"});
    assert_eq!(organization.post("/v1/blocks", &sent).bad_fields()[0].0, "status");
}

#[test]
fn a_block_over_a_rental_and_a_rental_over_a_block_are_refused_and_name_the_holder() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    let booked = rental(&organization, &vehicle, ("2027-03-10", "2027-03-15")).id();
    let blocked = block(&organization, &vehicle, ("2027-03-15", "2027-03-20")).id();
    refused(&block(&organization, &vehicle, ("2027-03-13", "2027-03-15")), "rental", &booked);
    refused(&block(&organization, &vehicle, ("2027-03-10", "2027-03-10")), "rental", &booked);
    refused(&rental(&organization, &vehicle, ("2027-03-19", "2027-03-21")), "block", &blocked);
    refused(&block(&organization, &vehicle, ("2027-01-01", "2027-03-12")), "rental", &booked);
    refused(&block(&organization, &vehicle, ("2027-03-19", "2027-03-19")), "block", &blocked);
    rental(&organization, &vehicle, ("2027-03-20", "2027-03-21")).ok();
    let moved = organization.patch(&format!("/v1/blocks/{blocked}"), &json!({"start_date": "2027-03-14"}));
    refused(&moved, "rental", &booked);
    organization.patch(&format!("/v1/blocks/{blocked}"), &json!({"notes": "kept", "end_date": "2027-03-18"})).ok();
    rental(&organization, &vehicle, ("2027-03-18", "2027-03-20")).ok();
}

#[test]
fn a_cancelled_block_frees_the_vehicle_and_cannot_return_over_a_rental() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    let id = block(&organization, &vehicle, ("2027-03-10", "2027-03-15")).id();
    let path = format!("/v1/blocks/{id}");
    organization.patch(&path, &json!({"status": "cancelled"})).ok();
    let booked = rental(&organization, &vehicle, ("2027-03-12", "2027-03-13")).id();
    refused(&organization.patch(&path, &json!({"status": "active"})), "rental", &booked);
    assert_eq!(organization.get(&path).ok()["status"], "cancelled");
    let found = organization.patch(&path, &json!({"status": "conflict"})).bad_fields();
    assert_eq!(found, [("status".to_owned(), "parameter_invalid".to_owned())]);
    organization.patch(&format!("/v1/rentals/{booked}"), &json!({"status": "CANCELLED"})).ok();
    organization.patch(&path, &json!({"status": "active"})).ok();
}

#[test]
fn an_open_policy_records_blocks_over_rentals() {
    let organization = Server::shared().organization_with(&json!({"name": "Open", "booking_policy": "open"}));
    let vehicle = organization.vehicle(json!({}));
    rental(&organization, &vehicle, ("2027-03-10", "2027-03-15")).ok();
    block(&organization, &vehicle, ("2027-03-10", "2027-03-15")).ok();
}

#[test]
fn blocks_emit_no_events() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    let id = block(&organization, &vehicle, ("2027-03-10", "2027-03-15")).id();
    organization.patch(&format!("/v1/blocks/{id}"), &json!({"status": "cancelled"})).ok();
    let events = organization.get("/v1/events").ok();
    assert_eq!(events["data"].as_array().unwrap().len(), 1, "that of the vehicle");
}
