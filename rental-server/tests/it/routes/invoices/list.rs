//! GET /v1/invoices

use crate::support::{Server, rules};
use serde_json::json;

#[test]
fn the_list_holds_whole_invoices_as_a_get_gives_them_newest_first() {
    let organization = Server::shared().organization();
    let mut made: Vec<String> = (0..4).map(|_| organization.one_more("invoices", json!({}))).collect();
    made.reverse();
    let page = rules::page(&organization, "/v1/invoices");
    let data = page["data"].as_array().unwrap();
    assert_eq!(rules::ids(data), made);
    for invoice in data {
        rules::whole(invoice, "invoice");
        assert_eq!(&organization.get(&format!("/v1/invoices/{}", invoice["id"].as_str().unwrap())).ok(), invoice);
    }
}

#[test]
fn status_and_customer_select_alone_and_together() {
    let organization = Server::shared().organization();
    let customers = [(); 2].map(|()| organization.customer(json!({})));
    let mut made = Vec::new();
    for customer in &customers {
        for (status, action) in [("open", ""), ("paid", "/pay"), ("void", "/void"), ("open", "")] {
            let id = organization.one_more("invoices", json!({"customer_id": customer}));
            if !action.is_empty() {
                let path = format!("/admin/v1/invoices/{id}{action}");
                assert_eq!(organization.server.admin("POST", &path, &json!({})).ok()["status"], status);
            }
            made.insert(0, (status, customer, id));
        }
    }
    let found = |query: &str| rules::ids(&rules::walk(&organization, "invoices", query, 2));
    let expected = |keep: &dyn Fn(&str, &String) -> bool| -> Vec<String> {
        made.iter().filter(|(status, customer, _)| keep(status, customer)).map(|(.., id)| id.clone()).collect()
    };
    for wanted in ["open", "paid", "void"] {
        assert_eq!(found(&format!("&status={wanted}")), expected(&|status, _| status == wanted));
        for owner in &customers {
            let both = expected(&|status, customer| status == wanted && customer == owner);
            assert_eq!(found(&format!("&status={wanted}&customer={owner}")), both);
        }
    }
    assert_eq!(found(&format!("&customer={}", customers[0])), expected(&|_, customer| *customer == customers[0]));
}

#[test]
fn a_status_that_there_is_not_is_refused() {
    let organization = Server::shared().organization();
    for bad in ["OPEN", "", "NEW"] {
        let reply = organization.get(&format!("/v1/invoices?status={bad}"));
        assert_eq!(reply.bad_fields(), [("status".to_owned(), "parameter_invalid".to_owned())], "{bad}");
    }
    assert_eq!(rules::walk(&organization, "invoices", &format!("&customer={}", rules::UNKNOWN_ID), 1).len(), 0);
}
