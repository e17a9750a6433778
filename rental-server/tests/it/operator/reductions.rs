//! A violation that the city reduces after it was billed is listed as long as a person can credit the difference.

use super::{
    all, counts, import,
    suggestions::{attached, stay},
};
use crate::{
    support::{Organization, Server},
    webhooks::wait_for,
};
use serde_json::{Value, json};

/// A violation of 115 that the server attached, and that an invoice bills.
struct Billed {
    organization: Organization<'static>,
    rental: String,
    violation: String,
    /// One of the next day, that no invoice bills.
    other: String,
    invoice: Value,
}

fn list(organization: &Organization, due: u32) {
    let rows = format!("CITY1,NY,900,06/03/2026,{due}\nCITY1,NY,901,06/04/2026,10\n");
    let file = format!("plate,state,summons_number,issue_date,amount_due\n{rows}");
    assert_eq!(counts(&import(organization, "violations", "", &file).ok())[4], 0);
}

fn numbered(organization: &Organization, number: &str) -> Value {
    all(organization, "violations").into_iter().find(|one| one["summons_number"] == number).expect("it is there")
}

impl Billed {
    fn new() -> Self {
        let organization = Server::shared().organization();
        let vehicle = organization.vehicle(json!({"plate": "CITY1", "plate_state": "NY"}));
        let rental = stay(&organization, &vehicle, ["2026-06-01", "2026-06-06"], "COMPLETED");
        list(&organization, 115);
        attached(&organization, "violations");
        let [violation, other] = ["900", "901"].map(|number| numbered(&organization, number));
        let body = json!({"customer_id": violation["customer_id"], "lines": [{"violation_id": violation["id"]}]});
        let path = format!("/admin/v1/organizations/{}/invoices", organization.id);
        let invoice = organization.server.admin("POST", &path, &body).ok();
        let [violation, other] = [violation, other].map(|one| one["id"].as_str().unwrap().to_owned());
        Self { organization, rental, violation, other, invoice }
    }

    fn now(&self) -> Value {
        self.present(&self.violation)
    }

    fn present(&self, id: &str) -> Value {
        self.organization.get(&format!("/v1/violations/{id}")).ok()
    }

    /// Credits an amount, or all that is left. Whether it can be billed again then, and the id of the credit note.
    fn credit(&self, amount: Option<u32>) -> (bool, String) {
        let path = format!("/admin/v1/invoices/{}/credit", self.invoice["id"].as_str().unwrap());
        let note =
            self.organization.server.admin("POST", &path, &json!({"lines": [{"line": 0, "amount": amount}]})).ok();
        (note["lines"][0]["rebill"] == true, note["id"].as_str().unwrap().to_owned())
    }

    fn rebill(&self, note: &str) {
        self.organization.server.admin("POST", &format!("/admin/v1/credit_notes/{note}/rebill"), &Value::Null).ok();
    }

    fn release(&self) {
        let path = format!("/admin/v1/violations/{}/release", self.violation);
        assert_eq!(self.organization.server.admin("POST", &path, &Value::Null).ok()["attribution"], "automatic");
    }

    fn choose(&self) {
        let customer = self.invoice["customer_id"].clone();
        self.organization.patch(&format!("/v1/violations/{}", self.violation), &json!({"customer_id": customer})).ok();
    }

    /// Changes what the attachment rests on, and waits until it was derived again: before the one of the next day.
    fn derive_again(&self, last: &str) {
        self.organization.patch(&format!("/v1/rentals/{}", self.rental), &json!({"end_date": last})).ok();
        let is_derived = || self.present(&self.other)["attribution_reason"].as_str().unwrap().contains(last);
        wait_for("the reason of the rental as it is now", || is_derived().then_some(()), || self.now().to_string());
    }

    #[track_caller]
    fn is_listed(&self, credits: &str) {
        let reason = format!(
            "More is billed than it costs now: {credits}, and by the last list it costs 65. Look it up at its issuer, then credit \
             the difference on the invoice."
        );
        assert_eq!(self.now()["review_reason"], json!(reason));
    }

    #[track_caller]
    fn is_not_listed(&self) {
        assert_eq!(self.now()["review_reason"], Value::Null);
    }
}

#[test]
fn a_reduced_violation_stays_listed_whatever_is_decided_about_its_customer() {
    let billed = Billed::new();
    list(&billed.organization, 65);
    let told = "115 USD is billed";
    billed.is_listed(told);
    billed.release();
    billed.is_listed(told);
    billed.choose();
    billed.is_listed(told);
    billed.release();
    billed.is_listed(told);
    billed.derive_again("2026-06-07");
    billed.is_listed(told);
    assert!(billed.credit(Some(50)).0);
    billed.is_not_listed();
}

#[test]
fn a_violation_that_is_credited_as_a_whole_for_good_is_not_listed_when_the_city_reduces_it() {
    let billed = Billed::new();
    assert!(!billed.credit(None).0);
    list(&billed.organization, 65);
    billed.is_not_listed();
    billed.derive_again("2026-06-07");
    billed.is_not_listed();
    billed.choose();
    billed.is_not_listed();
    billed.release();
    billed.is_not_listed();
}

#[test]
fn a_reduced_violation_leaves_the_review_when_all_of_it_is_credited_for_good() {
    let billed = Billed::new();
    list(&billed.organization, 65);
    let (can_be_billed_again, note) = billed.credit(None);
    assert!(!can_be_billed_again);
    billed.is_not_listed();
    assert_eq!(billed.now()["amount_billed"], 115);
    billed.rebill(&note);
    assert_eq!(billed.now()["amount_billed"], 0);
    billed.is_not_listed();
}

#[test]
fn what_is_credited_for_good_counts_for_the_difference_until_it_can_be_billed_again() {
    let billed = Billed::new();
    let (_, kindness) = billed.credit(Some(40));
    list(&billed.organization, 65);
    billed.is_listed("115 USD is billed, 40 of it is credited");
    billed.rebill(&kindness);
    billed.is_listed("75 USD is billed");
    assert!(billed.credit(Some(10)).0);
    billed.is_not_listed();
}

#[test]
fn the_rest_of_the_difference_is_credited_after_a_kindness() {
    let billed = Billed::new();
    billed.credit(Some(40));
    list(&billed.organization, 65);
    billed.choose();
    billed.is_listed("115 USD is billed, 40 of it is credited");
    billed.credit(Some(10));
    billed.is_not_listed();
}
