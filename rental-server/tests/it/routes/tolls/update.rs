//! PATCH /v1/tolls/{id}

use crate::support::{charges, rules};

#[test]
fn a_toll_is_attached_detached_and_attached_to_another_customer() {
    charges::is_attached_detached_and_attached_to_another_customer("tolls");
}

#[test]
fn a_toll_that_was_never_attached_is_given_to_nobody_until_that_is_taken_back() {
    charges::is_given_to_nobody_until_that_is_taken_back("tolls");
}

#[test]
fn a_customer_that_there_is_not_is_refused_by_name() {
    charges::a_customer_that_there_is_not_is_refused_by_name("tolls");
}

#[test]
fn only_the_customer_can_be_updated() {
    charges::only_the_customer_can_be_updated("tolls");
}

#[test]
fn a_good_customer_is_not_attached_beside_a_bad_field() {
    charges::a_good_customer_is_not_attached_beside_a_bad_field("tolls");
}

#[test]
fn an_empty_patch_changes_nothing() {
    rules::an_empty_patch_changes_nothing("tolls");
}

#[test]
fn an_unknown_a_malformed_and_a_foreign_id_get_the_same_404() {
    rules::ids_that_lead_nowhere_look_alike("PATCH", "tolls");
}

#[test]
fn query_parameters_are_refused() {
    rules::query_parameters_are_refused("PATCH", "tolls");
}
