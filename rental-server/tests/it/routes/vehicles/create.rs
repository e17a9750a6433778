//! POST /v1/vehicles

use crate::support::Server;
use serde_json::json;

#[test]
fn a_vehicle_needs_only_a_name() {
    let organization = Server::shared().organization();
    let reply = organization.post("/v1/vehicles", &json!({"name": "White Tesla"}));
    let vehicle = reply.ok();
    assert_eq!((&vehicle["object"], &vehicle["name"], &vehicle["status"]), (&json!("vehicle"), &json!("White Tesla"), &json!("available")));
    assert_eq!(vehicle["organization_id"], json!(organization.id));
    let fetched = organization.get(&format!("/v1/vehicles/{}", reply.id()));
    assert_eq!((fetched.body, fetched.headers.iter().find(|header| header.0 == "etag").cloned()), (reply.body.clone(), reply.headers.iter().find(|header| header.0 == "etag").cloned()));
}

#[test]
fn every_bad_field_is_named_at_once() {
    let organization = Server::shared().organization();
    let reply = organization.post("/v1/vehicles", &json!({"year": 1700, "daily_rate": -1, "colour": "red"}));
    let expected = [("year", "parameter_invalid"), ("daily_rate", "parameter_invalid"), ("colour", "parameter_unknown"), ("name", "parameter_missing")];
    let mut found = reply.bad_fields();
    found.sort();
    let mut expected: Vec<_> = expected.map(|(param, code)| (param.to_owned(), code.to_owned())).to_vec();
    expected.sort();
    assert_eq!(found, expected);
}
