//! GET /v1/vehicles/{id}/calendar

use crate::support::{Organization, Server, rules};
use serde_json::{Value, json};

#[track_caller]
fn calendar(organization: &Organization<'_>, vehicle: &str, from: &str, to: &str) -> Vec<Value> {
    let page = rules::page(organization, &format!("/v1/vehicles/{vehicle}/calendar?from={from}&to={to}"));
    page["data"].as_array().unwrap().clone()
}

#[test]
fn the_calendar_has_rentals_blocks_and_recorded_possessions_in_order() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    let other = organization.vehicle(json!({}));
    let rental = |vehicle: &str, fields: Value| organization.rental(vehicle, fields);
    let done = rental(
        &vehicle,
        json!({
            "start_date": "2026-05-01", "end_date": "2026-05-04", "status": "COMPLETED",
            "activated_at": "2026-05-01T14:00:00Z", "completed_at": "2026-05-05T09:00:00Z",
        }),
    );
    let booked = rental(&vehicle, json!({"start_date": "2026-06-01", "end_date": "2026-06-05", "status": "APPROVED"}));
    rental(&other, json!({"start_date": "2026-06-01", "end_date": "2026-06-05", "status": "APPROVED"}));
    rental(&vehicle, json!({"start_date": "2026-06-05", "end_date": "2026-06-06", "status": "NEW"}));
    let body = json!({"vehicle_id": vehicle, "start_date": "2026-06-05", "end_date": "2026-06-07"});
    let block = organization.post("/v1/blocks", &body).id();
    let interval = |kind: &str, id: &str, status: &str, from: &str, to: &str, times: [Value; 2]| {
        json!({
            "object": "interval", "kind": kind, "id": id, "status": status, "from": from, "to": to,
            "starts_at": times[0], "ends_at": times[1],
        })
    };
    let planned = [Value::Null, Value::Null];
    let times = [json!("2026-05-01T14:00:00.000Z"), json!("2026-05-05T09:00:00.000Z")];
    let all = [
        interval("possession", &done, "COMPLETED", "2026-05-01", "2026-05-05", times),
        interval("rental", &booked, "APPROVED", "2026-06-01", "2026-06-05", planned.clone()),
        interval("block", &block, "active", "2026-06-05", "2026-06-07", planned),
    ];
    assert_eq!(calendar(&organization, &vehicle, "2026-01-01", "2026-12-31"), all);
    assert_eq!(calendar(&organization, &vehicle, "2026-05-05", "2026-06-01"), all[..1]);
    assert_eq!(calendar(&organization, &vehicle, "2026-06-04", "2026-06-05"), all[1..2]);
    assert_eq!(calendar(&organization, &vehicle, "2026-06-06", "2026-06-06"), all[2..]);
    assert_eq!(calendar(&organization, &vehicle, "2026-06-07", "2026-12-31"), [Value::Null; 0]);
}

#[test]
fn a_vehicle_that_is_out_has_a_possession_without_an_end() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    let fields = json!({"status": "ACTIVE", "activated_at": "2026-05-01T14:00:00Z"});
    organization.rental(&vehicle, fields);
    let found = calendar(&organization, &vehicle, "2030-01-01", "2030-01-02");
    assert_eq!(
        (&found[0]["kind"], &found[0]["to"], &found[0]["ends_at"]),
        (&json!("possession"), &Value::Null, &Value::Null)
    );
    assert_eq!(calendar(&organization, &vehicle, "2026-04-01", "2026-05-01"), [Value::Null; 0]);
}

/// Nobody recorded the return of the first rental. The pickup of the next one, after the days that are asked for, ended it.
#[test]
fn a_later_recorded_pickup_ends_a_possession_also_outside_of_the_days() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    let active = |at: &str| organization.rental(&vehicle, json!({"status": "ACTIVE", "activated_at": at}));
    let first = active("2026-05-01T14:00:00Z");
    let next =
        json!({"status": "COMPLETED", "activated_at": "2026-08-01T14:00:00Z", "completed_at": "2026-08-03T14:00:00Z"});
    organization.rental(&vehicle, next);
    let june = calendar(&organization, &vehicle, "2026-06-01", "2026-06-02");
    assert_eq!(
        (june.len(), &june[0]["id"], &june[0]["ends_at"]),
        (1, &json!(first), &json!("2026-08-01T14:00:00.000Z"))
    );
    assert_eq!(calendar(&organization, &vehicle, "2026-10-01", "2026-10-02"), [Value::Null; 0]);
}

#[test]
fn a_swap_divides_the_calendar_between_both_vehicles() {
    let organization = Server::shared().organization();
    let [first, other] = [(); 2].map(|()| organization.vehicle(json!({})));
    let fields = json!({
        "status": "ACTIVE", "start_date": "2026-06-01", "end_date": "2026-06-09", "activated_at": "2026-06-01T14:00:00Z",
    });
    let rental = organization.rental(&first, fields);
    let swap = json!({"vehicle_id": other, "vehicle_changed_at": "2026-06-04T12:00:00Z"});
    organization.patch(&format!("/v1/rentals/{rental}"), &swap).ok();
    let shown = |vehicle: &str| {
        let found = calendar(&organization, vehicle, "2026-06-01", "2026-06-30");
        found.iter().map(|one| json!([one["kind"], one["from"], one["to"], one["ends_at"]])).collect::<Vec<_>>()
    };
    assert_eq!(
        shown(&first),
        [
            json!(["rental", "2026-06-01", "2026-06-04", null]),
            json!(["possession", "2026-06-01", "2026-06-04", "2026-06-04T12:00:00.000Z"]),
        ]
    );
    assert_eq!(
        shown(&other),
        [json!(["rental", "2026-06-04", "2026-06-09", null]), json!(["possession", "2026-06-04", null, null]),]
    );
}

#[test]
fn a_foreign_vehicle_is_404_and_bad_days_are_named() {
    let [organization, other] = [Server::shared().organization(), Server::shared().organization()];
    let foreign = format!("/v1/vehicles/{}/calendar?from=2026-01-01&to=2026-01-02", other.vehicle(json!({})));
    organization.get(&foreign).error(404, "invalid_request_error", "resource_missing");
    let own = format!("/v1/vehicles/{}/calendar?from=2026-01-01", organization.vehicle(json!({})));
    assert_eq!(organization.get(&own).bad_fields(), [("to".to_owned(), "parameter_missing".to_owned())]);
}
