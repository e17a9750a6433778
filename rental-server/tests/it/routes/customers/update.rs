//! PATCH /v1/customers/{id}

use super::table;
use crate::support::{Server, rules};
use serde_json::json;

#[test]
fn the_row_of_the_specification_is_taken_as_it_stands() {
    let organization = Server::shared().organization();
    let path = format!("/v1/customers/{}", organization.customer(json!({})));
    let body = json!({"email": "ada@example.com", "phone": "+14155550123", "notes": "Prefers mornings"});
    let customer = organization.patch(&path, &body).ok();
    rules::whole(&customer, "customer");
    for (field, sent) in body.as_object().unwrap() {
        assert_eq!(&customer[field], sent, "{field}");
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
fn the_email_filter_follows_a_changed_address() {
    let organization = Server::shared().organization();
    let id = organization.customer(json!({"email": "old@example.com"}));
    let found = |email: &str| rules::ids(&rules::walk(&organization, "customers", &format!("&email={email}"), 10));
    assert_eq!(found("old@example.com"), std::slice::from_ref(&id));
    organization.patch(&format!("/v1/customers/{id}"), &json!({"email": "new@example.com"})).ok();
    assert_eq!((found("old@example.com"), found("new@example.com")), (vec![], vec![id.clone()]));
    organization.patch(&format!("/v1/customers/{id}"), &json!({"email": null})).ok();
    assert_eq!(found("new@example.com"), [""; 0]);
}

#[test]
fn an_empty_patch_changes_nothing() {
    rules::an_empty_patch_changes_nothing("customers");
}

#[test]
fn an_unknown_a_malformed_and_a_foreign_id_get_the_same_404() {
    rules::ids_that_lead_nowhere_look_alike("PATCH", "customers");
}

#[test]
fn query_parameters_are_refused() {
    rules::query_parameters_are_refused("PATCH", "customers");
}
