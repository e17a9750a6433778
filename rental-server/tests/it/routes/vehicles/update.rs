//! PATCH /v1/vehicles/{id}

use super::table;
use crate::support::{Server, rules};
use serde_json::json;

#[test]
fn the_row_of_the_specification_is_taken_as_it_stands() {
    let organization = Server::shared().organization();
    let path = format!("/v1/vehicles/{}", organization.vehicle(json!({})));
    let vehicle = organization.patch(&path, &json!({"status": "maintenance", "daily_rate": 95})).ok();
    rules::whole(&vehicle, "vehicle");
    assert_eq!((&vehicle["status"], &vehicle["daily_rate"]), (&json!("maintenance"), &json!(95)));
}

#[test]
fn any_status_may_follow_any_other() {
    let organization = Server::shared().organization();
    let path = format!("/v1/vehicles/{}", organization.vehicle(json!({})));
    let all = ["available", "rented", "maintenance", "unavailable"];
    for from in all {
        for to in all {
            organization.patch(&path, &json!({"status": from})).ok();
            assert_eq!(organization.patch(&path, &json!({"status": to})).ok()["status"], to);
        }
    }
}

#[test]
fn a_good_value_replaces_its_field_and_nothing_else() {
    table().patch_takes_every_good_value(&Server::shared().organization());
}

#[test]
fn every_bad_value_of_every_field_is_refused_and_changes_nothing() {
    table().patch_refuses_every_bad_value(&Server::shared().organization());
}

#[test]
fn null_clears_what_can_be_empty_and_is_refused_elsewhere() {
    table().patch_with_null_clears_what_can_be_empty(&Server::shared().organization());
}

#[test]
fn one_bad_field_keeps_the_good_ones_from_being_stored() {
    let organization = Server::shared().organization();
    let path = format!("/v1/vehicles/{}", organization.vehicle(json!({})));
    let before = organization.get(&path).body;
    let reply = organization.patch(&path, &json!({"color": "Red", "year": 1899, "daily_rate": "1", "wheels": 4}));
    let mut found: Vec<String> = reply.bad_fields().into_iter().map(|(param, _)| param).collect();
    found.sort();
    assert_eq!(found, ["daily_rate", "wheels", "year"]);
    assert_eq!(organization.get(&path).body, before);
}

#[test]
fn an_empty_patch_changes_nothing() {
    rules::an_empty_patch_changes_nothing("vehicles");
}

#[test]
fn an_unknown_a_malformed_and_a_foreign_id_get_the_same_404() {
    rules::ids_that_lead_nowhere_look_alike("PATCH", "vehicles");
}

#[test]
fn query_parameters_are_refused() {
    rules::query_parameters_are_refused("PATCH", "vehicles");
}
