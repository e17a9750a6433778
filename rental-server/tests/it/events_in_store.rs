//! Events as they lie in the file once the server has stopped: one for each change, in its transaction, in the order
//! of `docs/decisions.md`, "Events"; none for what changed nothing.

use crate::support::Server;
use rental_core::{
    resources::event,
    rows::key,
    store::{Span, Store, all_sound, redb::Redb},
    value::OrganizationId,
};
use serde_json::{Value, json};
use std::path::Path;

/// Every event of an organization, oldest first, from the store in `directory`, which no server may have open.
pub(crate) fn stored_events(directory: &Path, organization: &str) -> Vec<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
    let store = Redb::open(&directory.join("store.redb"), 16 << 20).expect("the server closed it");
    let organization = OrganizationId::parse(organization).expect("an id");
    let span = Span::newest_first(&key::records(organization, &event::SPEC));
    let found = runtime.block_on(store.scan(&span, 1_000_000)).expect("the store answers");
    let mut records = all_sound(found).expect("no event is damaged");
    store.close().expect("nothing was written");
    records.reverse();
    records.iter().map(|record| serde_json::from_slice(&record.value).expect("an event is JSON")).collect()
}

/// Stops a server in order.
pub(crate) fn stop(server: Server) {
    server.signal("TERM");
    server.wait_until_gone();
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().expect("a type")).collect()
}

/// The types of the events that `act` leaves behind, and the events.
fn events_of(act: impl FnOnce(&crate::support::Organization)) -> Vec<Value> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start_on_file(directory.path(), &[]);
    let organization = server.organization();
    act(&organization);
    let id = organization.id.clone();
    drop(organization);
    stop(server);
    stored_events(directory.path(), &id)
}

#[test]
fn every_change_leaves_its_events_in_order_and_nothing_else_leaves_any() {
    let events = events_of(|organization| {
        let vehicle = organization.vehicle(json!({}));
        let customer = organization.customer(json!({}));
        let booking = json!({"vehicle_id": vehicle, "customer_id": customer});
        let path = format!("/v1/rentals/{}", organization.post("/v1/rentals", &booking).id());
        for body in [
            json!({"status": "APPROVED"}),
            json!({"status": "COMPLETED"}),
            json!({"status": "COMPLETED"}), // changed nothing, and is announced all the same
            json!({"status": "CANCELLED", "booking_id": "x"}),
            json!({}),
            json!({"booking_id": "x"}),
        ] {
            organization.patch(&path, &body).ok();
        }
        organization.patch(&path, &json!({"status": "LOST"})).error(400, "invalid_request_error", "parameter_invalid");
        organization.patch(&format!("/v1/vehicles/{vehicle}"), &json!({"status": "maintenance"})).ok();
        organization.patch(&format!("/v1/vehicles/{vehicle}"), &json!({"status": "maintenance"})).ok();
        organization.patch(&format!("/v1/customers/{customer}"), &json!({"notes": "n"})).ok();
        organization.post("/v1/leads", &json!({})).ok();
    });
    let expected = [
        "vehicle.created",
        "customer.created",
        "rental.created",
        "rental.updated",
        "rental.updated",
        "rental.completed",
        "rental.completed",
        "rental.updated",
        "rental.cancelled",
        "vehicle.updated",
        "customer.updated",
        "lead.received",
    ];
    assert_eq!(types(&events), expected);
}

#[test]
fn a_toll_tells_of_each_new_customer_once() {
    let events = events_of(|organization| {
        let [ada, bob] = [(); 2].map(|()| organization.customer(json!({})));
        let toll = organization.recorded("tolls", &json!({"amount": 6.94, "agency": "MTAB&T"}));
        let violation = organization.recorded("violations", &json!({"summons_number": "1", "amount_due": 50}));
        for path in [format!("/v1/tolls/{toll}"), format!("/v1/violations/{violation}")] {
            for customer in [json!(ada), json!(ada), json!(bob), Value::Null, json!(bob)] {
                organization.patch(&path, &json!({"customer_id": customer})).ok();
            }
        }
    });
    let attached: Vec<&str> = types(&events).into_iter().filter(|name| name.ends_with(".attached")).collect();
    assert_eq!(attached, [["toll.attached"; 3], ["violation.attached"; 3]].concat());
}

#[test]
fn a_replay_and_a_refusal_leave_no_event() {
    let events = events_of(|organization| {
        let send = |key: &str, body: &Value| {
            organization.call_with("POST", "/v1/vehicles", &[("Idempotency-Key", key)], body).status
        };
        for _ in 0..3 {
            assert_eq!(send("good", &json!({"name": "Once"})), 200);
            assert_eq!(send("bad", &json!({"name": ""})), 400);
        }
    });
    assert_eq!(types(&events), ["vehicle.created"]);
}

#[test]
fn the_data_of_an_event_is_the_object_as_a_get_returned_it_then() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start_on_file(directory.path(), &[]);
    let organization = server.organization();
    let made = organization.post("/v1/vehicles", &json!({"name": "First", "daily_rate": 89.50}));
    let path = format!("/v1/vehicles/{}", made.id());
    let created = organization.get(&path).ok();
    organization.patch(&path, &json!({"name": "Second"})).ok();
    let updated = organization.get(&path).ok();
    let id = organization.id.clone();
    drop(organization);
    stop(server);
    let events = stored_events(directory.path(), &id);
    assert_eq!(events.iter().map(|event| event["data"].clone()).collect::<Vec<_>>(), [created, updated]);
    for event in &events {
        assert_eq!(event["object"], "event");
        assert!(event["created"].is_u64() && event["id"].is_string());
    }
}
