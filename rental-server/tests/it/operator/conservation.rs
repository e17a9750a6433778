//! No cent is made or lost between tolls, invoices and credit notes, with fees, taxes, parts, credits and voided invoices.

use super::all;
use crate::support::{Organization, Server};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Numbers that look random and are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn of<'a>(&mut self, all: &'a [Value]) -> Option<&'a Value> {
        all.get(usize::try_from(self.below(all.len().max(1) as u64)).unwrap())
    }
}

/// An amount in cents; 0 for `null`.
fn cents(amount: &Value) -> i64 {
    (amount.as_f64().unwrap_or_default() * 100.0).round() as i64
}

fn sum(objects: &[Value], member: &str) -> i64 {
    objects.iter().map(|one| cents(&one[member])).sum()
}

/// One organization, and what the responses to its requests said.
struct Books<'a> {
    organization: &'a Organization<'a>,
    random: Random,
    vehicle: String,
    /// What was billed less what was voided and credited, in cents.
    expected: i64,
    done: BTreeMap<&'static str, u32>,
}

impl Books<'_> {
    /// Sends a request that may be refused because of what was done before. Gives the response if it was accepted.
    fn try_post(&mut self, what: &'static str, path: &str, body: &Value) -> Option<Value> {
        let reply = self.organization.server.admin("POST", &format!("/admin/v1/{path}"), body);
        assert!(matches!(reply.status, 200 | 400 | 409), "{what} {body}: {}", reply.text());
        let accepted = (reply.status == 200).then(|| reply.json());
        *self.done.entry(what).or_default() += u32::from(accepted.is_some());
        accepted
    }

    fn of_organization(&self, rest: &str) -> String {
        format!("organizations/{}/{rest}", self.organization.id)
    }

    /// A completed rental with up to three tolls and a violation.
    fn stay(&mut self) {
        let price = self.random.below(50_000) as f64 / 100.0;
        let fields = json!({"start_date": "2026-06-01", "end_date": "2026-06-05", "final_price": price});
        let id = self.organization.rental(&self.vehicle, fields);
        let path = format!("/v1/rentals/{id}");
        let customer = self.organization.patch(&path, &json!({"status": "COMPLETED"})).ok()["customer_id"].clone();
        for number in 0..self.random.below(4) {
            let amount = (1 + self.random.below(2_000)) as f64 / 100.0;
            let toll = json!({"amount": amount, "agency": "A", "transaction_id": format!("{id} {number}"), "occurred_on": "2026-06-02", "customer_id": customer});
            self.organization.recorded("tolls", &toll);
        }
        if self.random.below(2) == 0 {
            let fields =
                json!({"summons_number": id, "amount_due": 65.5, "issued_on": "2026-06-03", "customer_id": customer});
            self.organization.recorded("violations", &fields);
        }
    }

    fn billed(&mut self, invoice: Option<&Value>) {
        self.expected += invoice.map_or(0, |invoice| cents(&invoice["total"]));
    }

    fn draft_all(&mut self) {
        let path = self.of_organization("invoices/drafts");
        let page = self.organization.server.admin("GET", &format!("/admin/v1/{path}?limit=100"), &Value::Null).ok();
        for draft in page["data"].as_array().unwrap().iter().filter(|draft| draft["problem"].is_null()) {
            let body = json!({"rental_id": draft["rental_id"], "with_tolls": true, "with_violations": true});
            let invoice = self.try_post("draft", &path, &body);
            assert_eq!(invoice.as_ref().map(|one| &one["total"]), Some(&draft["total"]), "as the draft says");
            self.billed(invoice.as_ref());
        }
    }

    /// Bills a part of a toll, perhaps with a tax of its own.
    fn bill_part(&mut self) {
        let unbilled = self.organization.get("/v1/tolls?billed=false&limit=100").ok();
        let Some(toll) = self.random.of(unbilled["data"].as_array().unwrap()).cloned() else { return };
        let amount = (1 + self.random.below(500)) as f64 / 100.0;
        let mut body =
            json!({"customer_id": toll["customer_id"], "lines": [{"toll_id": toll["id"], "amount": amount}]});
        if self.random.below(2) == 0 {
            let lines = body["lines"].as_array_mut().unwrap();
            lines.push(json!({"description": "Cleaning", "amount": (1 + self.random.below(3_000)) as f64 / 100.0}));
            lines.push(json!({"description": "Discount", "amount": (1 + self.random.below(900)) as f64 / -100.0}));
        }
        if self.random.below(2) == 0 {
            (body["tax_name"], body["tax_rate"], body["tax_included"]) = (json!("GST"), json!(7.25), json!(true));
        }
        let invoice = self.try_post("part", &self.of_organization("invoices"), &body);
        self.billed(invoice.as_ref());
    }

    /// Credits a line, a part of it, or all that is left.
    fn credit(&mut self) {
        let Some(invoice) = self.random.of(&all(self.organization, "invoices")).cloned() else { return };
        let lines = invoice["lines"].as_array().unwrap();
        let line = self.random.below(lines.len() as u64);
        let mut body = json!({"rebill": self.random.below(2) == 0});
        match self.random.below(3) {
            0 => body["lines"] = json!([{"line": line}]),
            1 => body["lines"] = json!([{"line": line, "amount": (1 + self.random.below(300)) as f64 / 100.0}]),
            _ => {}
        }
        let path = format!("invoices/{}/credit", invoice["id"].as_str().unwrap());
        let note = self.try_post("credit", &path, &body);
        self.expected -= note.as_ref().map_or(0, |note| cents(&note["total"]));
        if let (Some(note), 0) = (note, self.done["credit"] % 3) {
            let path = format!("credit_notes/{}/rebill", note["id"].as_str().unwrap());
            self.try_post("rebill", &path, &Value::Null);
        }
    }

    fn settle(&mut self, word: &'static str) {
        let Some(invoice) = self.random.of(&all(self.organization, "invoices")).cloned() else { return };
        let path = format!("invoices/{}/{word}", invoice["id"].as_str().unwrap());
        if self.try_post(word, &path, &Value::Null).is_some() && word == "void" {
            self.expected -= cents(&invoice["total"]);
        }
    }

    fn step(&mut self) {
        match self.random.below(10) {
            0 | 1 => self.stay(),
            2 | 3 => self.draft_all(),
            4 => self.bill_part(),
            5..=7 => self.credit(),
            8 => self.settle("pay"),
            _ => self.settle("void"),
        }
    }

    /// Compares all objects with each other, and their sum with what the responses said.
    fn check(&self) {
        let [invoices, notes] = ["invoices", "credit_notes"].map(|plural| all(self.organization, plural));
        let standing: Vec<Value> = invoices.into_iter().filter(|invoice| invoice["status"] != "void").collect();
        assert_eq!(sum(&standing, "total") - sum(&notes, "total"), self.expected, "billed less credited");
        for invoice in &standing {
            let own: Vec<Value> = notes.iter().filter(|note| note["invoice_id"] == invoice["id"]).cloned().collect();
            assert_eq!(cents(&invoice["amount_credited"]), sum(&own, "total"), "{invoice}");
            assert_eq!(invoice["credit_note_ids"].as_array().unwrap().len(), own.len(), "{invoice}");
            let added = |of: &Value| if invoice["tax_included"] == true { 0 } else { cents(&of["tax_amount"]) };
            for document in own.iter().chain([invoice]) {
                let lines = sum(document["lines"].as_array().unwrap(), "amount");
                assert_eq!(lines + added(document), cents(&document["total"]), "{document}");
            }
            assert!(
                sum(&own, "total") <= cents(&invoice["total"])
                    && sum(&own, "tax_amount") <= cents(&invoice["tax_amount"])
            );
            if sum(&own, "total") == cents(&invoice["total"]) {
                assert_eq!(sum(&own, "tax_amount"), cents(&invoice["tax_amount"]), "all of the tax is given back");
            }
        }
        for (plural, member, price) in [
            ("rentals", "rental_id", "final_price"),
            ("tolls", "toll_id", "amount"),
            ("violations", "violation_id", "amount_due"),
        ] {
            for object in all(self.organization, plural) {
                let of_it = |documents: &[Value], rebilled: bool| -> i64 {
                    let lines = documents.iter().flat_map(|one| one["lines"].as_array().unwrap());
                    let own =
                        lines.filter(|line| line[member] == object["id"] && (!rebilled || line["rebill"] == true));
                    own.map(|line| cents(&line["amount"]) + cents(&line["discount"])).sum()
                };
                let billed = of_it(&standing, false) - of_it(&notes, true);
                assert_eq!(cents(&object["amount_billed"]), billed, "{object}");
                assert!((0..=cents(&object[price])).contains(&billed), "{object}");
            }
        }
    }
}

#[test]
fn what_is_billed_less_what_is_credited_is_what_invoices_and_credit_notes_add_up_to() {
    for (seed, tax) in [
        (1, json!({})),
        (2, json!({"tax_name": "VAT", "tax_rate": 8.875})),
        (3, json!({"tax_name": "VAT", "tax_rate": 19, "tax_included": true})),
    ] {
        let organization = Server::shared().organization();
        let mut settings = tax;
        (settings["toll_fee"], settings["violation_fee"]) = (json!(1.35), json!(25));
        let path = format!("/admin/v1/organizations/{}", organization.id);
        organization.server.admin("PATCH", &path, &settings).ok();
        let vehicle = organization.vehicle(json!({}));
        let mut books =
            Books { organization: &organization, random: Random(seed), vehicle, expected: 0, done: BTreeMap::new() };
        (0..4).for_each(|_| books.stay());
        for step in 0..60 {
            books.step();
            if step % 10 == 9 {
                books.check();
            }
        }
        let Books { done, .. } = &books;
        assert!(
            ["draft", "part", "credit", "pay", "void"]
                .iter()
                .all(|what| done.get(what).is_some_and(|times| *times > 0)),
            "seed {seed}: {done:?}"
        );
        assert!(books.expected > 0, "seed {seed}");
    }
}
