//! GET /v1/me

use crate::support::Server;
use serde_json::{Value, json};

#[test]
fn a_key_is_told_its_organization_its_scope_and_its_limits() {
    let server = Server::shared();
    let fields = json!({"name": "Sunrise", "default_currency": "JPY", "time_zone": "Asia/Tokyo", "max_objects": 7,
        "max_bytes": 5_000_000, "max_requests_per_second": 300});
    let organization = server.organization_with(&fields);
    let me = organization.get("/v1/me").ok();
    let expected = json!({
        "object": "me", "organization_id": organization.id, "organization_name": "Sunrise", "plan": "pro", "currency": "JPY",
        "time_zone": "Asia/Tokyo", "api_key_id": me["api_key_id"], "scope": "read_write",
        "limits": {
            "requests_per_second": null, "organization_requests_per_second": 300, "max_objects": 7, "max_bytes": 5_000_000,
            "max_body_bytes": me["limits"]["max_body_bytes"], "max_page_size": 100,
        },
    });
    assert_eq!(me, expected);
    assert!(me["limits"]["max_body_bytes"].as_u64().is_some_and(|bytes| bytes >= 65_536));
    let key = server.admin("GET", &format!("/admin/v1/api_keys/{}", me["api_key_id"].as_str().unwrap()), &Value::Null);
    assert_eq!(key.ok()["scope"], "read_write");
}

#[test]
fn a_read_key_sees_that_it_only_reads() {
    let organization = Server::shared().organization();
    let header = format!("Bearer {}", organization.read);
    let mut connection = crate::support::Connection::open(&organization.server.address);
    let me = connection.send("GET", "/v1/me", &[("Authorization", &header)], b"").ok();
    assert_eq!(me["scope"], "read");
}

#[test]
fn query_parameters_are_refused() {
    let organization = Server::shared().organization();
    let found = organization.get("/v1/me?limit=1").bad_fields();
    assert_eq!(found, [("limit".to_owned(), "parameter_unknown".to_owned())]);
    organization.post("/v1/me", &json!({})).error(405, "invalid_request_error", "method_not_allowed");
}
