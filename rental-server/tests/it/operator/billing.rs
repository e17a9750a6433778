//! Lines of invoices that bill a rental, a toll or a violation: right amounts, the right customer, and each once.

use crate::support::{Organization, Reply, Server};
use serde_json::{Value, json};

pub(super) fn bill(organization: &Organization, customer: &str, lines: &Value) -> Reply {
    let path = format!("/admin/v1/organizations/{}/invoices", organization.id);
    organization.server.admin("POST", &path, &json!({"customer_id": customer, "lines": lines}))
}

pub(super) fn toll(organization: &Organization, customer: &Value, amount: f64) -> String {
    let fields = json!({"amount": amount, "agency": "MTAB&T", "plaza": "RKB", "occurred_on": "2026-06-02", "customer_id": customer});
    organization.recorded("tolls", &fields)
}

pub(super) fn settle(organization: &Organization, invoice: &str, word: &str) -> Reply {
    organization.server.admin("POST", &format!("/admin/v1/invoices/{invoice}/{word}"), &Value::Null)
}

#[test]
fn a_line_takes_text_and_amount_from_what_it_bills() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({"daily_rate": 89.5}));
    let rental = organization.rental(&vehicle, json!({"start_date": "2026-06-01", "end_date": "2026-06-05"}));
    let customer = organization.get(&format!("/v1/rentals/{rental}")).ok()["customer_id"].as_str().unwrap().to_owned();
    let toll = toll(&organization, &json!(customer), 6.94);
    let fields =
        json!({"summons_number": "4631234567", "amount_due": 50, "violation": "SPEED", "customer_id": customer});
    let violation = organization.recorded("violations", &fields);
    let lines = json!([
        {"rental_id": rental}, {"toll_id": toll}, {"violation_id": violation, "description": "Camera"},
        {"description": "Handling fee", "amount": 0.1}, {"description": "Extra", "amount": 0.2, "toll_id": null},
    ]);
    let invoice = bill(&organization, &customer, &lines).ok();
    let line = |text: &str, amount: f64, source: &str, id: Option<&str>| {
        let mut line = json!({"description": text, "amount": amount, "rental_id": null, "toll_id": null, "violation_id": null, "vehicle": null});
        if let Some(id) = id {
            line[source] = json!(id);
        }
        line
    };
    let mut rental_line = line("Rental 2026-06-01 to 2026-06-05", 0.0, "rental_id", Some(&rental));
    rental_line["amount"] = json!(358);
    rental_line["vehicle"] = json!("Test vehicle");
    let mut violation_line = line("Camera", 0.0, "violation_id", Some(&violation));
    violation_line["amount"] = json!(50);
    let expected = json!([
        rental_line,
        line("Toll MTAB&T RKB 2026-06-02", 6.94, "toll_id", Some(&toll)),
        violation_line,
        line("Handling fee", 0.1, "", None),
        line("Extra", 0.2, "", None),
    ]);
    assert_eq!(invoice["lines"], expected);
    assert_eq!(invoice["total"], json!(415.24));
    let id = invoice["id"].as_str().unwrap();
    assert_eq!(organization.get(&format!("/v1/invoices/{id}")).ok(), invoice);
}

#[test]
fn a_line_of_a_toll_tells_when_it_was_and_which_plate_was_read() {
    let organization = Server::shared().organization_with(&json!({"name": "Sun", "time_zone": "America/New_York"}));
    let customer = organization.customer(json!({}));
    let line = |more: Value| {
        let mut fields = json!({"amount": 1, "agency": "A", "plaza": "RKB", "customer_id": customer});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let toll = organization.recorded("tolls", &fields);
        bill(&organization, &customer, &json!([{"toll_id": toll}])).ok()["lines"][0]["description"].clone()
    };
    let passage = json!({"occurred_at": "2026-06-02T14:03:00Z", "plate": "ABC1234"});
    assert_eq!(line(passage), "Toll A RKB 2026-06-02 10:03 ABC1234");
    let far = json!({"occurred_at": "2026-06-02T04:30:00Z", "occurred_on": "2026-06-01", "transponder_number": "004"});
    assert_eq!(line(far), "Toll A RKB 2026-06-01 004", "the day where it happened is not that of the organization");
    let with_zone =
        json!({"occurred_at": "2026-06-02T04:30:00Z", "occurred_on": "2026-06-01", "time_zone": "America/Los_Angeles"});
    assert_eq!(line(with_zone), "Toll A RKB 2026-06-01 21:30", "as the statement says");
    assert_eq!(line(json!({"occurred_on": "2026-06-02"})), "Toll A RKB 2026-06-02");
}

#[test]
fn a_toll_is_billed_once_unless_its_invoice_was_voided() {
    let organization = Server::shared().organization();
    let customer = organization.customer(json!({}));
    let toll = toll(&organization, &json!(customer), 6.94);
    let lines = json!([{"toll_id": toll}]);
    let first = bill(&organization, &customer, &lines).id();
    let refused = bill(&organization, &customer, &lines).error(409, "invalid_request_error", "state_conflict");
    assert!(refused["message"].as_str().unwrap().contains(&first), "{refused}");
    settle(&organization, &first, "void").ok();
    let second = bill(&organization, &customer, &lines).ok();
    assert_eq!(second["invoice_number"], "INV-000002", "a refused invoice takes no number");
    settle(&organization, second["id"].as_str().unwrap(), "pay").ok();
    bill(&organization, &customer, &lines).error(409, "invalid_request_error", "state_conflict");
}

#[test]
fn many_invoices_at_once_bill_a_toll_once() {
    let organization = Server::shared().organization();
    let customer = organization.customer(json!({}));
    let toll = toll(&organization, &json!(customer), 6.94);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let one = || bill(&organization, &customer, &json!([{"toll_id": toll}])).status;
        let running: Vec<_> = (0..12).map(|_| scope.spawn(one)).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 11, "{statuses:?}");
}

#[test]
fn who_pays_for_a_billed_toll_cannot_change_before_the_invoice_is_void() {
    let organization = Server::shared().organization();
    let [customer, other] = [(); 2].map(|()| organization.customer(json!({})));
    let toll = toll(&organization, &json!(customer), 6.94);
    let invoice = bill(&organization, &customer, &json!([{"toll_id": toll}])).id();
    let path = format!("/v1/tolls/{toll}");
    for change in [json!({"customer_id": other}), json!({"customer_id": null})] {
        let error = organization.patch(&path, &change).error(409, "invalid_request_error", "state_conflict");
        assert!(error["message"].as_str().unwrap().contains("is billed on invoice INV-000001."), "{error}");
    }
    organization.patch(&path, &json!({"customer_id": customer})).ok();
    settle(&organization, &invoice, "void").ok();
    organization.patch(&path, &json!({"customer_id": other})).ok();
}

#[test]
fn who_paid_a_toll_is_given_a_credit_because_a_paid_invoice_is_not_voided() {
    let organization = Server::shared().organization();
    let customer = organization.customer(json!({}));
    let toll = toll(&organization, &json!(customer), 6.94);
    let invoice = bill(&organization, &customer, &json!([{"toll_id": toll}])).id();
    settle(&organization, &invoice, "pay").ok();
    let refused = organization.patch(&format!("/v1/tolls/{toll}"), &json!({"customer_id": null}));
    let error = refused.error(409, "invalid_request_error", "state_conflict");
    let message = error["message"].as_str().unwrap();
    let begin = "is billed on invoice INV-000001. Credit its line (`rental-cli invoices credit INV-000001";
    assert!(message.contains(begin) && !message.contains("oid"), "{message}");
}

#[test]
fn documents_are_in_the_language_of_the_organization_until_one_is_sent_for_the_customer() {
    let organization = Server::shared().organization();
    let path = format!("/admin/v1/organizations/{}", organization.id);
    organization.server.admin("PATCH", &path, &json!({"invoice_language": "de"})).ok();
    let customer = organization.post("/v1/customers", &json!({"full_name": "Ada 🚗 राम"})).id();
    let invoice = bill(&organization, &customer, &json!([{"description": "Fee", "amount": 5}])).id();
    let get =
        |word: &str| organization.server.admin("GET", &format!("/admin/v1/invoices/{invoice}/{word}"), &Value::Null);
    let has = |text: &str| assert!(get("print").text().contains(text), "{text}");
    has("Gesamtbetrag");
    let file = get("pdf");
    assert!(file.body.starts_with(b"%PDF-"));
    assert_eq!(file.header("rental-characters-not-shown"), Some("U+1F697"));
    organization.patch(&format!("/v1/customers/{customer}"), &json!({"notes": "none"})).ok();
    has("Gesamtbetrag");
    organization.patch(&format!("/v1/customers/{customer}"), &json!({"preferred_language": "en"})).ok();
    has("Amount");
}

#[test]
fn a_billed_toll_does_not_fall_below_what_is_billed_and_a_billed_violation_follows_its_city() {
    let organization = Server::shared().organization();
    let customer = organization.customer(json!({}));
    let header = "transaction_id,occurred_at,agency,plaza,plate,plate_state,transponder_number,amount\n";
    let file = |amount: &str| format!("{header}T1,2026-06-02T14:00:00Z,A,,X1,,,{amount}\n");
    super::import(&organization, "tolls", "", &file("5")).ok();
    let toll = super::all(&organization, "tolls")[0]["id"].as_str().unwrap().to_owned();
    organization.patch(&format!("/v1/tolls/{toll}"), &json!({"customer_id": customer})).ok();
    let invoice = bill(&organization, &customer, &json!([{"toll_id": toll}])).id();
    let answer = super::import(&organization, "tolls", "", &file("4")).ok();
    assert_eq!(super::counts(&answer), [0, 0, 0, 0, 1]);
    let message = answer["errors"][0]["message"].as_str().unwrap();
    let begin = "The toll T1 is billed on invoice INV-000001. Void that invoice (`rental-cli invoices void INV-000001`), or credit its line \
                 (`rental-cli invoices credit INV-000001 --line \"toll:T1\"`, ";
    assert!(
        message.starts_with(begin) && message.ends_with("below the 5 that is billed. Then import the file again."),
        "{message}"
    );
    assert_eq!(super::counts(&super::import(&organization, "tolls", "", &file("7")).ok()), [0, 1, 0, 0, 0]);
    let rest = bill(&organization, &customer, &json!([{"toll_id": toll}])).ok();
    assert_eq!(rest["total"], 2, "what is left after the correction");
    settle(&organization, &invoice, "void").ok();
    settle(&organization, rest["id"].as_str().unwrap(), "void").ok();
    assert_eq!(super::counts(&super::import(&organization, "tolls", "", &file("3")).ok()), [0, 1, 0, 0, 0]);

    let list = |due: u32| format!("plate,state,summons_number,issue_date,amount_due\nX1,,1,06/05/2026,{due}\n");
    super::import(&organization, "violations", "", &list(50)).ok();
    let violation = super::all(&organization, "violations")[0]["id"].as_str().unwrap().to_owned();
    organization.patch(&format!("/v1/violations/{violation}"), &json!({"customer_id": customer})).ok();
    let bill = bill(&organization, &customer, &json!([{"violation_id": violation}])).ok();
    let billed = bill["lines"][0]["description"].as_str().unwrap();
    assert!(billed.ends_with("2026-06-05"), "{billed}: documents write it in their language");
    assert_eq!(super::counts(&super::import(&organization, "violations", "", &list(15)).ok()), [0, 1, 0, 0, 0]);
    // More is billed than it costs now. A person who confirms the customer does not change that.
    for _ in 0..2 {
        let reason = organization.get(&format!("/v1/violations/{violation}")).ok()["review_reason"].clone();
        assert!(reason.as_str().is_some_and(|reason| reason.starts_with("More is billed")), "{reason}");
        organization.patch(&format!("/v1/violations/{violation}"), &json!({"customer_id": customer})).ok();
    }
    // Nothing is left to bill after a credit of the difference, so it needs no `rebill`.
    let credit = |line: Value| {
        let path = format!("/admin/v1/organizations/{}/credit_notes", organization.id);
        organization.server.admin("POST", &path, &json!({"invoice_id": bill["id"], "lines": [line]})).ok()
    };
    let path = format!("/v1/violations/{violation}");
    assert_eq!(credit(json!({"line": 0, "amount": 5, "rebill": false}))["lines"][0]["rebill"], false);
    assert_eq!(organization.get(&path).ok()["amount_billed"], 50, "as it was told");
    assert_eq!(credit(json!({"line": 0, "amount": 35}))["lines"][0]["rebill"], true);
    let after = organization.get(&path).ok();
    assert_eq!((&after["amount_billed"], &after["review_reason"]), (&json!(15), &Value::Null));
    assert_eq!(credit(json!({"line": 0, "amount": 10}))["lines"][0]["rebill"], false, "a kindness stays billed");
    assert_eq!(organization.get(&path).ok()["amount_billed"], 15);
}

/// `amount_billed` and `invoice_ids` of an object.
fn account(organization: &Organization, path: &str) -> (Value, Value) {
    let object = organization.get(path).ok();
    (object["amount_billed"].clone(), object["invoice_ids"].clone())
}

#[test]
fn what_is_billed_tells_how_much_and_by_which_invoices() {
    let organization = Server::shared().organization();
    let customer = organization.customer(json!({}));
    let toll = toll(&organization, &json!(customer), 6.94);
    let path = format!("/v1/tolls/{toll}");
    let before = organization.get(&path).ok();
    assert_eq!((&before["amount_billed"], &before["invoice_ids"]), (&json!(0), &json!([])));
    let first = bill(&organization, &customer, &json!([{"toll_id": toll, "amount": 2}])).id();
    let after = organization.get(&path).ok();
    assert_eq!((&after["amount_billed"], &after["invoice_ids"]), (&json!(2), &json!([first])));
    assert!(after["updated_at"].as_str() > before["updated_at"].as_str(), "a sync list shows it again");
    let bad = bill(&organization, &customer, &json!([{"toll_id": toll, "amount": 5}])).error(
        400,
        "invalid_request_error",
        "parameter_invalid",
    );
    assert!(bad["message"].as_str().unwrap().contains("at most 4.94"), "{bad}");
    let second = bill(&organization, &customer, &json!([{"toll_id": toll}])).ok();
    assert_eq!(second["total"], 4.94, "what is left");
    let second = second["id"].as_str().unwrap();
    assert_eq!(account(&organization, &path), (json!(6.94), json!([first, second])));
    settle(&organization, &first, "void").ok();
    assert_eq!(account(&organization, &path), (json!(4.94), json!([second])));
}

#[test]
fn a_rental_is_never_billed_above_its_price() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({"daily_rate": 100}));
    let rental = organization.rental(&vehicle, json!({"start_date": "2026-06-01", "end_date": "2026-06-05"}));
    let path = format!("/v1/rentals/{rental}");
    let customer = organization.get(&path).ok()["customer_id"].as_str().unwrap().to_owned();
    let lines = json!([{"rental_id": rental}, {"rental_id": rental}]);
    assert_eq!(bill(&organization, &customer, &lines).bad_fields()[0].1, "parameter_duplicate");
    let invoice = bill(&organization, &customer, &json!([{"rental_id": rental}])).id();
    let again = bill(&organization, &customer, &json!([{"rental_id": rental, "amount": 1}]));
    again.error(409, "invalid_request_error", "state_conflict");
    assert_eq!(account(&organization, &path), (json!(400), json!([invoice])));
    let other = organization.customer(json!({}));
    for change in [json!({"final_price": 399}), json!({"customer_id": other})] {
        let error = organization.patch(&path, &change).error(409, "invalid_request_error", "state_conflict");
        assert!(error["message"].as_str().unwrap().contains("is billed on invoice INV-000001."), "{error}");
    }
    organization.patch(&path, &json!({"final_price": 450})).ok();
    assert_eq!(bill(&organization, &customer, &json!([{"rental_id": rental}])).ok()["total"], 50);

    let unpriced = organization.rental(&organization.vehicle(json!({})), json!({}));
    let unpriced_path = format!("/v1/rentals/{unpriced}");
    let customer = organization.get(&unpriced_path).ok()["customer_id"].as_str().unwrap().to_owned();
    bill(&organization, &customer, &json!([{"rental_id": unpriced, "amount": 7}])).ok();
    let again = bill(&organization, &customer, &json!([{"rental_id": unpriced, "amount": 7}]));
    again.error(409, "invalid_request_error", "state_conflict");
}

#[test]
fn many_invoices_at_once_bill_a_rental_up_to_its_price() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    let rental = organization.rental(&vehicle, json!({"final_price": 10}));
    let path = format!("/v1/rentals/{rental}");
    let customer = organization.get(&path).ok()["customer_id"].as_str().unwrap().to_owned();
    let billed = std::thread::scope(|scope| {
        let one = || bill(&organization, &customer, &json!([{"rental_id": rental, "amount": 3}])).status;
        let running: Vec<_> = (0..12).map(|_| scope.spawn(one)).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).filter(|status| *status == 200).count()
    });
    assert_eq!(billed, 3);
    let (amount, invoices) = account(&organization, &path);
    assert_eq!((amount, invoices.as_array().unwrap().len()), (json!(9), 3));
}

#[test]
fn a_violation_that_the_fleet_has_paid_is_billed_with_what_it_cost() {
    let organization = Server::shared().organization();
    let customer = organization.customer(json!({}));
    let fields = json!({"summons_number": "1", "amount_due": 0, "payment_amount": 65, "customer_id": customer});
    let violation = organization.recorded("violations", &fields);
    assert_eq!(bill(&organization, &customer, &json!([{"violation_id": violation}])).ok()["total"], 65);
    bill(&organization, &customer, &json!([{"violation_id": violation}])).error(
        409,
        "invalid_request_error",
        "state_conflict",
    );
}

#[test]
fn tolls_and_violations_are_listed_by_what_is_billed_and_attached() {
    let organization = Server::shared().organization();
    let customer = organization.customer(json!({}));
    let whole = toll(&organization, &json!(customer), 5.0);
    let part = toll(&organization, &json!(customer), 6.0);
    let loose = toll(&organization, &Value::Null, 7.0);
    bill(&organization, &customer, &json!([{"toll_id": whole}, {"toll_id": part, "amount": 1}])).ok();
    let ids = |query: &str| -> Vec<String> {
        let page = organization.get(&format!("/v1/tolls?{query}")).ok();
        page["data"].as_array().unwrap().iter().map(|toll| toll["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids("billed=true"), std::slice::from_ref(&whole));
    assert_eq!(ids("billed=false"), [loose.clone(), part.clone()]);
    assert_eq!(ids(&format!("billed=false&starting_after={loose}")), std::slice::from_ref(&part));
    assert_eq!(ids(&format!("billed=false&customer={customer}")), std::slice::from_ref(&part));
    assert_eq!(ids(&format!("customer={customer}&billed=true")), std::slice::from_ref(&whole));
    assert_eq!(ids("attached=false"), [loose]);
    assert_eq!(ids("attached=true"), [part, whole]);
    assert_eq!(organization.get("/v1/violations?billed=false&limit=5").ok()["data"], json!([]));
    for (query, param) in
        [("billed=yes", "billed"), ("attached=1", "attached"), ("billed=true&attached=true", "billed")]
    {
        assert_eq!(organization.get(&format!("/v1/tolls?{query}")).bad_fields()[0].0, param, "{query}");
    }
}

#[test]
fn wrong_lines_are_named_by_their_place() {
    let organization = Server::shared().organization();
    let [customer, other] = [(); 2].map(|()| organization.customer(json!({})));
    let toll = toll(&organization, &json!(customer), 6.94);
    let loose = self::toll(&organization, &Value::Null, 1.0);
    let foreign = self::toll(&Server::shared().organization(), &Value::Null, 1.0);
    let vehicle = organization.vehicle(json!({}));
    let rental = organization.rental(&vehicle, json!({}));
    for (lines, param, code) in [
        (json!([{}]), "lines[0]", "parameter_invalid"),
        (json!([{"description": "x"}]), "lines[0]", "parameter_invalid"),
        (json!([{"amount": 1}]), "lines[0]", "parameter_invalid"),
        (json!([{"toll_id": toll, "violation_id": toll}]), "lines[0]", "parameter_invalid"),
        (json!([{"tol_id": toll}]), "lines[0]", "parameter_invalid"),
        (json!([{"description": "x", "amount": 1}, {"toll_id": 7}]), "lines[1].toll_id", "parameter_invalid"),
        (json!([{"toll_id": toll}, {"toll_id": toll}]), "lines[0]", "parameter_duplicate"),
        (json!([{"toll_id": foreign}]), "lines[0].toll_id", "resource_missing"),
        (json!([{"toll_id": "x"}]), "lines[0].toll_id", "resource_missing"),
        (json!([{"toll_id": loose}]), "lines[0].toll_id", "parameter_invalid"),
        (json!([{"toll_id": toll, "amount": 7}]), "lines[0].amount", "parameter_invalid"),
        (json!([{"rental_id": rental, "amount": 7}]), "lines[0].rental_id", "parameter_invalid"),
    ] {
        let bad = bill(&organization, &customer, &lines).bad_fields();
        assert_eq!(bad[0], (param.to_owned(), code.to_owned()), "{lines}");
        assert!(bad.iter().all(|(param, _)| param != "lines"), "{lines}: they were sent, but: {bad:?}");
    }
    let bad = bill(&organization, &other, &json!([{"toll_id": toll}])).bad_fields();
    assert_eq!(bad[0].0, "lines[0].toll_id", "another customer's toll");
    let whose = organization.get(&format!("/v1/rentals/{rental}")).ok()["customer_id"].as_str().unwrap().to_owned();
    let bad = bill(&organization, &whose, &json!([{"rental_id": rental}])).bad_fields();
    assert_eq!(bad[0].0, "lines[0].amount", "a rental without a price");
    bill(&organization, &whose, &json!([{"rental_id": rental, "amount": 7}])).ok();
}

#[test]
fn the_same_toll_recorded_twice_by_hand_is_refused() {
    let organization = Server::shared().organization();
    let path = format!("/admin/v1/organizations/{}/tolls", organization.id);
    let fields = json!({"amount": 5, "agency": "MTAB&T", "transaction_id": "T1"});
    let first = organization.server.admin("POST", &path, &fields).id();
    let error = organization.server.admin("POST", &path, &fields).error(409, "invalid_request_error", "state_conflict");
    assert!(error["message"].as_str().unwrap().contains(&first), "{error}");
}

#[test]
fn an_invoice_prints_as_a_page_without_scripts_or_anything_from_elsewhere() {
    let organization = Server::shared().organization_with(&json!({"name": "Sun & <b>Rise</b>"}));
    let customer =
        organization.post("/v1/customers", &json!({"full_name": "Ada \"O'Neill\"", "email": "ada@example.com"})).id();
    let lines =
        json!([{"description": "<script>alert(1)</script>", "amount": 1234.5}, {"description": "Fee", "amount": 5}]);
    let invoice = bill(&organization, &customer, &lines).id();
    let print = || organization.server.admin("GET", &format!("/admin/v1/invoices/{invoice}/print"), &Value::Null);
    let page = print();
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
    let text = page.text();
    for shown in [
        "Sun &amp; &lt;b&gt;Rise&lt;/b&gt;",
        "Ada &quot;O&#39;Neill&quot;",
        "ada@example.com",
        "INV-000001",
        "1,234.50",
        "$1,239.50",
        "&lt;script&gt;",
        "Open",
    ] {
        assert!(text.contains(shown), "{shown} in {text}");
    }
    assert!(!text.contains("<script") && !text.contains("http") && !text.contains("src="), "{text}");
    settle(&organization, &invoice, "pay").ok();
    assert!(print().text().contains(">Paid on "));
    let unknown = "/admin/v1/invoices/01900000-0000-7000-8000-000000000000/print";
    organization.server.admin("GET", unknown, &Value::Null).error(404, "invalid_request_error", "resource_missing");
}

/// A PNG image of one pixel.
const LOGO: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0\x3a\x7e\x9b\x55\0\0\0\nIDAT\x78\x9c\x63\xa8\x07\0\0\x81\0\x80\xd3\x94\x53\x4a\0\0\0\0IEND\xae\x42\x60\x82";

#[test]
fn an_invoice_is_a_pdf_file_that_is_the_same_each_time() {
    let organization = Server::shared().organization();
    let customer = organization.post("/v1/customers", &json!({"full_name": "Ada"})).id();
    let invoice = bill(&organization, &customer, &json!([{"description": "Fee", "amount": 5}])).id();
    let pdf = |query: &str| {
        organization.server.admin("GET", &format!("/admin/v1/invoices/{invoice}/pdf{query}"), &Value::Null)
    };
    let file = pdf("");
    assert_eq!((file.status, file.header("content-type")), (200, Some("application/pdf")));
    assert_eq!(file.header("content-disposition"), Some("attachment; filename=\"INV-000001.pdf\""));
    assert!(file.body.starts_with(b"%PDF-"));
    assert_eq!(file.body, pdf("").body);
    assert_ne!(file.body, pdf("?language=de&paper=a4").body);
    let error = pdf("?language=it&paper=a5").error(400, "invalid_request_error", "parameter_invalid");
    assert_eq!(error["errors"][0]["message"], "`language` must be one of en, es, fr, de.");
    assert_eq!(error["errors"][1]["message"], "`paper` must be one of a4, letter.");
    pdf("?lang=de").error(400, "invalid_request_error", "parameter_unknown");
}

#[test]
fn a_logo_is_set_shown_replaced_and_removed() {
    let organization = Server::shared().organization();
    let path = format!("/admin/v1/organizations/{}/logo", organization.id);
    let customer = organization.post("/v1/customers", &json!({"full_name": "Ada"})).id();
    let invoice = bill(&organization, &customer, &json!([{"description": "Fee", "amount": 5}])).id();
    let page = || organization.server.admin("GET", &format!("/admin/v1/invoices/{invoice}/print"), &Value::Null).text();
    let send = |method: &str, body: &[u8]| organization.server.admin_bytes(method, &path, "image/png", body);
    send("GET", b"").error(404, "invalid_request_error", "resource_missing");
    send("DELETE", b"").error(404, "invalid_request_error", "resource_missing");
    assert!(!page().contains("<img"));
    for _ in 0..2 {
        let set = send("PUT", LOGO).ok();
        assert_eq!((&set["object"], &set["width"], &set["bytes"]), (&json!("logo"), &json!(1), &json!(LOGO.len())));
    }
    assert_eq!(send("GET", b"").body, LOGO);
    assert!(page().contains("<img") && page().contains("data:image/png;base64,iVBOR"));
    let error = send("PUT", b"GIF89a").error(400, "invalid_request_error", "parameter_invalid");
    assert!(error["message"].as_str().unwrap().ends_with("must be a PNG image: Invalid PNG signature."), "{error}");
    assert_eq!(send("PUT", &vec![0; (256 << 10) + 1]).status, 413);
    assert_eq!(send("GET", b"").body, LOGO, "what was refused changed nothing");
    send("DELETE", b"").ok();
    send("GET", b"").error(404, "invalid_request_error", "resource_missing");
    let unknown = "/admin/v1/organizations/01900000-0000-7000-8000-000000000000/logo";
    let refused = organization.server.admin_bytes("PUT", unknown, "image/png", LOGO);
    refused.error(404, "invalid_request_error", "resource_missing");
}
