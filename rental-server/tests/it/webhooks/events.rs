//! Which change sends which events, in which order (spec, Event types; decisions, Events).

use super::{Receiver, hook, observed, quiet_while, usual};
use crate::support::Organization;
use rental_core::resources::event::EVENT_TYPES;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// An organization with one endpoint, and how many events it has had.
struct Story<'s> {
    organization: Organization<'s>,
    receiver: Receiver,
    told: usize,
    kinds: BTreeSet<String>,
}

impl Story<'_> {
    fn new() -> Self {
        let (organization, receiver) = (usual().organization(), Receiver::start());
        hook(&organization, &receiver);
        Story { organization, receiver, told: 0, kinds: BTreeSet::new() }
    }

    /// Exactly these types have come since the last time, in the order of their events; gives their bodies.
    #[track_caller]
    fn tells(&mut self, expected: &[&str]) -> Vec<String> {
        let mut new = self.receiver.wait_for(self.told + expected.len()).split_off(self.told);
        // Several deliveries are under way at once, so they may pass one another; ids are in the order of the events.
        new.sort_by(|left, right| left.event().cmp(right.event()));
        let kinds: Vec<&str> = new.iter().map(|seen| seen.kind()).collect();
        assert_eq!(kinds, expected);
        for seen in &new {
            assert_eq!(seen.json()["type"], seen.kind());
            assert_eq!(seen.json()["data"]["object"], seen.kind().split('.').next().expect("a resource"));
        }
        self.told += expected.len();
        self.kinds.extend(expected.iter().map(|kind| (*kind).to_owned()));
        new.into_iter().map(|seen| String::from_utf8(seen.body).expect("UTF-8")).collect()
    }

    /// The same, and each has this object as GET returns it now.
    #[track_caller]
    fn tells_of(&mut self, path: &str, expected: &[&str]) {
        let stored = self.organization.get(path).text();
        for body in self.tells(expected) {
            assert!(body.contains(&format!("\"data\":{stored}")), "{body} has not the bytes of {stored}");
        }
    }

    #[track_caller]
    fn patch(&self, path: &str, body: Value) {
        self.organization.patch(path, &body).ok();
    }

    fn operator(&self, path: &str, body: &Value) -> Value {
        self.organization.server.admin("POST", path, body).ok()
    }

    /// Nothing more has come.
    #[track_caller]
    fn ends(self) {
        quiet_while();
        assert_eq!(self.receiver.count(), self.told);
        assert_eq!(observed(&self.organization, "events", "").len(), self.told);
    }
}

#[test]
fn each_type_is_sent_by_its_trigger_with_the_whole_object() {
    let mut story = Story::new();
    let vehicle = format!("/v1/vehicles/{}", story.organization.vehicle(json!({"daily_rate": 50})));
    story.tells_of(&vehicle, &["vehicle.created"]);
    story.patch(&vehicle, json!({"status": "maintenance"}));
    story.tells_of(&vehicle, &["vehicle.updated"]);
    let customer = format!("/v1/customers/{}", story.organization.customer(json!({})));
    story.tells_of(&customer, &["customer.created"]);
    story.patch(&customer, json!({"notes": "Prefers mornings"}));
    story.tells_of(&customer, &["customer.updated"]);
    let [vehicle_id, customer_id] = [&vehicle, &customer].map(|path| path.rsplit('/').next().unwrap().to_owned());
    let booking = json!({"vehicle_id": vehicle_id, "customer_id": customer_id});
    let rental = format!("/v1/rentals/{}", story.organization.post("/v1/rentals", &booking).id());
    story.tells_of(&rental, &["rental.created"]);
    story.patch(&rental, json!({"status": "APPROVED"}));
    story.tells_of(&rental, &["rental.updated"]);
    story.patch(&rental, json!({"status": "COMPLETED"}));
    story.tells_of(&rental, &["rental.updated", "rental.completed"]);
    story.patch(&rental, json!({"status": "CANCELLED", "damage_at_return": true}));
    story.tells_of(&rental, &["rental.updated", "rental.cancelled"]);
    for word in ["pay", "void"] {
        let bill = json!({"customer_id": customer_id, "lines": [{"description": "Days", "amount": 12.5}]});
        let id = story.organization.recorded("invoices", &bill);
        story.tells_of(&format!("/v1/invoices/{id}"), &["invoice.created"]);
        story.operator(&format!("/admin/v1/invoices/{id}/{word}"), &Value::Null);
        let kind = if word == "pay" { "invoice.paid" } else { "invoice.voided" };
        story.tells_of(&format!("/v1/invoices/{id}"), &[kind]);
        if word == "pay" {
            let note = story.organization.recorded("credit_notes", &json!({"invoice_id": id}));
            story.tells_of(&format!("/v1/credit_notes/{note}"), &["credit_note.created"]);
            story.operator(&format!("/admin/v1/credit_notes/{note}/refund"), &Value::Null);
            story.tells_of(&format!("/v1/credit_notes/{note}"), &["credit_note.refunded"]);
        }
    }
    let toll = story.organization.recorded("tolls", &json!({"amount": 6.94, "agency": "MTAB&T"}));
    let violation = story.organization.recorded("violations", &json!({"summons_number": "1", "amount_due": 50}));
    for (path, object) in [(format!("tolls/{toll}"), "toll"), (format!("violations/{violation}"), "violation")] {
        let public = format!("/v1/{path}");
        story.patch(&public, json!({"customer_id": customer_id}));
        story.tells_of(&public, &[&format!("{object}.attached")]);
        let release = format!("/admin/v1/{path}/release");
        story.organization.server.admin("POST", &release, &Value::Null).ok();
        story.tells_of(&public, &[&format!("{object}.detached")]);
    }
    let lead = story.organization.post("/v1/leads", &json!({"raw_data": {"b": 1.50, "a": null}})).text();
    assert!(story.tells(&["lead.received"])[0].contains(&format!("\"data\":{lead}")));
    assert_eq!(story.kinds, EVENT_TYPES.iter().map(|event| event.name.to_owned()).collect());
    story.ends();
}

#[test]
fn what_changes_nothing_sends_nothing() {
    let mut story = Story::new();
    let vehicle = story.organization.vehicle(json!({"daily_rate": 50}));
    let customer = story.organization.customer(json!({}));
    let booking = json!({"vehicle_id": vehicle, "customer_id": customer});
    let rental = story.organization.post("/v1/rentals", &booking).id();
    story.tells(&["vehicle.created", "customer.created", "rental.created"]);
    for path in
        [format!("/v1/vehicles/{vehicle}"), format!("/v1/customers/{customer}"), format!("/v1/rentals/{rental}")]
    {
        story.patch(&path, json!({}));
    }
    story.patch(&format!("/v1/vehicles/{vehicle}"), json!({"daily_rate": 50.00, "status": "available"}));
    story.patch(&format!("/v1/rentals/{rental}"), json!({"status": "NEW"}));
    let refused = story.organization.patch(&format!("/v1/rentals/{rental}"), &json!({"status": "LOST"}));
    assert_eq!(refused.status, 400);
    story.ends();
}

#[test]
fn completed_and_cancelled_are_announced_even_when_nothing_changed() {
    let mut story = Story::new();
    let vehicle = story.organization.vehicle(json!({}));
    let rental = format!("/v1/rentals/{}", story.organization.rental(&vehicle, json!({"status": "COMPLETED"})));
    story.tells(&["vehicle.created", "customer.created", "rental.created"]);
    story.patch(&rental, json!({"status": "COMPLETED"}));
    story.tells_of(&rental, &["rental.completed"]);
    story.patch(&rental, json!({"status": "CANCELLED"}));
    story.tells_of(&rental, &["rental.updated", "rental.cancelled"]);
    story.patch(&rental, json!({"status": "CANCELLED"}));
    story.tells_of(&rental, &["rental.cancelled"]);
    story.ends();
}

#[test]
fn a_replayed_request_sends_nothing() {
    let mut story = Story::new();
    for replay in [None, Some("true"), Some("true")] {
        let headers = [("Idempotency-Key", "once")];
        let reply = story.organization.call_with("POST", "/v1/vehicles", &headers, &json!({"name": "Once"}));
        reply.ok();
        assert_eq!(reply.header("idempotent-replayed"), replay);
    }
    story.tells(&["vehicle.created"]);
    story.ends();
}

#[test]
fn a_toll_tells_of_each_new_customer_and_of_no_other_change() {
    let mut story = Story::new();
    let [ada, bob] = [(); 2].map(|()| story.organization.customer(json!({})));
    story.tells(&["customer.created"; 2]);
    let toll = story.organization.recorded("tolls", &json!({"amount": 6.94, "agency": "MTAB&T"}));
    let path = format!("/v1/tolls/{toll}");
    for (customer, kinds) in [
        (json!(ada), &["toll.attached"][..]),
        (json!(ada), &[]),
        (json!(bob), &["toll.attached"]),
        (Value::Null, &[]),
        (json!(bob), &["toll.attached"]),
    ] {
        story.patch(&path, json!({"customer_id": customer}));
        story.tells_of(&path, kinds);
    }
    story.ends();
}

#[test]
fn the_event_keeps_the_object_as_it_was_then() {
    let mut story = Story::new();
    let vehicle = format!("/v1/vehicles/{}", story.organization.vehicle(json!({})));
    let first = story.organization.get(&vehicle).text();
    story.patch(&vehicle, json!({"color": "red"}));
    let second = story.organization.get(&vehicle).text();
    let bodies = story.tells(&["vehicle.created", "vehicle.updated"]);
    assert!(bodies[0].contains(&format!("\"data\":{first}")) && bodies[1].contains(&format!("\"data\":{second}")));
    story.ends();
}
