//! POST /v1/customers

use super::table;
use crate::support::{Server, rules};
use serde_json::json;

#[test]
fn a_customer_needs_only_a_full_name() {
    let organization = Server::shared().organization();
    let reply = organization.post("/v1/customers", &json!({"full_name": "Ada Lovelace"}));
    let customer = reply.ok();
    rules::whole(&customer, "customer");
    assert_eq!((&customer["full_name"], &customer["preferred_language"]), (&json!("Ada Lovelace"), &json!("en")));
    assert_eq!(customer["language_chosen"], false);
    assert_eq!(organization.get(&format!("/v1/customers/{}", reply.id())).body, reply.body);
}

#[test]
fn the_row_of_the_specification_is_taken_as_it_stands() {
    let organization = Server::shared().organization();
    let body = json!({"full_name": "Ada Lovelace", "email": "ada@example.com", "phone": "+14155550123",
        "preferred_language": "fr", "source_channel": "website"});
    let customer = organization.post("/v1/customers", &body).ok();
    for (field, sent) in body.as_object().unwrap() {
        assert_eq!(&customer[field], sent, "{field}");
    }
}

#[test]
fn every_documented_field_is_taken_with_every_value_it_can_have() {
    table().post_takes_every_good_value(&Server::shared().organization());
}

#[test]
fn every_bad_value_of_every_field_is_refused_by_name() {
    table().post_refuses_every_bad_value(&Server::shared().organization());
}

#[test]
fn a_field_left_out_or_null_starts_unset() {
    table().post_without_a_field_or_with_null_leaves_it_unset(&Server::shared().organization());
}

#[test]
fn the_full_name_is_required() {
    table().post_names_each_required_field_that_is_missing(&Server::shared().organization());
}

#[test]
fn unknown_server_only_and_repeated_fields_are_refused() {
    table().refuses_fields_that_it_does_not_take(&Server::shared().organization(), &["organization_id", "name"]);
}

#[test]
fn query_parameters_are_refused() {
    rules::query_parameters_are_refused("POST", "customers");
}

#[test]
fn two_customers_may_have_the_same_email() {
    let organization = Server::shared().organization();
    let made = [(); 2].map(|()| organization.customer(json!({"email": "ada@example.com"})));
    assert_ne!(made[0], made[1]);
}
