//! Order of checks: route, method, key, plan, scope, size and media type, body, store (decisions, Errors).

use super::{refused, send, with_key};
use crate::support::{Connection, Reply, Server, rules};
use serde_json::json;

/// A request that is wrong in every way which comes after the scope.
#[track_caller]
fn bad_write(server: &Server, method: &str, path: &str, key: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    let bearer = format!("Bearer {key}");
    let mut all = vec![("Authorization", bearer.as_str())];
    all.extend_from_slice(headers);
    Connection::open(&server.address).send(method, path, &all, body)
}

#[test]
fn the_route_and_the_method_come_before_the_key() {
    let server = Server::shared();
    for authorization in [&[][..], &["Bearer nonsense"][..]] {
        for path in ["/v1/nothing", "/v1/vehicles/x/y", "/nothing", "/admin/v1/nothing"] {
            send(server, "GET", path, authorization).error(404, "invalid_request_error", "route_unknown");
        }
        for (method, path) in [("DELETE", "/v1/vehicles"), ("POST", "/v1/invoices"), ("PUT", "/admin/v1/organizations")]
        {
            send(server, method, path, authorization).error(405, "invalid_request_error", "method_not_allowed");
        }
    }
}

#[test]
fn the_key_comes_before_the_plan_and_the_plan_before_the_scope() {
    let free = Server::shared().organization_with(&json!({"name": "Free", "plan": "free"}));
    let key = with_made_key(&free, json!({"scope": "read"}));
    let write = |key: &str| bad_write(free.server, "POST", "/v1/vehicles", key, &[], b"[");
    write(&key.1).error(403, "permission_error", "plan_required");
    free.server.admin("POST", &format!("/admin/v1/api_keys/{}/revoke", key.0), &json!({})).ok();
    refused(&write(&key.1), "api_key_revoked");
}

#[track_caller]
fn with_made_key(organization: &crate::support::Organization<'_>, mut body: serde_json::Value) -> (String, String) {
    body["organization_id"] = json!(organization.id);
    let made = organization.server.admin("POST", "/admin/v1/api_keys", &body).ok();
    (made["id"].as_str().unwrap().to_owned(), made["key"].as_str().unwrap().to_owned())
}

#[test]
fn the_scope_comes_before_everything_about_the_body_and_the_object() {
    let organization = Server::shared().organization();
    for (method, path) in rules::OPERATIONS.iter().filter(|(method, _)| *method != "GET") {
        let path = path.replace("{id}", rules::UNKNOWN_ID);
        for (headers, body) in [
            (&[][..], &b"["[..]),
            (&[("Content-Type", "text/csv")][..], &b"a,b"[..]),
            (&[("Content-Encoding", "gzip")][..], &b"\x1f\x8b"[..]),
            (&[("If-Match", "\"other\"")][..], &b"{}"[..]),
            (&[("Idempotency-Key", "")][..], &b"{}"[..]),
        ] {
            let reply = bad_write(organization.server, method, &path, &organization.read, headers, body);
            reply.error(403, "permission_error", "insufficient_scope");
        }
        let query = format!("{path}?nonsense=1");
        let reply = bad_write(organization.server, method, &query, &organization.read, &[], b"{}");
        reply.error(403, "permission_error", "insufficient_scope");
    }
}

#[test]
fn size_and_media_type_come_before_the_body_and_the_body_before_the_store() {
    let organization = Server::shared().organization();
    let path = format!("/v1/vehicles/{}", rules::UNKNOWN_ID);
    let write = |headers: &[(&str, &str)], body: &[u8]| {
        bad_write(organization.server, "PATCH", &path, &organization.write, headers, body)
    };
    write(&[("Content-Type", "text/plain")], b"[").error(415, "invalid_request_error", "unsupported_media_type");
    write(&[], b"[").error(400, "invalid_request_error", "body_invalid_json");
    write(&[], b"{\"year\":1}").error(400, "invalid_request_error", "parameter_invalid");
    write(&[], b"{}").error(404, "invalid_request_error", "resource_missing");
}

#[test]
fn the_key_comes_before_the_object_and_the_query() {
    let server = Server::shared();
    for path in ["/v1/vehicles?limit=0", "/v1/vehicles/x", "/v1/rentals?nonsense=1"] {
        refused(&with_key(server, "GET", path, "nonsense"), "api_key_invalid");
    }
}
