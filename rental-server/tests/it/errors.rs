//! The error table row by row, and what every answer carries (decisions, Errors).

mod bodies;
mod framing;
mod many;
mod paths;

use crate::support::{Connection, Organization, Reply, Server, rules};
use serde_json::{Value, json};
use std::collections::HashSet;

/// One request with the read_write key, these headers and no others.
#[track_caller]
fn plain(organization: &Organization<'_>, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    let bearer = format!("Bearer {}", organization.write);
    let mut all = vec![("Authorization", bearer.as_str())];
    all.extend_from_slice(headers);
    Connection::open(&organization.server.address).send(method, path, &all, body)
}

/// An answer of every status that one client can cause, with its status, type and code.
#[track_caller]
fn one_of_each_error(organization: &Organization<'_>) -> Vec<(Reply, u16, &'static str, &'static str)> {
    const REQUEST: &str = "invalid_request_error";
    let vehicle = organization.vehicle(json!({}));
    let hold = json!({"start_date": "2026-06-01", "end_date": "2026-06-05", "status": "APPROVED"});
    organization.rental(&vehicle, hold.clone());
    let mut clash = hold;
    (clash["vehicle_id"], clash["customer_id"]) = (json!(vehicle), json!(organization.customer(json!({}))));
    let (path, nowhere) = (format!("/v1/vehicles/{vehicle}"), format!("/v1/vehicles/{}", rules::UNKNOWN_ID));
    let server = organization.server;
    let anonymous = Connection::open(&server.address).send("GET", "/v1/vehicles", &[], b"");
    let invoice = organization.one_more("invoices", json!({}));
    let pay = || server.admin("POST", &format!("/admin/v1/invoices/{invoice}/pay"), &Value::Null);
    pay().ok();
    let key = [("Idempotency-Key", "k")];
    organization.call_with("POST", "/v1/leads", &key, &json!({})).ok();
    let huge = [("Content-Length", "99999999999"), ("Content-Type", "application/json")];
    let mut connection = Connection::open(&server.address);
    let head = format!(
        "POST /v1/leads HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n{}: {}\r\n\r\n",
        organization.write, huge[0].0, huge[0].1
    );
    connection.write(head.as_bytes()).unwrap();
    vec![
        (organization.raw("POST", "/v1/leads", &[], b"["), 400, REQUEST, "body_invalid_json"),
        (organization.post("/v1/vehicles", &json!({})), 400, REQUEST, "parameter_missing"),
        (organization.post("/v1/vehicles", &json!({"name": 1})), 400, REQUEST, "parameter_invalid"),
        (organization.post("/v1/vehicles", &json!({"name": "a", "x": 1})), 400, REQUEST, "parameter_unknown"),
        (
            organization.raw("PATCH", &path, &[], b"{\"color\":\"a\",\"color\":\"a\"}"),
            400,
            REQUEST,
            "parameter_duplicate",
        ),
        (organization.get("/v1/vehicles?limit=0"), 400, REQUEST, "parameter_invalid"),
        (organization.post("/v1/leads", &json!({"customer_id": "x"})), 400, REQUEST, "resource_missing"),
        (anonymous, 401, "authentication_error", "api_key_missing"),
        (organization.get("/v1/nothing"), 404, REQUEST, "route_unknown"),
        (organization.get(&nowhere), 404, REQUEST, "resource_missing"),
        (organization.call("DELETE", &path, &Value::Null), 405, REQUEST, "method_not_allowed"),
        (organization.post("/v1/rentals", &clash), 409, REQUEST, "vehicle_unavailable"),
        (pay(), 409, REQUEST, "state_conflict"),
        (
            organization.call_with("PATCH", &path, &[("If-Match", "\"x\"")], &json!({})),
            412,
            REQUEST,
            "precondition_failed",
        ),
        (connection.read_reply(false).unwrap(), 413, REQUEST, "request_too_large"),
        (
            organization.raw("POST", "/v1/leads", &[("Content-Type", "text/csv")], b"a"),
            415,
            REQUEST,
            "unsupported_media_type",
        ),
        (
            organization.call_with("POST", "/v1/leads", &key, &json!({"source_channel": "x"})),
            422,
            "idempotency_error",
            "idempotency_key_reused",
        ),
    ]
}

#[test]
fn every_row_of_the_error_table_has_its_status_type_and_code() {
    let organization = Server::shared().organization();
    for (reply, status, kind, code) in one_of_each_error(&organization) {
        reply.error(status, kind, code);
    }
}

#[test]
fn an_error_body_has_the_documented_members_and_no_others() {
    let organization = Server::shared().organization();
    for (reply, _, _, code) in one_of_each_error(&organization) {
        let body = reply.json();
        assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["error"], "{code}");
        let error = body["error"].as_object().unwrap();
        for name in error.keys() {
            let documented = ["type", "code", "message", "param", "errors", "request_id"].contains(&name.as_str());
            assert!(
                documented || (name == "conflicting_rental_id" && code == "vehicle_unavailable"),
                "{name} in {code}"
            );
        }
        assert!(error.values().all(|value| !value.is_null()), "a member without a value is left out: {body}");
        for item in error.get("errors").and_then(Value::as_array).into_iter().flatten() {
            let named = item["param"].as_str().unwrap();
            assert!(item["message"].as_str().unwrap().contains(named) && item["code"].is_string(), "{item}");
            assert_eq!(item.as_object().map(serde_json::Map::len), Some(3), "{item}");
        }
    }
}

#[test]
fn every_answer_carries_its_request_id_version_and_type() {
    let organization = Server::shared().organization();
    let mut replies: Vec<Reply> = one_of_each_error(&organization).into_iter().map(|row| row.0).collect();
    let pages = ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/docs.css", "/"];
    for path in pages.into_iter().chain(["/v1/vehicles", "/v1/vehicles/x"]) {
        replies.push(organization.get(path));
        replies.push(organization.call("HEAD", path, &Value::Null));
        replies.push(organization.call("OPTIONS", path, &Value::Null));
    }
    let (mut seen, count) = (HashSet::new(), replies.len());
    for reply in replies {
        let id = reply.header("request-id").unwrap_or_else(|| panic!("no Request-Id: {reply:?}")).to_owned();
        assert!(id.len() >= 16 && id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
        assert_eq!(reply.header("service-version"), Some("2026-05-05"), "{reply:?}");
        if reply.status >= 400 {
            assert_eq!(reply.header("content-type"), Some("application/json"));
        }
        let (kind, text) = (reply.header("content-type").expect("a type"), reply.text());
        let is_json = text.is_empty() || serde_json::from_slice::<Value>(&reply.body).is_ok();
        assert!(if kind == "application/json" { is_json } else { kind.ends_with("; charset=utf-8") }, "{kind}: {text}");
        seen.insert(id);
    }
    assert_eq!(seen.len(), count, "each answer has an id of its own");
}

#[test]
fn a_clients_request_id_is_not_taken_for_the_servers() {
    let organization = Server::shared().organization();
    let sent = [("Request-Id", "mine"), ("X-Request-Id", "mine")];
    let reply = organization.call_with("GET", "/v1/nothing", &sent, &Value::Null);
    assert_ne!(reply.header("request-id"), Some("mine"));
}

#[test]
fn too_many_requests_get_429_with_the_time_to_wait() {
    let server = Server::start(&["--rate-limit", "1"]);
    let organization = server.organization();
    let replies: Vec<Reply> = (0..12).map(|_| organization.get("/v1/vehicles")).collect();
    let limited = replies.iter().find(|reply| reply.status == 429).expect("a burst of 12 at 1 a second is too much");
    limited.error(429, "rate_limit_error", "rate_limited");
    assert!(limited.header("retry-after").is_some_and(|wait| wait.parse::<u32>().is_ok_and(|wait| wait >= 1)));
    for reply in &replies {
        assert!(reply.header("ratelimit").is_some() && reply.header("ratelimit-policy").is_some(), "{reply:?}");
    }
    assert_eq!(replies[0].status, 200);
    let other = Connection::open(&server.address).send("GET", "/healthz", &[], b"");
    assert_eq!(other.status, 200, "only that key is limited");
}
