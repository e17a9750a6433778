//! GET /v1/invoices/{id}

use crate::support::{Server, rules};
use serde_json::{Value, json};

#[test]
fn an_invoice_is_returned_whole_with_nulls_for_what_is_not_set() {
    rules::is_returned_whole("invoices");
}

#[test]
fn an_unknown_a_malformed_and_a_foreign_id_get_the_same_404() {
    rules::ids_that_lead_nowhere_look_alike("GET", "invoices");
}

#[test]
fn query_parameters_are_refused() {
    rules::query_parameters_are_refused("GET", "invoices");
}

#[test]
fn the_total_is_the_exact_sum_of_the_lines() {
    let organization = Server::shared().organization();
    let lines = json!([{"description": "a", "amount": 0.1}, {"description": "b", "amount": 0.2}, {"description": "c", "amount": 358}]);
    let id = organization.one_more("invoices", json!({"lines": lines}));
    let reply = organization.get(&format!("/v1/invoices/{id}"));
    assert!(reply.text().contains("\"total\":358.3,"), "{}", reply.text());
    assert_eq!(reply.ok()["status"], "open");
}

#[test]
fn invoice_numbers_are_readable_and_run_without_gaps_in_each_organization() {
    for organization in [Server::shared().organization(), Server::shared().organization()] {
        let numbers: Vec<Value> = (0..3)
            .map(|_| organization.one_more("invoices", json!({})))
            .map(|id| organization.get(&format!("/v1/invoices/{id}")).ok()["invoice_number"].clone())
            .collect();
        assert_eq!(numbers, ["INV-000001", "INV-000002", "INV-000003"]);
    }
}

#[test]
fn invoices_are_read_only() {
    let organization = Server::shared().organization();
    let id = organization.one_more("invoices", json!({}));
    for (method, path) in [
        ("POST", "/v1/invoices".to_owned()),
        ("PATCH", format!("/v1/invoices/{id}")),
        ("DELETE", format!("/v1/invoices/{id}")),
    ] {
        organization.call(method, &path, &json!({"status": "paid"})).error(
            405,
            "invalid_request_error",
            "method_not_allowed",
        );
    }
    assert_eq!(organization.get(&format!("/v1/invoices/{id}")).ok()["status"], "open");
}
