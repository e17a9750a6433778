//! Failed authentications: the log and the metrics tell of them, and an address with too many is refused.

use super::{refused, send, with_key};
use crate::support::{Connection, Server};
use serde_json::Value;

/// The sum of `failures` in the log lines about this address.
fn logged(log: &str, address: &str) -> u64 {
    let field = |line: &str, name: &str| {
        let (_, rest) = line.split_once(&format!(" {name}="))?;
        Some(rest.split(' ').next()?.trim_matches('"').to_owned())
    };
    let lines = log.lines().filter(|line| line.contains("authentication failed"));
    let of_address = lines.filter(|line| field(line, "address").as_deref() == Some(address));
    of_address.filter_map(|line| field(line, "failures")?.parse::<u64>().ok()).sum()
}

#[test]
fn the_log_has_address_number_and_reason_of_all_failures_in_few_lines_and_no_secret() {
    let server = Server::start(&[]);
    for number in 0..40 {
        refused(&with_key(&server, "GET", "/v1/vehicles", &format!("guess-number-{number}")), "api_key_invalid");
        refused(
            &with_key(&server, "GET", "/admin/v1/organizations", &format!("guess-number-{number}")),
            "api_key_invalid",
        );
        refused(&send(&server, "GET", "/v1/vehicles", &[]), "api_key_missing");
    }
    // Each line says how many there were since the one before; what is left is logged some seconds later.
    for _ in 0..1200 {
        if logged(&server.log(), "127.0.0.1") >= 120 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let log = server.log();
    assert_eq!(logged(&log, "127.0.0.1"), 120, "{log}");
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("authentication failed")).collect();
    assert!(
        lines.len() < 20 && lines.iter().all(|line| line.contains("WARN") && line.contains("reason=")),
        "{lines:#?}"
    );
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

#[test]
fn an_address_with_too_many_failures_is_429_and_valid_keys_from_it_are_served() {
    let server = Server::start(&["--max-failed-authentications", "5"]);
    let organization = server.organization();
    let wrong = |path: &str| with_key(&server, "GET", path, "nonsense");
    for _ in 0..5 {
        refused(&wrong("/v1/vehicles"), "api_key_invalid");
    }
    // A key that looks real, and the API of operators: the same address.
    let real = format!("{}{}", &organization.write[..56], if organization.write.ends_with('0') { '1' } else { '0' });
    for reply in
        [wrong("/v1/vehicles"), wrong("/admin/v1/organizations"), with_key(&server, "GET", "/v1/vehicles", &real)]
    {
        reply.error(429, "rate_limit_error", "too_many_failures");
        let seconds: u64 = reply.header("retry-after").expect("Retry-After").parse().expect("seconds");
        assert!((1..=60).contains(&seconds), "{seconds}");
    }
    assert_eq!(with_key(&server, "GET", "/v1/vehicles", &organization.read).status, 200);
    server.admin("GET", "/admin/v1/organizations", &Value::Null).ok();
    // A request without a key guesses none.
    refused(&send(&server, "GET", "/v1/vehicles", &[]), "api_key_missing");
    let page = Connection::open(&server.address).send("GET", "/metrics", &[], b"").text();
    assert!(page.lines().any(|line| line == "rental_authentication_refusals_total 3"), "{page}");
}
