//! PATCH /v1/rentals/{id} with another vehicle: a swap during the rental, with its time, or a correction.

use crate::{
    operator::{
        all,
        suggestions::{attached, tolls},
    },
    support::{Organization, Reply, Server},
    webhooks::wait_for,
};
use serde_json::{Value, json};

/// A rental from 1 to 9 June, handed over on 1 June at 14:00 UTC.
struct Story<'s> {
    organization: Organization<'s>,
    vehicles: [String; 3],
    path: String,
}

impl Story<'static> {
    fn new() -> Self {
        let organization = Server::shared().organization();
        let vehicles = ["SWAPA", "SWAPB", "SWAPC"].map(|plate| organization.vehicle(json!({"plate": plate})));
        let fields = json!({
            "start_date": "2026-06-01", "end_date": "2026-06-09", "status": "ACTIVE", "activated_at": "2026-06-01T14:00:00Z",
        });
        let path = format!("/v1/rentals/{}", organization.rental(&vehicles[0], fields));
        Self { organization, vehicles, path }
    }

    fn patch(&self, fields: &Value) -> Reply {
        self.organization.patch(&self.path, fields)
    }

    /// Swaps to a vehicle by its place at a time.
    fn swap(&self, vehicle: usize, at: &str) -> Reply {
        self.patch(&json!({"vehicle_id": self.vehicles[vehicle], "vehicle_changed_at": at}))
    }

    /// The vehicles of the rental by their places, with the times of the swaps.
    #[track_caller]
    fn expect(&self, earlier: &[(usize, &str)], present: usize) {
        let rental = self.organization.get(&self.path).ok();
        let id = |place: usize| self.vehicles[place].clone();
        let expected: Vec<Value> =
            earlier.iter().map(|(place, until)| json!({"vehicle_id": id(*place), "until": until})).collect();
        assert_eq!(rental["earlier_vehicles"], json!(expected));
        assert_eq!(rental["vehicle_id"], id(present));
        assert_eq!(rental["vehicle_changed_at"], json!(earlier.last().map(|(_, until)| until)));
    }

    #[track_caller]
    fn refused(&self, fields: &Value, field: &str, rule: &str) {
        let before = self.organization.get(&self.path).body;
        let reply = self.patch(fields);
        assert_eq!(reply.status, 400, "{reply:?}");
        let error = &reply.json()["error"];
        assert_eq!(error["param"], field, "{error}");
        assert!(error["message"].as_str().unwrap().contains(rule), "{error}");
        assert_eq!(self.organization.get(&self.path).body, before);
    }

    /// Books a vehicle for some nights.
    fn book(&self, vehicle: usize, start: &str, end: &str) -> Reply {
        let customer = self.organization.customer(json!({}));
        let fields = json!({
            "customer_id": customer, "vehicle_id": self.vehicles[vehicle], "status": "APPROVED", "start_date": start, "end_date": end,
        });
        self.organization.post("/v1/rentals", &fields)
    }
}

const T1: &str = "2026-06-03T12:00:00.000Z";
const T2: &str = "2026-06-05T09:30:00.000Z";

#[test]
fn a_swap_keeps_the_earlier_vehicle_and_its_time() {
    let story = Story::new();
    story.expect(&[], 0);
    story.swap(1, T1).ok();
    story.expect(&[(0, T1)], 1);
    let unchanged = story.organization.get(&story.path).body;
    story.swap(1, T1).ok();
    assert_eq!(story.organization.get(&story.path).body, unchanged, "the same request again changes nothing");
    story.swap(2, T2).ok();
    story.expect(&[(0, T1), (1, T2)], 2);
}

#[test]
fn a_swap_back_is_a_second_swap() {
    let story = Story::new();
    story.swap(1, T1).ok();
    story.swap(0, T2).ok();
    story.expect(&[(0, T1), (1, T2)], 0);
    story.patch(&json!({"status": "COMPLETED", "completed_at": "2026-06-09T10:00:00Z"})).ok();
    story.expect(&[(0, T1), (1, T2)], 0);
}

#[test]
fn without_a_time_another_vehicle_is_a_swap_now_while_the_customer_has_it() {
    let story = Story::new();
    let rental = story.patch(&json!({"vehicle_id": story.vehicles[1]})).ok();
    assert_eq!(rental["vehicle_changed_at"], rental["updated_at"]);
    assert_eq!(rental["earlier_vehicles"][0]["vehicle_id"], story.vehicles[0]);
}

#[test]
fn before_the_handover_and_after_the_return_another_vehicle_alone_replaces_the_present_one() {
    let story = Story::new();
    story.swap(1, T1).ok();
    story.patch(&json!({"status": "COMPLETED", "completed_at": "2026-06-09T10:00:00Z"})).ok();
    story.patch(&json!({"vehicle_id": story.vehicles[2]})).ok();
    story.expect(&[(0, T1)], 2);
    story.patch(&json!({"status": "APPROVED"})).ok();
    story.expect(&[], 2);
    story.patch(&json!({"vehicle_id": story.vehicles[1]})).ok();
    story.expect(&[], 1);
}

#[test]
fn null_or_a_time_before_the_handover_says_that_the_customer_always_had_this_vehicle() {
    for time in [json!(null), json!("2026-06-01T14:00:00Z"), json!("2026-05-01T14:00:00Z")] {
        let story = Story::new();
        story.swap(1, T1).ok();
        story.patch(&json!({"vehicle_id": story.vehicles[2], "vehicle_changed_at": time})).ok();
        story.expect(&[], 2);
    }
}

#[test]
fn the_time_of_the_last_swap_can_be_corrected_alone() {
    let story = Story::new();
    story.swap(1, T1).ok();
    story.swap(2, T2).ok();
    for at in ["2026-06-06T00:00:00.000Z", "2026-06-04T00:00:00.000Z"] {
        story.patch(&json!({"vehicle_changed_at": at})).ok();
        story.expect(&[(0, T1), (1, at)], 2);
    }
    story.patch(&json!({"vehicle_changed_at": "2026-06-02T00:00:00Z"})).ok();
    story.expect(&[(0, "2026-06-02T00:00:00.000Z")], 2);
    story.patch(&json!({"vehicle_changed_at": null})).ok();
    story.expect(&[], 2);
}

#[test]
fn a_completed_rental_takes_a_swap_within_its_times() {
    let story = Story::new();
    story.patch(&json!({"status": "COMPLETED", "completed_at": "2026-06-09T10:00:00Z"})).ok();
    story.swap(1, T1).ok();
    story.expect(&[(0, T1)], 1);
    story.refused(
        &json!({"vehicle_id": story.vehicles[2], "vehicle_changed_at": "2026-06-09T10:00:01Z"}),
        "vehicle_changed_at",
        "must not be after `completed_at`",
    );
    story.refused(&json!({"completed_at": "2026-06-03T11:59:00Z"}), "completed_at", "must not be before the last swap");
    story.refused(&json!({"activated_at": T1}), "activated_at", "must be before the first swap");
}

#[test]
fn what_cannot_have_been_a_swap_is_refused() {
    let story = Story::new();
    let other = &story.vehicles[1];
    let at = |time: &str| json!({"vehicle_id": other, "vehicle_changed_at": time});
    story.refused(&at("2999-01-01T00:00:00Z"), "vehicle_changed_at", "must not be in the future");
    story.refused(&at("yesterday"), "vehicle_changed_at", "RFC 3339");
    story.refused(&at("2026-01-01T10:00:00"), "vehicle_changed_at", "has no time zone; write 2026-01-01T10:00:00Z");
    story.refused(&json!({"vehicle_changed_at": T1}), "vehicle_changed_at", "needs `vehicle_id` too");
    story.refused(&json!({"earlier_vehicles": []}), "earlier_vehicles", "is set by the server");
    let nobody = "0190d0f2-7c3a-7cc0-8000-000000000001";
    story.refused(&json!({"vehicle_id": nobody, "vehicle_changed_at": T1}), "vehicle_id", "names no vehicle");
    story.patch(&json!({"status": "NEW"})).ok();
    story.refused(&at(T1), "vehicle_changed_at", "before the vehicle is handed over");
    let body = json!({
        "vehicle_id": other, "customer_id": story.organization.customer(json!({})), "vehicle_changed_at": T1,
    });
    let reply = story.organization.post("/v1/rentals", &body);
    assert_eq!((reply.status, &reply.json()["error"]["param"]), (400, &json!("vehicle_changed_at")));
}

#[test]
fn a_rental_has_at_most_20_swaps() {
    let story = Story::new();
    for n in 1..=20 {
        story.swap(n % 2, &format!("2026-06-02T{n:02}:00:00Z")).ok();
    }
    let more = json!({"vehicle_id": story.vehicles[1], "vehicle_changed_at": T1});
    story.refused(&more, "vehicle_changed_at", "would be swap 21 of this rental, and it can have 20");
    // An earlier time replaces what was recorded after it.
    story.swap(2, "2026-06-02T01:30:00Z").ok();
    story.expect(&[(0, "2026-06-02T01:00:00.000Z"), (1, "2026-06-02T01:30:00.000Z")], 2);
}

#[test]
fn each_vehicle_is_held_for_its_part_of_the_nights() {
    let story = Story::new();
    let clash = story.book(1, "2026-06-04", "2026-06-06");
    assert_eq!(clash.status, 200, "{clash:?}");
    assert_eq!(story.swap(1, T1).status, 409, "the other vehicle is booked on a night after the swap");
    story.expect(&[], 0);
    story.swap(1, "2026-06-07T12:00:00Z").ok();
    // Until the day of the swap the first vehicle is held, and from that day on the second one.
    assert_eq!(story.book(0, "2026-06-06", "2026-06-07").status, 409);
    assert_eq!(story.book(0, "2026-06-07", "2026-06-09").status, 200);
    assert_eq!(story.book(1, "2026-06-06", "2026-06-07").status, 200);
    assert_eq!(story.book(1, "2026-06-07", "2026-06-08").status, 409);
    // What was not held any more is booked, so the swap cannot be taken back.
    assert_eq!(story.patch(&json!({"vehicle_id": story.vehicles[0], "vehicle_changed_at": null})).status, 409);
    story.patch(&json!({"status": "COMPLETED", "completed_at": "2026-06-08T10:00:00Z"})).ok();
    assert_eq!(story.book(0, "2026-06-01", "2026-06-02").status, 200);
    assert_eq!(story.book(1, "2026-06-08", "2026-06-09").status, 200);
}

#[test]
fn tolls_of_both_vehicles_follow_the_swap() {
    let story = Story::new();
    let organization = &story.organization;
    let customer = organization.get(&story.path).ok()["customer_id"].clone();
    let times = ["2026-06-03T11:59:59Z", "2026-06-03T12:00:00Z", "2026-06-04T12:00:00Z"];
    tolls(organization, "SWAPA", &times);
    tolls(organization, "SWAPB", &times);
    attached(organization, "tolls");
    // In order of plate and time.
    let payers = || {
        let mut found = all(organization, "tolls");
        found.sort_by_key(|toll| (toll["plate"].to_string(), toll["occurred_at"].to_string()));
        found.iter().map(|toll| toll["customer_id"] == customer).collect::<Vec<_>>()
    };
    assert_eq!(payers(), [true, true, true, false, false, false]);
    story.swap(1, T1).ok();
    wait_for(
        "tolls after the swap",
        || (payers() == [true, false, false, false, false, false]).then_some(()),
        || format!("{:?}", all(organization, "tolls")),
    );
    // What nobody attached before is attached when somebody asks for it.
    attached(organization, "tolls");
    assert_eq!(payers(), [true, false, false, false, true, true]);
    let reasons: Vec<Value> = all(organization, "tolls").into_iter().map(|toll| toll["rental_id"].clone()).collect();
    assert_eq!(reasons.iter().filter(|rental| !rental.is_null()).count(), 3);
    // The first vehicle was typed in wrongly: the second one was out from the beginning.
    story.patch(&json!({"vehicle_changed_at": null})).ok();
    wait_for("tolls after the correction", || (!payers()[0]).then_some(()), String::new);
    attached(organization, "tolls");
    assert_eq!(payers(), [false, false, false, true, true, true]);
}
