//! Credit notes: never above what an invoice billed, billable again or not, and refunds.

use crate::support::{Organization, Reply, Server};
use serde_json::{Value, json};

fn bill(organization: &Organization, customer: &str, lines: &Value) -> Value {
    let path = format!("/admin/v1/organizations/{}/invoices", organization.id);
    organization.server.admin("POST", &path, &json!({"customer_id": customer, "lines": lines})).ok()
}

fn act(organization: &Organization, plural: &str, id: &Value, word: &str, body: &Value) -> Reply {
    organization.server.admin("POST", &format!("/admin/v1/{plural}/{}/{word}", id.as_str().unwrap()), body)
}

fn credit(organization: &Organization, invoice: &Value, body: &Value) -> Reply {
    act(organization, "invoices", &invoice["id"], "credit", body)
}

fn toll(organization: &Organization, customer: &str) -> String {
    let fields = json!({"amount": 6.94, "agency": "MTAB&T", "occurred_on": "2026-06-02", "customer_id": customer});
    organization.recorded("tolls", &fields)
}

#[track_caller]
fn now(organization: &Organization, invoice: &Value) -> Value {
    organization.get(&format!("/v1/invoices/{}", invoice["id"].as_str().unwrap())).ok()
}

#[test]
fn lines_and_parts_of_a_paid_invoice_are_credited_and_never_more_than_they_billed() {
    let organization = Server::shared().organization();
    let customer = organization.customer(json!({}));
    let toll = toll(&organization, &customer);
    let lines =
        json!([{"description": "Cleaning", "amount": 30}, {"toll_id": toll}, {"description": "Fee", "amount": 5}]);
    let invoice = bill(&organization, &customer, &lines);
    assert_eq!((&invoice["amount_credited"], &invoice["credit_note_ids"]), (&json!(0), &json!([])));
    act(&organization, "invoices", &invoice["id"], "pay", &Value::Null).ok();

    let asked = json!({"lines": [{"line": 0, "amount": 10.5}, {"line": 1}], "reason": "Not clean"});
    let first = credit(&organization, &invoice, &asked).ok();
    assert_eq!(first["credit_note_number"], "CN-000001");
    assert_eq!((&first["invoice_id"], &first["invoice_number"]), (&invoice["id"], &json!("INV-000001")));
    assert_eq!((&first["customer_id"], &first["reason"]), (&json!(customer), &json!("Not clean")));
    assert_eq!((&first["total"], &first["currency"]), (&json!(17.44), &json!("USD")));
    let line = |line: u32, text: &str, amount: f64, toll: Value| {
        json!({
            "line": line, "description": text, "amount": amount, "rebill": false, "rental_id": null, "toll_id": toll,
            "violation_id": null,
        })
    };
    let expected =
        json!([line(0, "Cleaning", 10.5, Value::Null), line(1, "Toll MTAB&T 2026-06-02", 6.94, json!(toll))]);
    assert_eq!(first["lines"], expected);
    assert_eq!(organization.get(&format!("/v1/credit_notes/{}", first["id"].as_str().unwrap())).ok(), first);
    let after = now(&organization, &invoice);
    assert_eq!((&after["amount_credited"], &after["credit_note_ids"]), (&json!(17.44), &json!([first["id"]])));
    assert_eq!((&after["status"], &after["total"]), (&json!("paid"), &json!(41.94)));

    let above = credit(&organization, &invoice, &json!({"lines": [{"line": 0, "amount": 19.51}]}));
    let error = above.error(400, "invalid_request_error", "parameter_invalid");
    assert_eq!(
        error["message"],
        "`lines[0].amount` must be at most 19.5: line 0 billed 30, and 10.5 is credited already."
    );
    let error = credit(&organization, &invoice, &json!({"lines": [{"line": 1, "amount": 0.01}]}));
    assert_eq!(error.bad_fields()[0].0, "lines[0].amount");

    let rest = credit(&organization, &invoice, &json!({})).ok();
    assert_eq!((&rest["total"], &rest["credit_note_number"]), (&json!(24.5), &json!("CN-000002")));
    assert_eq!(rest["lines"].as_array().unwrap().iter().map(|line| &line["line"]).collect::<Vec<_>>(), [0, 2]);
    let error = credit(&organization, &invoice, &Value::Null).error(409, "invalid_request_error", "state_conflict");
    let message = "Nothing of invoice INV-000001 is left to credit: of 41.94, 41.94 is credited already.";
    assert_eq!(error["message"], message);
    assert_eq!(now(&organization, &invoice)["amount_credited"], 41.94);
}

#[test]
fn what_a_credit_note_makes_billable_goes_to_the_right_customer_and_a_kindness_is_not_billed_again() {
    let organization = Server::shared().organization();
    let [wrong, right] = [(); 2].map(|()| organization.customer(json!({})));
    let [mistake, kindness] = [(); 2].map(|()| toll(&organization, &wrong));
    let invoice = bill(&organization, &wrong, &json!([{"toll_id": mistake}, {"toll_id": kindness}]));
    act(&organization, "invoices", &invoice["id"], "pay", &Value::Null).ok();
    let [mistake_path, kindness_path] = [&mistake, &kindness].map(|id| format!("/v1/tolls/{id}"));
    organization.patch(&mistake_path, &json!({"customer_id": right})).error(
        409,
        "invalid_request_error",
        "state_conflict",
    );

    let asked = json!({"rebill": true, "lines": [{"line": 0}, {"line": 1, "rebill": false}]});
    let note = credit(&organization, &invoice, &asked).ok();
    assert_eq!(
        (&note["rebill"], &note["lines"][0]["rebill"], &note["lines"][1]["rebill"]),
        (&json!(true), &json!(true), &json!(false))
    );
    assert_eq!(organization.get(&mistake_path).ok()["amount_billed"], 0);
    assert_eq!(organization.get(&kindness_path).ok()["amount_billed"], 6.94);
    let unbilled = organization.get(&format!("/v1/tolls?billed=false&customer={wrong}")).ok();
    assert_eq!(unbilled["data"].as_array().unwrap().len(), 1, "{unbilled}");

    organization.patch(&mistake_path, &json!({"customer_id": right})).ok();
    organization.patch(&kindness_path, &json!({"customer_id": right})).error(
        409,
        "invalid_request_error",
        "state_conflict",
    );
    let second = bill(&organization, &right, &json!([{"toll_id": mistake}]));
    assert_eq!(second["total"], 6.94);
    assert_eq!(organization.get(&mistake_path).ok()["amount_billed"], 6.94);
    let again = organization.server.admin(
        "POST",
        &format!("/admin/v1/organizations/{}/invoices", organization.id),
        &json!({"customer_id": right, "lines": [{"toll_id": mistake}]}),
    );
    again.error(409, "invalid_request_error", "state_conflict");
}

/// Nobody said `rebill` when the toll of a wrong renter was credited.
#[test]
fn what_was_credited_for_good_can_be_billed_again_later() {
    let organization = Server::shared().organization();
    let [wrong, right] = [(); 2].map(|()| organization.customer(json!({})));
    let mistake = toll(&organization, &wrong);
    let lines = json!([{"toll_id": mistake}, {"description": "Cleaning", "amount": 5}]);
    let invoice = bill(&organization, &wrong, &lines);
    let note = credit(&organization, &invoice, &Value::Null).ok();
    let path = format!("/v1/tolls/{mistake}");
    let give = || organization.patch(&path, &json!({"customer_id": right}));
    let refused = give().error(409, "invalid_request_error", "state_conflict");
    assert!(
        refused["message"].as_str().unwrap().contains("`rental-cli credit-notes rebill` adds that later"),
        "{refused}"
    );
    let again = || act(&organization, "credit_notes", &note["id"], "rebill", &Value::Null);
    let changed = again().ok();
    assert_eq!((&changed["lines"][0]["rebill"], &changed["lines"][1]["rebill"]), (&json!(true), &json!(false)));
    assert_eq!(organization.get(&path).ok()["amount_billed"], 0);
    give().ok();
    assert_eq!(bill(&organization, &right, &json!([{"toll_id": mistake}]))["total"], 6.94);
    assert_eq!(again().ok()["updated_at"], changed["updated_at"], "nothing is left to change");
    assert_eq!(organization.get(&path).ok()["amount_billed"], 6.94);
}

#[test]
fn a_part_that_is_credited_for_rebilling_is_all_that_is_billed_again() {
    let organization = Server::shared().organization();
    let customer = organization.customer(json!({}));
    let toll = toll(&organization, &customer);
    let invoice = bill(&organization, &customer, &json!([{"toll_id": toll}]));
    credit(&organization, &invoice, &json!({"lines": [{"line": 0, "amount": 2, "rebill": true}]})).ok();
    assert_eq!(organization.get(&format!("/v1/tolls/{toll}")).ok()["amount_billed"], 4.94);
    assert_eq!(bill(&organization, &customer, &json!([{"toll_id": toll}]))["total"], 2);
}

#[test]
fn a_refund_is_noted_once_and_only_of_a_paid_invoice() {
    let organization = Server::shared().organization();
    let customer = organization.customer(json!({}));
    let invoice = bill(&organization, &customer, &json!([{"description": "Fee", "amount": 5}]));
    let note = credit(&organization, &invoice, &json!({"lines": [{"line": 0, "amount": 2}]})).ok();
    let refund = |body: &Value| act(&organization, "credit_notes", &note["id"], "refund", body);
    let error = refund(&Value::Null).error(409, "invalid_request_error", "state_conflict");
    assert!(error["message"].as_str().unwrap().starts_with("Invoice INV-000001 is not paid"), "{error}");
    act(&organization, "invoices", &invoice["id"], "pay", &Value::Null).ok();
    let note = credit(&organization, &invoice, &json!({"lines": [{"line": 0, "amount": 1}]})).ok();
    let refund = |body: &Value| act(&organization, "credit_notes", &note["id"], "refund", body);
    let bad = refund(&json!({"refunded_at": "yesterday", "refund_method": "x".repeat(101)})).bad_fields();
    assert_eq!(bad.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["refund_method", "refunded_at"]);
    let asked = json!({"refunded_at": "2026-06-05T10:00:00Z", "refund_method": "card", "refund_reference": "re_1"});
    let refunded = refund(&asked).ok();
    assert_eq!(refunded["refunded_at"], "2026-06-05T10:00:00.000Z");
    assert_eq!((&refunded["refund_method"], &refunded["refund_reference"]), (&json!("card"), &json!("re_1")));
    refund(&asked).error(409, "invalid_request_error", "state_conflict");
    let path = format!("/admin/v1/organizations/{}/events", organization.id);
    let events = organization.server.admin("GET", &path, &Value::Null).ok();
    let mut types: Vec<&str> =
        events["data"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect();
    types.retain(|kind| kind.starts_with("credit_note"));
    types.sort_unstable();
    assert_eq!(types, ["credit_note.created", "credit_note.created", "credit_note.refunded"]);
}

#[test]
fn a_credit_that_lowered_what_was_paid_is_not_refunded_and_a_later_one_is() {
    let organization = Server::shared().organization();
    let customer = organization.customer(json!({}));
    let invoice = bill(&organization, &customer, &json!([{"description": "Stay", "amount": 100}]));
    let part = |amount: u32| credit(&organization, &invoice, &json!({"lines": [{"line": 0, "amount": amount}]})).ok();
    let before = part(30);
    std::thread::sleep(std::time::Duration::from_millis(2));
    act(&organization, "invoices", &invoice["id"], "pay", &Value::Null).ok();
    let after = part(20);
    let refund = |note: &Value| act(&organization, "credit_notes", &note["id"], "refund", &Value::Null);
    let error = refund(&before).error(409, "invalid_request_error", "state_conflict");
    let text = error["message"].as_str().unwrap();
    assert!(text.starts_with("Credit note CN-000001 was issued before invoice INV-000001 was paid"), "{text}");
    assert!(text.contains("owed 30 less"), "{text}");
    refund(&after).ok();
}

/// The customer paid in full, then got a credit, and the payment was booked last.
#[test]
fn a_payment_that_is_booked_late_has_its_own_time_so_that_the_credit_is_refunded() {
    let organization = Server::shared().organization();
    let customer = organization.customer(json!({}));
    let bill = || bill(&organization, &customer, &json!([{"description": "Stay", "amount": 100}]));
    let pay = |invoice: &Value, body: &Value| act(&organization, "invoices", &invoice["id"], "pay", body);
    let part = |invoice: &Value| {
        std::thread::sleep(std::time::Duration::from_millis(2));
        let note = credit(&organization, invoice, &json!({"lines": [{"line": 0, "amount": 30}]})).ok();
        std::thread::sleep(std::time::Duration::from_millis(2));
        note
    };
    let refund = |note: &Value| act(&organization, "credit_notes", &note["id"], "refund", &Value::Null);
    let invoice = bill();
    let note = part(&invoice);
    let error = refund(&note).error(409, "invalid_request_error", "state_conflict");
    let text = error["message"].as_str().unwrap();
    let step = format!("(`paid_at`), which is before {}", note["created_at"].as_str().unwrap());
    assert!(text.contains(&step), "{text}");
    for body in [
        json!({"paid_at": "2099-01-01T00:00:00Z"}),
        json!({"paid_at": "2020-01-01T00:00:00Z"}),
        json!({"paid_at": "today"}),
    ] {
        assert_eq!(pay(&invoice, &body).bad_fields()[0].0, "paid_at", "{body}");
    }
    assert!(pay(&invoice, &json!({"paidAt": null})).status == 400 && now(&organization, &invoice)["status"] == "open");
    let paid = pay(&invoice, &json!({"paid_at": invoice["created_at"]})).ok();
    assert_eq!((&paid["status"], &paid["paid_at"]), (&json!("paid"), &invoice["created_at"]));
    refund(&note).ok();

    // The payment was noted without its time: that is corrected to an earlier one, never to a later one.
    let invoice = bill();
    let note = part(&invoice);
    let paid = pay(&invoice, &Value::Null).ok();
    let error = refund(&note).error(409, "invalid_request_error", "state_conflict");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains(&format!("(`paid_at`), which is before {}", note["created_at"].as_str().unwrap())),
        "{error}"
    );
    assert_eq!(pay(&invoice, &json!({"paid_at": "2020-01-01T00:00:00Z"})).bad_fields()[0].0, "paid_at");
    pay(&invoice, &json!({"paid_at": paid["paid_at"]})).error(409, "invalid_request_error", "state_conflict");
    let corrected = pay(&invoice, &json!({"paid_at": invoice["created_at"]})).ok();
    assert_eq!((&corrected["status"], &corrected["paid_at"]), (&json!("paid"), &invoice["created_at"]));
    refund(&note).ok();
    let path = format!("/admin/v1/organizations/{}/events?limit=100", organization.id);
    let events = organization.server.admin("GET", &path, &Value::Null).ok();
    let paid = events["data"].as_array().unwrap().iter().filter(|event| event["type"] == "invoice.paid").count();
    assert_eq!(paid, 2, "each payment is told once");
}

#[test]
fn what_an_agency_gives_back_after_the_line_was_credited_is_recorded() {
    let organization = Server::shared().organization();
    let customer = organization.customer(json!({}));
    let header = "transaction_id,occurred_at,agency,plaza,plate,plate_state,transponder_number,amount\n";
    let import = |amount: &str| {
        let file = format!("{header}T1,2026-06-02T14:00:00Z,A,,X1,,,{amount}\n");
        super::import(&organization, "tolls", "", &file).ok()
    };
    import("7");
    let toll = super::all(&organization, "tolls")[0]["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/tolls/{toll}");
    organization.patch(&path, &json!({"customer_id": customer})).ok();
    let invoice = bill(&organization, &customer, &json!([{"toll_id": toll}]));
    act(&organization, "invoices", &invoice["id"], "pay", &Value::Null).ok();
    assert_eq!(super::counts(&import("-7")), [0, 0, 0, 0, 1], "it is billed");
    credit(&organization, &invoice, &json!({"lines": [{"line": 0, "amount": 3}]})).ok();
    let refused = import("-7");
    let text = refused["errors"][0]["message"].as_str().unwrap();
    assert!(text.contains("below 4: 7 is billed, and of that 3 is credited"), "{text}");
    credit(&organization, &invoice, &json!({"lines": [{"line": 0}]})).ok();
    assert_eq!(super::counts(&import("-7")), [0, 1, 0, 0, 0]);
    let toll = organization.get(&path).ok();
    assert_eq!((&toll["amount"], &toll["amount_billed"]), (&json!(0), &json!(7)));
    assert_eq!(super::counts(&import("-7")), [0, 0, 1, 0, 0], "once");
    assert_eq!(organization.get("/v1/tolls?billed=false").ok()["data"], json!([]), "nothing is billed again");
}

#[test]
fn a_credited_invoice_cannot_be_voided_and_a_void_one_not_credited() {
    let organization = Server::shared().organization();
    let customer = organization.customer(json!({}));
    let toll = toll(&organization, &customer);
    let invoice = bill(&organization, &customer, &json!([{"toll_id": toll}]));
    credit(&organization, &invoice, &json!({"lines": [{"line": 0, "amount": 1, "rebill": true}]})).ok();
    let void = act(&organization, "invoices", &invoice["id"], "void", &Value::Null);
    let error = void.error(409, "invalid_request_error", "state_conflict");
    assert!(error["message"].as_str().unwrap().contains("credit 1 of the 6.94"), "{error}");
    assert_eq!(organization.get(&format!("/v1/tolls/{toll}")).ok()["amount_billed"], 5.94);
    let other = bill(&organization, &customer, &json!([{"description": "Fee", "amount": 5}]));
    act(&organization, "invoices", &other["id"], "void", &Value::Null).ok();
    credit(&organization, &other, &Value::Null).error(409, "invalid_request_error", "state_conflict");
}

#[test]
fn wrong_credit_lines_are_named_by_their_place() {
    let organization = Server::shared().organization();
    let customer = organization.customer(json!({}));
    let invoice = bill(
        &organization,
        &customer,
        &json!([{"description": "Fee", "amount": 5}, {"description": "Free", "amount": 0}]),
    );
    for (lines, param, code) in [
        (json!([]), "lines", "parameter_invalid"),
        (json!([{}]), "lines[0].line", "parameter_invalid"),
        (json!([{"line": 2}]), "lines[0].line", "parameter_invalid"),
        (json!([{"line": -1}]), "lines[0].line", "parameter_invalid"),
        (json!([{"line": 0}, {"line": 0}]), "lines[1].line", "parameter_duplicate"),
        (json!([{"line": 0, "amount": 5.01}]), "lines[0].amount", "parameter_invalid"),
        (json!([{"line": 0, "amount": 0}]), "lines[0].amount", "parameter_invalid"),
        (json!([{"line": 0, "amount": -1}]), "lines[0].amount", "parameter_invalid"),
        (json!([{"line": 0, "amount": 0.001}]), "lines[0].amount", "parameter_invalid"),
        (json!([{"line": 1}]), "lines[0].amount", "parameter_invalid"),
        (json!([{"line": 0, "toll_id": null}]), "lines[0]", "parameter_invalid"),
        (json!([{"line": 0, "rebill": "yes"}]), "lines[0].rebill", "parameter_invalid"),
    ] {
        let bad = credit(&organization, &invoice, &json!({"lines": lines})).bad_fields();
        assert_eq!(bad[0], (param.to_owned(), code.to_owned()), "{lines}");
    }
    let path = format!("/admin/v1/organizations/{}/credit_notes", organization.id);
    let bad = organization.server.admin("POST", &path, &json!({"invoice_id": customer})).bad_fields();
    assert_eq!(bad[0], ("invoice_id".to_owned(), "resource_missing".to_owned()));
    let sent_twice = credit(&organization, &invoice, &json!({"invoice_id": invoice["id"]})).bad_fields();
    assert_eq!(sent_twice[0].0, "invoice_id");
    assert_eq!(now(&organization, &invoice)["amount_credited"], 0, "nothing of this was recorded");
}

#[test]
fn many_credit_notes_at_once_never_credit_more_than_the_invoice() {
    let organization = Server::shared().organization();
    let customer = organization.customer(json!({}));
    let invoice = bill(&organization, &customer, &json!([{"description": "Fee", "amount": 10}]));
    let done = std::thread::scope(|scope| {
        let one = || credit(&organization, &invoice, &json!({"lines": [{"line": 0, "amount": 3}]})).status;
        let running: Vec<_> = (0..12).map(|_| scope.spawn(one)).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).filter(|status| *status == 200).count()
    });
    assert_eq!(done, 3);
    assert_eq!(now(&organization, &invoice)["amount_credited"], 9);
    let mut numbers: Vec<String> = super::all(&organization, "credit_notes")
        .iter()
        .map(|note| note["credit_note_number"].as_str().unwrap().to_owned())
        .collect();
    numbers.sort();
    assert_eq!(numbers, ["CN-000001", "CN-000002", "CN-000003"], "a refused credit note takes no number");
}

#[test]
fn a_credit_note_is_created_once_for_an_idempotency_key() {
    let organization = Server::shared().organization();
    let customer = organization.customer(json!({}));
    let invoice = bill(&organization, &customer, &json!([{"description": "Fee", "amount": 10}]));
    let path = format!("/admin/v1/invoices/{}/credit", invoice["id"].as_str().unwrap());
    let token = format!("Bearer {}", organization.server.admin_token);
    let body = br#"{"lines":[{"line":0,"amount":3}]}"#;
    let headers = [("Authorization", token.as_str()), ("Content-Type", "application/json"), ("Idempotency-Key", "k1")];
    let send = || crate::support::Connection::open(&organization.server.address).send("POST", &path, &headers, body);
    let first = send();
    let second = send();
    assert_eq!(second.header("idempotent-replayed"), Some("true"));
    assert_eq!(first.ok(), second.ok());
    assert_eq!(now(&organization, &invoice)["amount_credited"], 3);
}

#[test]
fn credit_notes_are_listed_by_invoice_customer_and_number_and_print() {
    let organization = Server::shared().organization();
    let customer = organization.post("/v1/customers", &json!({"full_name": "Ada", "preferred_language": "de"})).id();
    let toll = toll(&organization, &customer);
    let invoices = [(); 2].map(|()| bill(&organization, &customer, &json!([{"description": "Fee", "amount": 5}])));
    let third = bill(&organization, &customer, &json!([{"toll_id": toll}]));
    let notes: Vec<Value> = invoices
        .iter()
        .chain([&third])
        .map(|invoice| credit(&organization, invoice, &json!({"reason": "Kulanz"})).ok())
        .collect();
    let ids = |query: String| -> Vec<Value> {
        let page = organization.get(&format!("/v1/credit_notes?{query}")).ok();
        page["data"].as_array().unwrap().iter().map(|note| note["id"].clone()).collect()
    };
    assert_eq!(ids(format!("invoice={}", invoices[0]["id"].as_str().unwrap())), [notes[0]["id"].clone()]);
    assert_eq!(ids(format!("customer={customer}")).len(), 3);
    assert_eq!(ids("credit_note_number=CN-000002".into()), [notes[1]["id"].clone()]);
    let path = format!("/admin/v1/organizations/{}/invoices?invoice_number=INV-000002", organization.id);
    let found = organization.server.admin("GET", &path, &Value::Null).ok();
    assert_eq!(found["data"][0]["id"], invoices[1]["id"], "operators find an invoice by its number");

    let get = |object: &str, id: &Value, word: &str| {
        organization.server.admin("GET", &format!("/admin/v1/{object}/{}/{word}", id.as_str().unwrap()), &Value::Null)
    };
    let page = get("credit_notes", &notes[2]["id"], "print").text();
    for shown in ["Gutschrift", "CN-000003", "INV-000003", "Maut MTAB&amp;T 2. Juni 2026", "Kulanz", "Ada"] {
        assert!(page.contains(shown), "{shown} in {page}");
    }
    let file = get("credit_notes", &notes[2]["id"], "pdf");
    assert_eq!(file.header("content-disposition"), Some("attachment; filename=\"CN-000003.pdf\""));
    assert!(file.body.starts_with(b"%PDF-"));
    let page = get("invoices", &third["id"], "print").text();
    assert!(page.contains("Gutgeschrieben") && page.contains("Offener Betrag") && page.contains("Maut MTAB"), "{page}");
}
