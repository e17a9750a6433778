//! GET /v1/violations/{id}

use crate::support::rules;

#[test]
fn a_violation_is_returned_whole_with_nulls_for_what_is_not_set() {
    rules::is_returned_whole("violations");
}

#[test]
fn an_unknown_a_malformed_and_a_foreign_id_get_the_same_404() {
    rules::ids_that_lead_nowhere_look_alike("GET", "violations");
}

#[test]
fn query_parameters_are_refused() {
    rules::query_parameters_are_refused("GET", "violations");
}
