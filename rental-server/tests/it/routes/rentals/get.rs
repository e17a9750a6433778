//! GET /v1/rentals/{id}

use crate::support::{Server, rules};

#[test]
fn a_rental_is_returned_whole_with_nulls_for_what_is_not_set() {
    let organization = Server::shared().organization();
    let (_, id) = organization.one_of_each().into_iter().find(|(plural, _)| *plural == "rentals").unwrap();
    let rental = organization.get(&format!("/v1/rentals/{id}")).ok();
    rules::whole(&rental, "rental");
    assert_eq!(rental["id"], id.as_str());
}

#[test]
fn an_unknown_a_malformed_and_a_foreign_id_get_the_same_404() {
    rules::ids_that_lead_nowhere_look_alike("GET", "rentals");
}

#[test]
fn query_parameters_are_refused() {
    rules::query_parameters_are_refused("GET", "rentals");
}
