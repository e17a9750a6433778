//! GET /v1/customers/{id}

use crate::support::{Server, rules};

#[test]
fn a_customer_is_returned_whole_with_nulls_for_what_is_not_set() {
    let organization = Server::shared().organization();
    let (_, id) = organization.one_of_each().into_iter().find(|(plural, _)| *plural == "customers").unwrap();
    let customer = organization.get(&format!("/v1/customers/{id}")).ok();
    rules::whole(&customer, "customer");
    assert_eq!(customer["id"], id.as_str());
}

#[test]
fn an_unknown_a_malformed_and_a_foreign_id_get_the_same_404() {
    rules::ids_that_lead_nowhere_look_alike("GET", "customers");
}

#[test]
fn query_parameters_are_refused() {
    rules::query_parameters_are_refused("GET", "customers");
}
