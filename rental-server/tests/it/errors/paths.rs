//! Paths that lead nowhere, and paths with another method.

use crate::support::{Connection, Server, rules};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn an_unknown_path_is_404_with_a_hint() {
    let organization = Server::shared().organization();
    for path in [
        "/",
        "/v1",
        "/v2/vehicles",
        "/v1/vehicle",
        "/v1/Vehicles",
        "/V1/vehicles",
        "/vehicles",
        "/v1/vehicles/a/b",
        "/v1/leads/x",
        "/v1/webhooks",
        "/admin",
        "/admin/v1",
        "/admin/v1/vehicles",
        "/favicon.ico",
        "/.env",
        "/v1/vehicles.json",
        "/healthz/x",
        "/openapi.yaml",
    ] {
        let error = organization.get(path).error(404, "invalid_request_error", "route_unknown");
        assert!(error["message"].as_str().unwrap().contains(path), "{error}");
    }
    assert!(organization.get("/vehicles").text().contains("/v1"), "the hint says how paths begin");
}

#[test]
fn a_trailing_slash_is_another_path_and_says_so() {
    let organization = Server::shared().organization();
    let id = organization.vehicle(serde_json::json!({}));
    for path in ["/v1/vehicles", "/v1/leads", "/healthz", &format!("/v1/vehicles/{id}")] {
        for method in ["GET", "POST"] {
            let reply = organization.call(method, &format!("{path}/"), &Value::Null);
            let error = reply.error(404, "invalid_request_error", "route_unknown");
            assert!(error["message"].as_str().unwrap().contains(&format!("try {path} without")), "{error}");
        }
    }
}

#[test]
fn hostile_paths_lead_nowhere() {
    let organization = Server::shared().organization();
    let long = format!("/v1/{}", "a".repeat(20_000));
    let many = "/v1".repeat(5_000);
    for path in [
        "//v1/vehicles",
        "/v1//vehicles",
        "///",
        "/v1/../v1/vehicles",
        "/v1/./vehicles",
        "/v1/vehicles/..",
        "/v1/vehicles/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/v1/%2e%2e/admin/v1/organizations",
        "/v1%2fvehicles",
        "/v1/vehicles%00",
        "/v1/vehicles;a=b",
        "/v1/vehicles\\",
        "/v1/%76ehicles",
        "/v1/vehicles%20",
        "/%",
        "/%zz",
        "/v1/vehicles%ff",
        "/v1/{id}",
        "/v1/*",
        &long,
        &many,
    ] {
        let reply = organization.get(path);
        assert!([400, 404].contains(&reply.status), "{path:.60}: {} {}", reply.status, reply.text());
        assert!(reply.body.len() < 2000, "{path:.60}: {} bytes", reply.body.len());
        assert_eq!(reply.json()["error"]["type"], "invalid_request_error", "{path:.60}");
    }
}

#[test]
fn bytes_that_are_no_path_get_an_error_with_a_body_and_a_request_id() {
    let organization = Server::shared().organization();
    for path in ["/v1/véhicules", "/v1/車両", "/v1/vehicles/é"] {
        let reply = organization.get(path);
        assert!([400, 404].contains(&reply.status), "{path}: {}", reply.status);
        assert!(reply.header("request-id").is_some(), "{path}: every answer has a request id");
        assert_eq!(reply.json()["error"]["type"], "invalid_request_error", "{path}");
    }
}

#[test]
fn a_head_that_is_too_large_is_refused_and_the_server_lives_on() {
    let organization = Server::shared().organization();
    let path = format!("/v1/{}", "a".repeat(100_000));
    if let Ok(reply) = Connection::open(&organization.server.address).try_send("GET", &path, &[], b"") {
        assert!([400, 414, 431].contains(&reply.status), "{}", reply.status);
    }
    let many: Vec<(String, String)> = (0..500).map(|n| (format!("X-{n}"), "a".into())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    if let Ok(reply) = Connection::open(&organization.server.address).try_send("GET", "/healthz", &many, b"") {
        assert!([400, 431].contains(&reply.status), "{}", reply.status);
    }
    assert_eq!(organization.get("/v1/vehicles").status, 200);
}

/// Every path with the methods it takes.
fn table() -> BTreeMap<String, BTreeSet<String>> {
    let operators = [
        ("GET POST", "/admin/v1/organizations"),
        ("GET PATCH DELETE", "/admin/v1/organizations/{id}"),
        ("GET POST", "/admin/v1/api_keys"),
        ("GET", "/admin/v1/api_keys/{id}"),
        ("POST", "/admin/v1/api_keys/{id}/revoke"),
        ("POST", "/admin/v1/api_keys/{id}/rotate"),
        ("GET POST", "/admin/v1/organizations/{id}/invoices"),
        ("POST", "/admin/v1/invoices/{id}/pay"),
        ("POST", "/admin/v1/invoices/{id}/void"),
    ];
    let open = ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"].map(|path| ("GET", path));
    let mut table: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (methods, path) in rules::OPERATIONS.into_iter().chain(operators).chain(open) {
        let entry = table.entry(path.replace("{id}", rules::UNKNOWN_ID)).or_default();
        entry.extend(methods.split(' ').map(str::to_owned));
        if entry.contains("GET") {
            entry.insert("HEAD".into());
        }
    }
    table
}

#[test]
fn another_method_is_405_with_exactly_the_methods_of_that_path() {
    let organization = Server::shared().organization();
    for (path, methods) in table() {
        for method in ["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "TRACE", "PURGE", "get"] {
            if methods.contains(method) {
                continue;
            }
            let reply = organization.call(method, &path, &Value::Null);
            assert_eq!(reply.status, 405, "{method} {path}");
            let allow = reply.header("allow").unwrap_or_else(|| panic!("{method} {path}: a 405 has Allow"));
            let allowed: BTreeSet<String> = allow.split(',').map(|method| method.trim().to_owned()).collect();
            assert_eq!(allowed, methods, "{method} {path}");
            if method != "HEAD" {
                reply.error(405, "invalid_request_error", "method_not_allowed");
            }
        }
    }
}

#[test]
fn head_is_get_without_the_body() {
    let organization = Server::shared().organization();
    let id = organization.vehicle(serde_json::json!({}));
    let nowhere = format!("/v1/vehicles/{}", rules::UNKNOWN_ID);
    for path in
        ["/v1/vehicles", &format!("/v1/vehicles/{id}"), &nowhere, "/v1/vehicles?limit=0", "/healthz", "/openapi.json"]
    {
        let (get, head) = (organization.get(path), organization.call("HEAD", path, &Value::Null));
        assert_eq!((head.status, head.body.len()), (get.status, 0), "{path}");
        for name in ["content-type", "content-length", "etag"] {
            assert_eq!(head.header(name), get.header(name), "{path} {name}");
        }
    }
    let anonymous = Connection::open(&organization.server.address).send("HEAD", "/v1/vehicles", &[], b"");
    assert_eq!(anonymous.status, 401);
}

#[test]
fn a_whole_url_in_the_request_line_is_understood() {
    let organization = Server::shared().organization();
    let url = format!("http://{}/v1/vehicles?limit=1", organization.server.address);
    assert_eq!(organization.get(&url).ok()["object"], "list");
}
