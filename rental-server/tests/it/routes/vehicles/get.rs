//! GET /v1/vehicles/{id}

use crate::support::rules;

#[test]
fn a_vehicle_is_returned_whole_with_nulls_for_what_is_not_set() {
    rules::is_returned_whole("vehicles");
}

#[test]
fn an_unknown_a_malformed_and_a_foreign_id_get_the_same_404() {
    rules::ids_that_lead_nowhere_look_alike("GET", "vehicles");
}

#[test]
fn query_parameters_are_refused() {
    rules::query_parameters_are_refused("GET", "vehicles");
}
