//! Failed authentications: the log and the metrics tell of them.

use super::{refused, send, with_key};
use crate::support::{Connection, Server};
use serde_json::Value;

#[test]
fn the_log_has_address_and_reason_in_few_lines_and_no_secret() {
    let server = Server::start(&[]);
    for number in 0..40 {
        let key = format!("guess-number-{number}");
        refused(&with_key(&server, "GET", "/v1/vehicles", &key), "api_key_invalid");
        refused(&with_key(&server, "GET", "/admin/v1/organizations", &key), "api_key_invalid");
        refused(&send(&server, "GET", "/v1/vehicles", &[]), "api_key_missing");
    }
    let log = server.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("authentication failed")).collect();
    let is_whole =
        |line: &&str| ["WARN", "address=127.0.0.1", "reason=", "failures="].iter().all(|part| line.contains(part));
    assert!((1..40).contains(&lines.len()) && lines.iter().all(is_whole), "{lines:#?}");
    assert!(!log.contains("guess-number"), "{log}");
}

#[test]
fn failures_are_counted_by_surface_and_reason() {
    let server = Server::start(&[]);
    let organization = server.organization();
    let key = &organization.write;
    let keys = server.admin("GET", "/admin/v1/api_keys", &Value::Null).ok();
    let ids = keys["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap());
    ids.for_each(|id| drop(server.admin("POST", &format!("/admin/v1/api_keys/{id}/revoke"), &Value::Null).ok()));
    refused(&with_key(&server, "GET", "/v1/vehicles", key), "api_key_revoked");
    refused(&with_key(&server, "GET", "/v1/vehicles", "nonsense"), "api_key_invalid");
    refused(&with_key(&server, "POST", "/admin/v1/organizations", "nonsense"), "api_key_invalid");
    refused(&with_key(&server, "POST", "/admin/v1/organizations", key), "api_key_invalid");
    refused(&send(&server, "POST", "/admin/v1/organizations", &[]), "api_key_missing");
    refused(&send(&server, "GET", "/v1/vehicles", &["Basic dTpw"]), "api_key_missing");
    let page = Connection::open(&server.address).send("GET", "/metrics", &[], b"").text();
    for (surface, reason, count) in [
        ("api", "revoked", 1),
        ("api", "invalid", 1),
        ("api", "malformed", 1),
        ("api", "missing", 0),
        ("admin", "invalid", 2),
        ("admin", "missing", 1),
    ] {
        let line = format!("rental_authentication_failures_total{{surface=\"{surface}\",reason=\"{reason}\"}} {count}");
        assert!(page.lines().any(|found| found == line), "{line}: {page}");
    }
}
