//! Lines with a negative amount: the total stays 0 or more, and credits are spread so that no more goes back than was paid.

use super::all;
use crate::{
    cli::{Cli, ran, url},
    support::{Organization, Reply, Server},
};
use serde_json::{Value, json};

fn post(organization: &Organization, path: &str, body: &Value) -> Reply {
    organization.server.admin("POST", &format!("/admin/v1/{path}"), body)
}

fn bill(organization: &Organization, body: &Value) -> Reply {
    post(organization, &format!("organizations/{}/invoices", organization.id), body)
}

fn invoice(organization: &Organization, customer: &str, lines: &Value) -> Value {
    bill(organization, &json!({"customer_id": customer, "lines": lines})).ok()
}

fn credit(organization: &Organization, invoice: &Value, body: &Value) -> Reply {
    post(organization, &format!("invoices/{}/credit", invoice["id"].as_str().unwrap()), body)
}

fn line(text: &str, amount: f64) -> Value {
    json!({"description": text, "amount": amount})
}

#[test]
fn a_discount_lowers_the_total_and_is_in_the_document_with_its_sign() {
    let organization = Server::shared().organization();
    let customer = organization.customer(json!({}));
    let made = invoice(&organization, &customer, &json!([line("Ride", 100.0), line("Discount", -10.0)]));
    assert_eq!((&made["total"], &made["lines"][1]["amount"]), (&json!(90), &json!(-10)));
    let path = format!("/admin/v1/invoices/{}/print", made["id"].as_str().unwrap());
    let page = organization.server.admin("GET", &path, &Value::Null).text();
    assert!(page.contains(">-10.00<") && page.contains("$90.00"), "{page}");
    let taxed = json!({"customer_id": customer, "tax_name": "VAT", "tax_rate": 19,
        "lines": [line("Ride", 100.0), line("Discount", -10.0)]});
    let taxed = bill(&organization, &taxed).ok();
    assert_eq!((&taxed["tax_amount"], &taxed["total"]), (&json!(17.1), &json!(107.1)));
    let free = invoice(&organization, &customer, &json!([line("Ride", 100.0), line("Discount", -100.0)]));
    assert_eq!(free["total"], 0);
    credit(&organization, &free, &Value::Null).error(409, "invalid_request_error", "state_conflict");
    let events = organization.get("/v1/events?type=invoice.created&limit=10").ok();
    assert_eq!(events["data"][0]["data"]["lines"][1]["amount"], -10, "{events}");
}

#[test]
fn a_total_below_zero_names_the_discounts_and_the_sum() {
    let organization = Server::shared().organization();
    let customer = organization.customer(json!({}));
    let toll = json!({"amount": 6.94, "agency": "A", "occurred_on": "2026-06-02", "customer_id": customer});
    let toll = organization.recorded("tolls", &toll);
    let try_lines = |lines: Value| bill(&organization, &json!({"customer_id": customer, "lines": lines}));
    let bad = try_lines(json!([line("Off", -3.0), line("Ride", 10.0), line("Off", -8.5)]));
    let error = bad.error(400, "invalid_request_error", "parameter_invalid");
    let named: Vec<&Value> = error["errors"].as_array().unwrap().iter().map(|one| &one["param"]).collect();
    assert_eq!(named, ["lines[0].amount", "lines[2].amount"]);
    assert!(error["message"].as_str().unwrap().contains("the lines add up to -1.5"), "{error}");
    let bad = try_lines(json!([line("Ride", 10.0), {"toll_id": toll, "amount": -1}]));
    let error = bad.error(400, "invalid_request_error", "parameter_invalid");
    assert_eq!(error["param"], "lines[1].amount");
    assert!(error["message"].as_str().unwrap().contains("a discount is a line of its own"), "{error}");
    for (amount, words) in [(json!(-0.001), "decimals"), (json!(-1e11), "at least -99999999999.9999")] {
        let error = try_lines(json!([line("Ride", 10.0), {"description": "Off", "amount": amount}]));
        let error = error.error(400, "invalid_request_error", "parameter_invalid");
        assert!(error["message"].as_str().unwrap().contains(words), "{error}");
    }
    assert!(all(&organization, "invoices").is_empty());
    assert_eq!(organization.get(&format!("/v1/tolls/{toll}")).ok()["amount_billed"], 0);
}

#[test]
fn a_line_is_credited_up_to_its_amount_less_its_part_of_the_discounts() {
    let organization = Server::shared().organization_with(&json!({"name": "Yen", "default_currency": "JPY"}));
    let customer = organization.customer(json!({}));
    let lines = json!([line("A", 100.0), line("B", 100.0), line("Off", -100.0), line("C", 100.0)]);
    let body = json!({"customer_id": customer, "lines": lines, "tax_name": "VAT", "tax_rate": 10});
    let made = bill(&organization, &body).ok();
    assert_eq!(made["total"], 220);
    let error = credit(&organization, &made, &json!({"lines": [{"line": 0, "amount": 68}]}));
    let error = error.error(400, "invalid_request_error", "parameter_invalid");
    let rule = "must be at most 67: line 0 billed 100 less 33 of the discounts, and 0 is credited already";
    assert!(error["message"].as_str().unwrap().contains(rule), "{error}");
    let error = credit(&organization, &made, &json!({"lines": [{"line": 2}]}));
    let error = error.error(400, "invalid_request_error", "parameter_invalid");
    assert!(error["param"] == "lines[0].line" && error["message"].as_str().unwrap().contains("a discount of -100"));

    let first = credit(&organization, &made, &json!({"lines": [{"line": 0, "amount": 20}, {"line": 1}]})).ok();
    let (a, b) = (&first["lines"][0], &first["lines"][1]);
    assert_eq!(
        (&a["amount"], &a["discount"], &b["amount"], &b["discount"]),
        (&json!(20), &json!(10), &json!(66), &json!(34))
    );
    let last = credit(&organization, &made, &Value::Null).ok();
    let (a, c) = (&last["lines"][0], &last["lines"][1]);
    assert_eq!(
        (&a["amount"], &a["discount"], &c["amount"], &c["discount"]),
        (&json!(47), &json!(23), &json!(67), &json!(33))
    );
    let sums = ["total", "tax_amount"].map(|name| first[name].as_i64().unwrap() + last[name].as_i64().unwrap());
    assert_eq!(sums, [220, 20]);
    credit(&organization, &made, &Value::Null).error(409, "invalid_request_error", "state_conflict");
}

#[test]
fn what_is_credited_with_its_discount_can_be_billed_again_in_full() {
    let organization = Server::shared().organization();
    let customer = organization.customer(json!({}));
    let toll = |number: &str| {
        let fields = json!({"amount": 10, "agency": "A", "transaction_id": number, "occurred_on": "2026-06-02", "customer_id": customer});
        organization.recorded("tolls", &fields)
    };
    let tolls = ["1", "2", "3"].map(toll);
    let billed =
        || tolls.each_ref().map(|id| organization.get(&format!("/v1/tolls/{id}")).ok()["amount_billed"].clone());
    let lines = json!([{"toll_id": tolls[0]}, {"toll_id": tolls[1]}, {"toll_id": tolls[2]}, line("Off", -5.0)]);
    let made = invoice(&organization, &customer, &lines);
    assert_eq!(billed(), [10, 10, 10]);
    credit(&organization, &made, &json!({"lines": [{"line": 0}], "rebill": true})).ok();
    let kept = credit(&organization, &made, &json!({"lines": [{"line": 1}]})).ok();
    assert_eq!(billed(), [0, 10, 10]);
    post(&organization, &format!("credit_notes/{}/rebill", kept["id"].as_str().unwrap()), &Value::Null).ok();
    assert_eq!(billed(), [0, 0, 10]);
    assert_eq!(invoice(&organization, &customer, &json!([{"toll_id": tolls[0]}]))["total"], 10);

    // An export has the same accounts, and an import makes the same of them.
    let path = |word: &str| format!("organizations/{}/{word}", organization.id);
    let export = loop {
        let reply = organization.server.admin("GET", &format!("/admin/v1/{}", path("export?pace=full")), &Value::Null);
        if reply.status == 200 {
            break reply.text();
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    let other = Server::start(&[]);
    let target = other.organization();
    let moved = other.admin_bytes(
        "POST",
        &format!("/admin/v1/organizations/{}/import", target.id),
        "application/x-ndjson",
        export.as_bytes(),
    );
    assert_eq!((moved.ok()["invalid"].as_u64(), moved.status), (Some(0), 200), "{}", moved.text());
    for plural in ["invoices", "credit_notes", "tolls"] {
        let plain = |of: &Organization| -> Vec<Value> {
            let lines = |one: &Value| json!([one["lines"], one["total"], one["amount_billed"], one["amount_credited"]]);
            all(of, plural).iter().map(lines).collect()
        };
        assert_eq!(plain(&target), plain(&organization), "{plural}");
    }
}

#[test]
fn the_command_takes_and_shows_a_discount() {
    let Some(cli) = Cli::find() else { return };
    let organization = Server::shared().organization();
    organization.post("/v1/customers", &json!({"full_name": "Ada Lovelace"})).ok();
    let create = |more: &[&str]| {
        let mut command = cli.command(&url(organization.server), "invoices create --customer");
        command.env("RENTAL_API_KEY", &organization.write).env("RENTAL_ORGANIZATION", &organization.id);
        ran(command.args(["Ada Lovelace", "--line", "Ride=100", "--line"]).args(more))
    };
    let made = create(&["Discount=-10", "--json"]);
    assert_eq!((made.code, &made.json()["total"]), (Some(0), &json!(90)), "{made:?}");
    let mut shown = cli.command(&url(organization.server), "invoices get INV-000001");
    let shown = ran(shown.env("RENTAL_API_KEY", &organization.write));
    assert!(shown.stdout.contains("-10"), "{shown:?}");
    let refused = create(&["Discount=-100.5"]);
    assert_eq!(refused.code, Some(6), "{refused:?}");
    assert!(refused.stderr.contains("lines[1].amount") && refused.stderr.contains("add up to -0.5"), "{refused:?}");
}
