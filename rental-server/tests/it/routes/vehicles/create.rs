//! POST /v1/vehicles

use super::{SERVER_ONLY, table};
use crate::support::{Server, rules};
use serde_json::{Value, json};

#[test]
fn a_vehicle_needs_only_a_name() {
    let organization = Server::shared().organization();
    let reply = organization.post("/v1/vehicles", &json!({"name": "White Tesla"}));
    let vehicle = reply.ok();
    rules::whole(&vehicle, "vehicle");
    assert_eq!((&vehicle["name"], &vehicle["status"]), (&json!("White Tesla"), &json!("available")));
    assert_eq!(vehicle["organization_id"], json!(organization.id));
    assert_eq!(vehicle["created_at"], vehicle["updated_at"]);
    let fetched = organization.get(&format!("/v1/vehicles/{}", reply.id()));
    assert_eq!((&fetched.body, fetched.header("etag")), (&reply.body, reply.header("etag")));
}

#[test]
fn the_row_of_the_specification_is_taken_as_it_stands() {
    let organization = Server::shared().organization();
    let body = json!({"name": "White Tesla", "make": "Tesla", "model": "Model 3", "year": 2023, "plate": "ABC1234",
        "daily_rate": 89.5, "transponder_number": "00412345678"});
    let vehicle = organization.post("/v1/vehicles", &body).ok();
    for (field, sent) in body.as_object().unwrap() {
        assert_eq!(&vehicle[field], sent, "{field}");
    }
}

#[test]
fn every_documented_field_is_taken_with_every_value_it_can_have() {
    table().post_takes_every_good_value(&Server::shared().organization());
}

#[test]
fn every_bad_value_of_every_field_is_refused_by_name() {
    table().post_refuses_every_bad_value(&Server::shared().organization());
}

#[test]
fn a_field_left_out_or_null_starts_unset() {
    table().post_without_a_field_or_with_null_leaves_it_unset(&Server::shared().organization());
}

#[test]
fn the_name_is_required() {
    table().post_names_each_required_field_that_is_missing(&Server::shared().organization());
}

#[test]
fn unknown_server_only_and_repeated_fields_are_refused() {
    table().refuses_fields_that_it_does_not_take(&Server::shared().organization(), &SERVER_ONLY);
}

#[test]
fn query_parameters_are_refused() {
    rules::query_parameters_are_refused("POST", "vehicles");
}

#[test]
fn every_bad_field_is_named_at_once() {
    let organization = Server::shared().organization();
    let reply = organization.post("/v1/vehicles", &json!({"year": 1700, "daily_rate": -1, "colour": "red"}));
    let mut found = reply.bad_fields();
    found.sort();
    let expected = [
        ("colour", "parameter_unknown"),
        ("daily_rate", "parameter_invalid"),
        ("name", "parameter_missing"),
        ("year", "parameter_invalid"),
    ];
    assert_eq!(found, expected.map(|(param, code)| (param.to_owned(), code.to_owned())));
}

#[test]
fn a_misspelt_field_or_word_gets_a_suggestion() {
    let organization = Server::shared().organization();
    for (body, hint) in [
        (json!({"name": "a", "colour": "red"}), "did you mean `color`"),
        (json!({"name": "a", "dayly_rate": 1}), "did you mean `daily_rate`"),
        (json!({"name": "a", "status": "maintenence"}), "did you mean `maintenance`"),
        (json!({"name": "a", "status": "AVAILABLE"}), "did you mean `available`"),
    ] {
        let reply = organization.post("/v1/vehicles", &body);
        let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(reply.status == 400 && message.contains(hint), "{message}");
    }
}

#[test]
fn amounts_are_in_the_organizations_currency_and_have_its_decimals() {
    for (currency, fits, too_fine) in
        [("USD", "10.25", "10.255"), ("JPY", "1025", "1025.5"), ("KWD", "10.255", "10.2555")]
    {
        let organization = Server::shared().organization_with(&json!({"name": "T", "default_currency": currency}));
        let send = |amount: &str| {
            let body = format!("{{\"name\":\"a\",\"daily_rate\":{amount},\"deposit_amount\":{amount}}}");
            organization.raw("POST", "/v1/vehicles", &[], body.as_bytes())
        };
        let reply = send(fits);
        assert_eq!(reply.ok()["currency"], currency);
        assert!(
            reply.text().contains(&format!("\"daily_rate\":{fits},\"deposit_amount\":{fits},")),
            "{}",
            reply.text()
        );
        let refused = send(too_fine);
        let named: Vec<String> = refused.bad_fields().into_iter().map(|(param, _)| param).collect();
        assert_eq!(named, ["daily_rate", "deposit_amount"]);
        assert!(refused.text().contains("decimals"), "{}", refused.text());
    }
}

#[test]
fn amounts_are_printed_as_the_shortest_exact_number() {
    let organization = Server::shared().organization();
    for (sent, printed) in
        [("89.50", "89.5"), ("1e2", "100"), ("-0.0", "0"), ("0.10", "0.1"), ("99999999999.99", "99999999999.99")]
    {
        let body = format!("{{\"name\":\"a\",\"daily_rate\":{sent}}}");
        let reply = organization.raw("POST", "/v1/vehicles", &[], body.as_bytes());
        assert!(reply.text().contains(&format!("\"daily_rate\":{printed},")), "{sent}: {}", reply.text());
    }
}

#[test]
fn two_vehicles_may_be_alike_and_have_ids_in_order() {
    let organization = Server::shared().organization();
    let body = json!({"name": "Twin", "plate": "ABC1234", "transponder_number": "1", "turo_listing_id": "1"});
    let made: Vec<String> = (0..3).map(|_| organization.post("/v1/vehicles", &body).id()).collect();
    assert!(made.is_sorted() && made[0] != made[1] && made[1] != made[2], "{made:?}");
    assert_eq!(organization.get("/v1/vehicles").ok()["data"].as_array().map(Vec::len), Some(3));
    assert_eq!(organization.get("/v1/vehicles").ok()["next_cursor"], Value::Null);
}
