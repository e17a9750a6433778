//! PATCH /v1/rentals/{id}

use super::{STATUSES, table};
use crate::support::{Server, rules};
use serde_json::{Value, json};

#[test]
fn the_row_of_the_specification_is_taken_as_it_stands() {
    let organization = Server::shared().organization();
    let path = format!("/v1/rentals/{}", organization.rental(&organization.vehicle(json!({})), json!({})));
    let rental = organization.patch(&path, &json!({"status": "COMPLETED", "damage_at_return": true})).ok();
    rules::whole(&rental, "rental");
    assert_eq!((&rental["status"], &rental["damage_at_return"]), (&json!("COMPLETED"), &json!(true)));
}

#[test]
fn every_status_may_follow_every_other() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({"daily_rate": 10}));
    let dates = json!({"start_date": "2026-06-01", "end_date": "2026-06-05"});
    let path = format!("/v1/rentals/{}", organization.rental(&vehicle, dates));
    for from in STATUSES {
        for to in STATUSES {
            organization.patch(&path, &json!({"status": from})).ok();
            let reply = organization.patch(&path, &json!({"status": to}));
            assert_eq!(reply.ok()["status"], to, "{from} to {to}");
            assert_eq!(organization.get(&path).body, reply.body);
        }
    }
}

#[test]
fn a_good_value_replaces_its_field_and_nothing_else() {
    let organization = Server::shared().organization();
    table(&organization).patch_takes_every_good_value(&organization);
}

#[test]
fn every_bad_value_of_every_field_is_refused_and_changes_nothing() {
    let organization = Server::shared().organization();
    table(&organization).patch_refuses_every_bad_value(&organization);
}

#[test]
fn null_clears_what_can_be_empty_and_is_refused_elsewhere() {
    let organization = Server::shared().organization();
    table(&organization).patch_with_null_clears_what_can_be_empty(&organization);
}

#[test]
fn damage_at_return_is_false_until_a_patch_sets_it_and_can_be_taken_back() {
    let organization = Server::shared().organization();
    let path = format!("/v1/rentals/{}", organization.rental(&organization.vehicle(json!({})), json!({})));
    let shown = || organization.get(&path).ok()["damage_at_return"].clone();
    assert_eq!(shown(), json!(false));
    organization.patch(&path, &json!({"damage_at_return": true})).ok();
    organization.patch(&path, &json!({"status": "COMPLETED"})).ok();
    assert_eq!(shown(), json!(true));
    organization.patch(&path, &json!({"damage_at_return": false})).ok();
    assert_eq!(shown(), json!(false));
}

#[test]
fn the_locked_price_outlives_every_later_change() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({"daily_rate": 100}));
    let id = organization.rental(&vehicle, json!({"start_date": "2026-06-01", "end_date": "2026-06-05"}));
    let path = format!("/v1/rentals/{id}");
    let price = || organization.get(&path).ok()["final_price"].clone();
    assert_eq!(price(), json!(400));
    organization.patch(&format!("/v1/vehicles/{vehicle}"), &json!({"daily_rate": 150})).ok();
    assert_eq!(price(), json!(400));
    let dearer = organization.vehicle(json!({"daily_rate": 999}));
    for change in [
        json!({"status": "APPROVED"}),
        json!({"end_date": "2026-06-10"}),
        json!({"vehicle_id": dearer}),
        json!({"status": "COMPLETED"}),
    ] {
        assert_eq!(organization.patch(&path, &change).ok()["final_price"], json!(400), "{change}");
    }
    let later = organization.rental(&vehicle, json!({"start_date": "2026-07-01", "end_date": "2026-07-02"}));
    assert_eq!(organization.get(&format!("/v1/rentals/{later}")).ok()["final_price"], json!(150));
    assert_eq!(organization.patch(&path, &json!({"final_price": 12.5})).ok()["final_price"], json!(12.5));
}

#[test]
fn a_price_that_was_not_known_is_not_computed_later() {
    let organization = Server::shared().organization();
    let id = organization.rental(&organization.vehicle(json!({"daily_rate": 100})), json!({}));
    let dates = json!({"start_date": "2026-06-01", "end_date": "2026-06-05"});
    let rental = organization.patch(&format!("/v1/rentals/{id}"), &dates).ok();
    assert_eq!((&rental["rental_days"], &rental["final_price"]), (&json!(4), &Value::Null));
}

#[test]
fn rental_days_follow_the_dates() {
    let organization = Server::shared().organization();
    let path = format!("/v1/rentals/{}", organization.rental(&organization.vehicle(json!({})), json!({})));
    for (change, nights) in [
        (json!({"start_date": "2026-06-01"}), Value::Null),
        (json!({"end_date": "2026-06-03"}), json!(2)),
        (json!({"start_date": "2026-06-03"}), json!(0)),
        (json!({"start_date": "2026-06-04", "end_date": "2026-06-14"}), json!(10)),
        (json!({"start_date": null}), Value::Null),
        (json!({"start_date": "2026-05-14"}), json!(31)),
        (json!({"end_date": null}), Value::Null),
    ] {
        assert_eq!(organization.patch(&path, &change).ok()["rental_days"], nights, "{change}");
    }
}

#[test]
fn an_end_before_the_start_names_both_dates_whichever_was_sent() {
    let organization = Server::shared().organization();
    let dates = json!({"start_date": "2026-06-01", "end_date": "2026-06-05"});
    let path = format!("/v1/rentals/{}", organization.rental(&organization.vehicle(json!({})), dates));
    let before = organization.get(&path).body;
    for change in [
        json!({"end_date": "2026-05-31"}),
        json!({"start_date": "2026-06-06"}),
        json!({"start_date": "2027-01-02", "end_date": "2027-01-01"}),
    ] {
        let mut found = organization.patch(&path, &change).bad_fields();
        found.sort();
        assert_eq!(found, ["end_date", "start_date"].map(|field| (field.to_owned(), "parameter_invalid".to_owned())));
    }
    assert_eq!(organization.get(&path).body, before);
}

#[test]
fn customer_and_vehicle_can_be_replaced_but_not_cleared() {
    let [organization, other] = [Server::shared().organization(), Server::shared().organization()];
    let path = format!("/v1/rentals/{}", organization.rental(&organization.vehicle(json!({})), json!({})));
    let foreign = table(&other).base;
    let next = table(&organization).base;
    for field in ["customer_id", "vehicle_id"] {
        for id in [&foreign[field], &json!(rules::UNKNOWN_ID), &json!("x"), &json!("")] {
            let reply = organization.patch(&path, &json!({field: id}));
            assert_eq!(reply.bad_fields(), [(field.to_owned(), "resource_missing".to_owned())], "{id}");
        }
        for bad in [json!(null), json!(1), json!([]), json!({})] {
            let reply = organization.patch(&path, &json!({field: bad}));
            assert_eq!(reply.bad_fields(), [(field.to_owned(), "parameter_invalid".to_owned())], "{bad}");
        }
        assert_eq!(organization.patch(&path, &json!({field: next[field]})).ok()[field], next[field]);
    }
}

#[test]
fn a_patch_that_would_take_a_held_night_is_refused_whole() {
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    let dates = json!({"start_date": "2026-06-01", "end_date": "2026-06-05", "status": "APPROVED"});
    let holder = organization.rental(&vehicle, dates);
    let path = format!(
        "/v1/rentals/{}",
        organization.rental(&vehicle, json!({"start_date": "2026-06-04", "end_date": "2026-06-08"}))
    );
    let before = organization.get(&path).body;
    let refused = organization.patch(&path, &json!({"status": "ACTIVE", "booking_id": "B"}));
    let error = refused.error(409, "invalid_request_error", "vehicle_unavailable");
    assert!(error.to_string().contains(&holder), "{error}");
    assert_eq!(organization.get(&path).body, before);
    organization.patch(&format!("/v1/rentals/{holder}"), &json!({"status": "CANCELLED"})).ok();
    organization.patch(&path, &json!({"status": "ACTIVE"})).ok();
}

#[test]
fn an_empty_patch_changes_nothing() {
    rules::an_empty_patch_changes_nothing("rentals");
}

#[test]
fn an_unknown_a_malformed_and_a_foreign_id_get_the_same_404() {
    rules::ids_that_lead_nowhere_look_alike("PATCH", "rentals");
}

#[test]
fn query_parameters_are_refused() {
    rules::query_parameters_are_refused("PATCH", "rentals");
}
