//! GET /v1/customers/{id}

use crate::support::rules;

#[test]
fn a_customer_is_returned_whole_with_nulls_for_what_is_not_set() {
    rules::is_returned_whole("customers");
}

#[test]
fn an_unknown_a_malformed_and_a_foreign_id_get_the_same_404() {
    rules::ids_that_lead_nowhere_look_alike("GET", "customers");
}

#[test]
fn query_parameters_are_refused() {
    rules::query_parameters_are_refused("GET", "customers");
}
