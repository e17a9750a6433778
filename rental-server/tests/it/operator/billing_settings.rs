//! Fees, tax, due dates, and what an invoice keeps of its issue.

use crate::support::{Organization, Server};
use serde_json::{Value, json};

/// A completed rental of 100 with a toll of 6.94 for each name; gives its id and that of its customer.
fn rental(organization: &Organization, tolls: &[&str]) -> (String, String) {
    let vehicle = organization.vehicle(json!({"plate": "ABC123"}));
    let fields = json!({"start_date": "2026-06-01", "end_date": "2026-06-05", "final_price": 100});
    let id = organization.rental(&vehicle, fields);
    let rental = organization.patch(&format!("/v1/rentals/{id}"), &json!({"status": "COMPLETED"})).ok();
    let customer = rental["customer_id"].as_str().unwrap().to_owned();
    for number in tolls {
        let toll = json!({"amount": 6.94, "agency": "A", "transaction_id": number, "occurred_on": "2026-06-02", "customer_id": customer});
        organization.recorded("tolls", &toll);
    }
    (id, customer)
}

fn settings(organization: &Organization, body: &Value) -> crate::support::Reply {
    organization.server.admin("PATCH", &format!("/admin/v1/organizations/{}", organization.id), body)
}

fn invoice_of(organization: &Organization, rental: &str) -> Value {
    let path = format!("/admin/v1/organizations/{}/invoices/drafts", organization.id);
    let body = json!({"rental_id": rental, "with_tolls": true, "with_violations": true});
    organization.server.admin("POST", &path, &body).ok()
}

fn admin(organization: &Organization, path: &str, body: &Value) -> Value {
    organization.server.admin("POST", &format!("/admin/v1/{path}"), body).ok()
}

#[test]
fn an_invoice_of_a_rental_has_fees_and_a_tax_that_is_added() {
    let organization = Server::shared().organization();
    let set =
        json!({"toll_fee": 1.5, "violation_fee": 25, "tax_name": "VAT", "tax_rate": 8.875, "payment_terms_days": 14});
    settings(&organization, &set).ok();
    let (rental, customer) = rental(&organization, &["1", "2"]);
    organization.recorded(
        "violations",
        &json!({"summons_number": "1", "amount_due": 50, "issued_on": "2026-06-03", "customer_id": customer}),
    );
    let drafts = format!("/admin/v1/organizations/{}/invoices/drafts", organization.id);
    let draft = organization.server.admin("GET", &drafts, &Value::Null).ok()["data"][0].clone();
    assert_eq!(draft["customer_name"], "Test Customer");
    let invoice = invoice_of(&organization, &rental);
    // 100 + 2 * 6.94 + 50 + 2 * 1.5 + 25 = 191.88, and 8.875 % of it is 17.02935.
    assert_eq!((&invoice["tax_amount"], &invoice["total"]), (&json!(17.03), &json!(208.91)));
    assert_eq!((&draft["tax_amount"], &draft["total"]), (&json!(17.03), &json!(208.91)));
    assert_eq!(
        (&invoice["tax_name"], &invoice["tax_rate"], &invoice["tax_included"]),
        (&json!("VAT"), &json!(8.875), &json!(false))
    );
    let lines: Vec<&str> =
        invoice["lines"].as_array().unwrap().iter().map(|line| line["description"].as_str().unwrap()).collect();
    assert_eq!(lines[4..], ["Toll fee: 2 × 1.50", "Violation fee: 1 × 25.00"], "{lines:?}");
    let created: String = invoice["created_at"].as_str().unwrap().into();
    assert!(invoice["due_date"].as_str().unwrap() > &created[..10], "{invoice}");

    let plain = organization
        .recorded("invoices", &json!({"customer_id": customer, "lines": [{"description": "x", "amount": 10}]}));
    let plain = organization.get(&format!("/v1/invoices/{plain}")).ok();
    assert_eq!(
        (&plain["total"], &plain["tax_amount"]),
        (&json!(10), &Value::Null),
        "settings do not change what is sent"
    );

    let page = organization.server.admin(
        "GET",
        &format!("/admin/v1/invoices/{}/print?language=de", invoice["id"].as_str().unwrap()),
        &Value::Null,
    );
    for shown in ["Zwischensumme", "VAT 8,875%", "Mautgebühr: 2 × 1,50", "Fällig am", "Miete 1. Juni 2026"] {
        assert!(page.text().contains(shown), "{shown} in {}", page.text());
    }
}

#[test]
fn credit_notes_of_a_taxed_invoice_add_up_to_its_total_to_the_cent() {
    for included in [false, true] {
        let organization = Server::shared().organization();
        let customer = organization.customer(json!({}));
        let lines: Vec<Value> = (1..=3).map(|n| json!({"description": "x", "amount": 0.33 * f64::from(n)})).collect();
        let body = json!({"customer_id": customer, "lines": lines, "tax_name": "VAT", "tax_rate": 19, "tax_included": included});
        let id = organization.recorded("invoices", &body);
        let invoice = organization.get(&format!("/v1/invoices/{id}")).ok();
        let expected = if included { (0.32, 1.98) } else { (0.38, 2.36) };
        assert_eq!((&invoice["tax_amount"], &invoice["total"]), (&json!(expected.0), &json!(expected.1)));
        let credit = |line: u32| {
            admin(&organization, &format!("invoices/{id}/credit"), &json!({"lines": [{"line": line, "amount": 0.11}]}))
        };
        let (mut total, mut tax) = (0.0, 0.0);
        for line in [0, 1, 2] {
            let note = credit(line);
            total += note["total"].as_f64().unwrap();
            tax += note["tax_amount"].as_f64().unwrap();
        }
        let rest = admin(&organization, &format!("invoices/{id}/credit"), &Value::Null);
        total += rest["total"].as_f64().unwrap();
        tax += rest["tax_amount"].as_f64().unwrap();
        assert!((total - expected.1).abs() < 1e-9 && (tax - expected.0).abs() < 1e-9, "{total} {tax}");
        let after = organization.get(&format!("/v1/invoices/{id}")).ok();
        assert_eq!(after["amount_credited"], json!(expected.1));
    }
}

#[test]
fn a_toll_has_one_fee_for_each_customer_unless_all_of_the_invoice_was_credited() {
    let organization = Server::shared().organization();
    settings(&organization, &json!({"toll_fee": 1.5})).ok();
    let (rental, _) = rental(&organization, &["1"]);
    let descriptions = |invoice: &Value| -> Vec<String> {
        let lines = invoice["lines"].as_array().unwrap().iter();
        lines
            .map(|line| line["description"].as_str().unwrap().split(' ').take(2).collect::<Vec<_>>().join(" "))
            .collect()
    };
    let credit = |invoice: &Value, body: &Value| {
        admin(&organization, &format!("invoices/{}/credit", invoice["id"].as_str().unwrap()), body)
    };
    let first = invoice_of(&organization, &rental);
    assert_eq!(descriptions(&first), ["Rental 2026-06-01", "Toll A", "Toll fee:"]);
    credit(&first, &json!({"lines": [{"line": 1, "rebill": true}]}));
    let second = invoice_of(&organization, &rental);
    assert_eq!((descriptions(&second), &second["total"]), (vec!["Toll A".to_owned()], &json!(6.94)), "no second fee");
    credit(&second, &json!({"rebill": true}));
    credit(&first, &json!({"rebill": true}));
    let third = invoice_of(&organization, &rental);
    assert_eq!((descriptions(&third).len(), &third["total"]), (3, &json!(108.44)), "all of it was given back");
}

/// Amounts have no currency of their own: another one would change all that is recorded.
#[test]
fn the_currency_of_an_organization_is_set_at_its_creation_alone() {
    let organization = Server::shared().organization();
    let path = format!("/admin/v1/organizations/{}", organization.id);
    let before = organization.server.admin("GET", &path, &Value::Null).ok();
    let other = if before["default_currency"] == "EUR" { "USD" } else { "EUR" };
    let refused = organization.server.admin("PATCH", &path, &json!({"default_currency": other}));
    assert_eq!(refused.bad_fields()[0].0, "default_currency");
    assert_eq!(organization.server.admin("GET", &path, &Value::Null).ok(), before);
}

#[test]
fn wrong_settings_are_named() {
    let organization = Server::shared().organization();
    for (body, param) in [
        (json!({"tax_rate": 19}), "tax_name"),
        (json!({"tax_name": "VAT"}), "tax_rate"),
        (json!({"tax_name": "VAT", "tax_rate": 100.1}), "tax_rate"),
        (json!({"tax_name": "VAT", "tax_rate": -1}), "tax_rate"),
        (json!({"tax_name": "VAT", "tax_rate": 1.00001}), "tax_rate"),
        (json!({"toll_fee": 1.005}), "toll_fee"),
        (json!({"violation_fee": -1}), "violation_fee"),
        (json!({"payment_terms_days": 366}), "payment_terms_days"),
    ] {
        assert_eq!(settings(&organization, &body).bad_fields()[0].0, param, "{body}");
    }
    let path = format!("/admin/v1/organizations/{}/invoices", organization.id);
    let customer = organization.customer(json!({}));
    for (more, param) in [
        (json!({"tax_rate": 19}), "tax_name"),
        (json!({"tax_included": true}), "tax_rate"),
        (json!({"due_date": "2020-01-01"}), "due_date"),
    ] {
        let mut body = json!({"customer_id": customer, "lines": [{"description": "x", "amount": 10}]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(organization.server.admin("POST", &path, &body).bad_fields()[0].0, param, "{more}");
    }
}

#[test]
fn settings_that_are_too_large_are_refused_with_their_bounds() {
    let organization = Server::shared().organization();
    let most = "must be at most 99999999999.9999";
    for (body, rule) in [
        (json!({"toll_fee": 100_000_000_000_u64}), most),
        (json!({"violation_fee": 100_000_000_000_u64}), most),
        (
            json!({"tax_name": "VAT", "tax_rate": 100.0001}),
            "must be a percentage from 0 to 100 with at most 4 decimals",
        ),
        (json!({"tax_name": "VAT", "tax_rate": 1e30}), "must be a percentage from 0 to 100 with at most 4 decimals"),
    ] {
        let reply = settings(&organization, &body);
        reply.bad_fields();
        assert!(reply.text().contains(rule), "{body}: {}", reply.text());
    }
    // Each fee is allowed, and their sum is no amount.
    settings(&organization, &json!({"toll_fee": 99_999_999_999_u64})).ok();
    let (rental, _) = rental(&organization, &["1", "2"]);
    let path = format!("/admin/v1/organizations/{}/invoices/drafts", organization.id);
    let draft = organization.server.admin("GET", &path, &Value::Null).ok()["data"][0].clone();
    let problem = draft["problem"].as_str().expect("a problem");
    assert!(problem.contains("more than the largest amount. Lower the fees"), "{problem}");
    let body = json!({"rental_id": rental, "with_tolls": true});
    let reply = organization.server.admin("POST", &path, &body);
    assert_eq!((reply.status, reply.json()["error"]["message"].as_str()), (409, Some(problem)));
    settings(&organization, &json!({"toll_fee": 1})).ok();
    assert_eq!(invoice_of(&organization, &rental)["total"], json!(115.88));
}

#[test]
fn invoices_of_which_something_is_owed_are_listed_by_their_due_date() {
    let organization = Server::shared().organization();
    let customer = organization.customer(json!({}));
    let bill = |due: &str| {
        let body = json!({"customer_id": customer, "lines": [{"description": "x", "amount": 10}], "due_date": due});
        organization.recorded("invoices", &body)
    };
    let [late, soon, paid, credited] = ["2098-01-02", "2098-01-01", "2098-01-01", "2098-01-01"].map(bill);
    admin(&organization, &format!("invoices/{paid}/pay"), &Value::Null);
    admin(&organization, &format!("invoices/{soon}/credit"), &json!({"lines": [{"line": 0, "amount": 9}]}));
    admin(&organization, &format!("invoices/{credited}/credit"), &json!({"lines": [{"line": 0}]}));
    let list = |query: &str| -> Vec<String> {
        let page = organization.get(&format!("/v1/invoices?{query}")).ok();
        page["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(list("due_date[lt]=2099-01-01"), [soon.clone(), late]);
    assert_eq!(list("due_date[lt]=2098-01-02"), [soon]);
}

#[test]
fn an_issued_invoice_keeps_seller_buyer_and_vehicle() {
    let organization = Server::shared().organization();
    settings(&organization, &json!({"legal_name": "Old Seller", "address": "1 Old Street"})).ok();
    let (rental, customer) = rental(&organization, &[]);
    organization.patch(&format!("/v1/customers/{customer}"), &json!({"address": "2 Old Road\nTown"})).ok();
    let invoice = invoice_of(&organization, &rental);
    assert_eq!(
        (&invoice["seller_name"], &invoice["buyer_address"]),
        (&json!("Old Seller"), &json!("2 Old Road\nTown"))
    );
    assert_eq!(invoice["lines"][0]["vehicle"], "Test vehicle · ABC123");
    settings(&organization, &json!({"legal_name": "New Seller", "address": "1 New Street"})).ok();
    organization.patch(&format!("/v1/customers/{customer}"), &json!({"full_name": "New Name", "address": null})).ok();
    let vehicle = organization.get(&format!("/v1/rentals/{rental}")).ok()["vehicle_id"].as_str().unwrap().to_owned();
    organization.patch(&format!("/v1/vehicles/{vehicle}"), &json!({"plate": "NEW999"})).ok();
    let path = format!("/admin/v1/invoices/{}/print", invoice["id"].as_str().unwrap());
    let page = organization.server.admin("GET", &path, &Value::Null).text();
    for shown in ["Old Seller", "1 Old Street", "Test Customer", "2 Old Road", "ABC123"] {
        assert!(page.contains(shown), "{shown} in {page}");
    }
    assert!(!page.contains("New") && !page.contains("NEW999"), "{page}");
}
