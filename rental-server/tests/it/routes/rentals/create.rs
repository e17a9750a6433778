//! POST /v1/rentals

use super::{SERVER_ONLY, STATUSES, table};
use crate::support::{Organization, Server, rules};
use serde_json::{Value, json};

#[test]
fn a_rental_needs_only_a_customer_and_a_vehicle() {
    let organization = Server::shared().organization();
    let reply = organization.post("/v1/rentals", &table(&organization).base);
    let rental = reply.ok();
    rules::whole(&rental, "rental");
    assert_eq!((&rental["status"], &rental["damage_at_return"]), (&json!("NEW"), &json!(false)));
    for unset in
        ["booking_id", "start_date", "end_date", "rental_days", "pickup_type", "delivery_location", "final_price"]
    {
        assert_eq!(rental[unset], Value::Null, "{unset}");
    }
    assert_eq!(organization.get(&format!("/v1/rentals/{}", reply.id())).body, reply.body);
}

#[test]
fn the_row_of_the_specification_is_taken_as_it_stands() {
    let organization = Server::shared().organization();
    let mut body = table(&organization).base;
    for (field, value) in [
        ("start_date", json!("2026-06-01")),
        ("end_date", json!("2026-06-05")),
        ("final_price", json!(400)),
        ("status", json!("APPROVED")),
    ] {
        body[field] = value;
    }
    let rental = organization.post("/v1/rentals", &body).ok();
    for (field, sent) in body.as_object().unwrap() {
        assert_eq!(&rental[field], sent, "{field}");
    }
}

#[test]
fn every_documented_field_is_taken_with_every_value_it_can_have() {
    let organization = Server::shared().organization();
    table(&organization).post_takes_every_good_value(&organization);
}

#[test]
fn every_bad_value_of_every_field_is_refused_by_name() {
    let organization = Server::shared().organization();
    table(&organization).post_refuses_every_bad_value(&organization);
}

#[test]
fn a_field_left_out_or_null_starts_unset() {
    let organization = Server::shared().organization();
    table(&organization).post_without_a_field_or_with_null_leaves_it_unset(&organization);
}

#[test]
fn the_customer_and_the_vehicle_are_required() {
    let organization = Server::shared().organization();
    table(&organization).post_names_each_required_field_that_is_missing(&organization);
}

#[test]
fn unknown_server_only_and_repeated_fields_are_refused() {
    let organization = Server::shared().organization();
    table(&organization).refuses_fields_that_it_does_not_take(&organization, &SERVER_ONLY);
}

#[test]
fn query_parameters_are_refused() {
    rules::query_parameters_are_refused("POST", "rentals");
}

#[test]
fn omitted_status_is_new_and_a_supplied_one_is_kept() {
    let organization = Server::shared().organization();
    let base = table(&organization).base;
    assert_eq!(organization.post("/v1/rentals", &base).ok()["status"], "NEW");
    for status in STATUSES {
        let mut body = base.clone();
        body["status"] = json!(status);
        assert_eq!(organization.post("/v1/rentals", &body).ok()["status"], status);
    }
}

#[test]
fn references_that_lead_nowhere_are_named_all_at_once() {
    let [organization, other] = [Server::shared().organization(), Server::shared().organization()];
    let base = table(&organization).base;
    let foreign = table(&other).base;
    let own = |field: &str| base[field].as_str().unwrap().to_owned();
    let swapped = |field: &str| own(if field == "customer_id" { "vehicle_id" } else { "customer_id" });
    for field in ["customer_id", "vehicle_id"] {
        let theirs = foreign[field].as_str().unwrap().to_owned();
        for id in
            [theirs, swapped(field), rules::UNKNOWN_ID.into(), "x".into(), String::new(), own(field).to_uppercase()]
        {
            let mut body = base.clone();
            body[field] = json!(id);
            let reply = organization.post("/v1/rentals", &body);
            assert_eq!(reply.bad_fields(), [(field.to_owned(), "resource_missing".to_owned())], "{id}");
        }
        for wrong in [json!(1), json!(true), json!([]), json!({}), json!("a\nb")] {
            let mut body = base.clone();
            body[field] = wrong;
            let reply = organization.post("/v1/rentals", &body);
            assert_eq!(reply.bad_fields(), [(field.to_owned(), "parameter_invalid".to_owned())], "{body}");
        }
    }
    let both = organization.post("/v1/rentals", &json!({"customer_id": "x", "vehicle_id": rules::UNKNOWN_ID}));
    let mut found = both.bad_fields();
    found.sort();
    assert_eq!(found, ["customer_id", "vehicle_id"].map(|field| (field.to_owned(), "resource_missing".to_owned())));
    both.error(400, "invalid_request_error", "resource_missing");
}

#[test]
fn rental_days_is_the_number_of_nights() {
    let organization = Server::shared().organization();
    for (start, end, nights) in [
        ("2026-06-01", "2026-06-05", 4),
        ("2026-06-01", "2026-06-01", 0),
        ("2026-06-01", "2026-06-02", 1),
        ("2024-02-28", "2024-03-01", 2),
        ("2025-02-28", "2025-03-01", 1),
        ("2026-12-31", "2027-01-01", 1),
        ("2026-03-28", "2026-03-30", 2),
        ("0001-01-01", "9999-12-31", 3_652_058),
    ] {
        let mut body = table(&organization).base;
        (body["start_date"], body["end_date"]) = (json!(start), json!(end));
        assert_eq!(organization.post("/v1/rentals", &body).ok()["rental_days"], nights, "{start} to {end}");
        body["status"] = json!("APPROVED");
        assert_eq!(organization.post("/v1/rentals", &body).ok()["rental_days"], nights, "{start} to {end}, held");
    }
}

#[test]
fn an_end_before_the_start_names_both_dates() {
    let organization = Server::shared().organization();
    let mut body = table(&organization).base;
    (body["start_date"], body["end_date"]) = (json!("2026-06-05"), json!("2026-06-04"));
    let mut found = organization.post("/v1/rentals", &body).bad_fields();
    found.sort();
    assert_eq!(found, ["end_date", "start_date"].map(|field| (field.to_owned(), "parameter_invalid".to_owned())));
}

#[track_caller]
fn price(organization: &Organization<'_>, vehicle: Value, rental: Value) -> Value {
    let id = organization.rental(&organization.vehicle(vehicle), rental);
    organization.get(&format!("/v1/rentals/{id}")).ok()["final_price"].clone()
}

#[test]
fn an_omitted_price_is_nights_times_the_daily_rate() {
    let organization = Server::shared().organization();
    let dates = |start: &str, end: &str| json!({"start_date": start, "end_date": end});
    let four = dates("2026-06-01", "2026-06-05");
    assert_eq!(price(&organization, json!({"daily_rate": 89.5}), four.clone()), json!(358));
    assert_eq!(price(&organization, json!({"daily_rate": 0.1}), dates("2026-06-01", "2026-06-04")), json!(0.3));
    assert_eq!(price(&organization, json!({"daily_rate": 33.33}), dates("2026-06-01", "2026-06-04")), json!(99.99));
    assert_eq!(price(&organization, json!({"daily_rate": 0}), four.clone()), json!(0));
    assert_eq!(
        price(&organization, json!({"daily_rate": 89.5}), dates("2026-06-01", "2026-06-01")),
        json!(89.5),
        "as one"
    );
    let mut null = four;
    null["final_price"] = Value::Null;
    assert_eq!(price(&organization, json!({"daily_rate": 10}), null), json!(40), "null is the same as left out");
}

#[test]
fn an_omitted_price_is_null_while_nights_or_rate_are_not_known() {
    let organization = Server::shared().organization();
    let both = json!({"start_date": "2026-06-01", "end_date": "2026-06-05"});
    assert_eq!(price(&organization, json!({}), both), Value::Null);
    for one in [json!({"start_date": "2026-06-01"}), json!({"end_date": "2026-06-05"}), json!({})] {
        assert_eq!(price(&organization, json!({"daily_rate": 10}), one), Value::Null);
    }
}

#[test]
fn an_explicit_price_is_kept_even_when_it_is_zero() {
    let organization = Server::shared().organization();
    for explicit in [json!(0), json!(12.34), json!(1000)] {
        let rental = json!({"start_date": "2026-06-01", "end_date": "2026-06-05", "final_price": explicit});
        assert_eq!(price(&organization, json!({"daily_rate": 89.5}), rental), explicit);
    }
}

#[test]
fn a_price_beyond_every_amount_is_refused_by_name() {
    let organization = Server::shared().organization();
    let mut body = table(&organization).base;
    body["vehicle_id"] = json!(organization.vehicle(json!({"daily_rate": 99_999_999_999.99})));
    (body["start_date"], body["end_date"]) = (json!("2026-06-01"), json!("2026-06-03"));
    let reply = organization.post("/v1/rentals", &body);
    assert_eq!(reply.bad_fields(), [("final_price".to_owned(), "parameter_invalid".to_owned())]);
}

#[test]
fn the_price_has_the_currency_and_decimals_of_the_organization() {
    for (currency, rate, total) in [("JPY", json!(5000), json!(20000)), ("KWD", json!(1.125), json!(4.5))] {
        let organization = Server::shared().organization_with(&json!({"name": "T", "default_currency": currency}));
        let vehicle = organization.vehicle(json!({"daily_rate": rate}));
        let id = organization.rental(&vehicle, json!({"start_date": "2026-06-01", "end_date": "2026-06-05"}));
        let rental = organization.get(&format!("/v1/rentals/{id}")).ok();
        assert_eq!((&rental["currency"], &rental["final_price"]), (&json!(currency), &total));
    }
}

#[test]
fn a_second_hold_of_the_same_night_is_refused_and_names_the_first() {
    let organization = Server::shared().organization();
    let mut body = table(&organization).base;
    (body["start_date"], body["end_date"], body["status"]) =
        (json!("2026-06-01"), json!("2026-06-05"), json!("APPROVED"));
    let first = organization.post("/v1/rentals", &body).id();
    (body["start_date"], body["end_date"], body["status"]) =
        (json!("2026-06-04"), json!("2026-06-06"), json!("ACTIVE"));
    let refused = organization.post("/v1/rentals", &body);
    let error = refused.error(409, "invalid_request_error", "vehicle_unavailable");
    assert!(error.to_string().contains(&first), "{error}");
    body["start_date"] = json!("2026-06-05");
    organization.post("/v1/rentals", &body).ok();
    assert_eq!(rules::walk(&organization, "rentals", "", 100).len(), 2);
}

#[test]
fn a_missing_object_does_not_hide_the_other_errors() {
    let organization = Server::shared().organization();
    let (customer, unknown) = (organization.customer(json!({})), rules::UNKNOWN_ID);
    let dates = ["end_date", "start_date"].map(|param| (param, "parameter_invalid"));
    for (body, expected) in [
        (
            json!({"customer_id": customer, "vehicle_id": unknown, "start_date": "2027-06-05", "end_date": "2027-06-01"}),
            vec![("vehicle_id", "resource_missing"), dates[0], dates[1]],
        ),
        (
            json!({"customer_id": "x", "vehicle_id": unknown, "start_date": "2027-06-05", "end_date": "2027-06-01"}),
            vec![("customer_id", "resource_missing"), ("vehicle_id", "resource_missing"), dates[0], dates[1]],
        ),
        (
            json!({"customer_id": unknown, "final_price": -1}),
            vec![
                ("final_price", "parameter_invalid"),
                ("vehicle_id", "parameter_missing"),
                ("customer_id", "resource_missing"),
            ],
        ),
    ] {
        let reply = organization.post("/v1/rentals", &body);
        let expected: Vec<_> = expected.into_iter().map(|(param, code)| (param.to_owned(), code.to_owned())).collect();
        assert_eq!(reply.bad_fields(), expected, "{body}");
    }
    assert_eq!(organization.get("/v1/rentals").ok()["data"], json!([]));
}
