//! Requests with more mistakes than a response lists: neither the response nor the work grows with their number.

use crate::support::Server;
use serde_json::{Value, json};

/// Most bytes of a response to any of these requests: 50 errors of less than 300 bytes.
const MOST_BYTES: usize = 16_000;

/// 28 KB of parameters with different, unknown names.
fn unknown_parameters() -> (usize, String) {
    let parts: Vec<String> = (0..3_500).map(|n| format!("lim{n:04}")).collect();
    (parts.len(), parts.join("&"))
}

#[test]
fn a_query_of_28_kb_of_unknown_names_has_one_error() {
    let server = Server::shared();
    let organization = server.organization();
    let (count, query) = unknown_parameters();
    let vehicle = organization.vehicle(json!({}));
    let own = |path: String| organization.get(&format!("{path}?{query}"));
    let operator = |path: String| server.admin("GET", &format!("{path}?{query}"), &Value::Null);
    for reply in [
        own("/v1/vehicles".into()),
        own("/v1/rentals".into()),
        own(format!("/v1/vehicles/{vehicle}")),
        operator(format!("/admin/v1/organizations/{}/tolls/suggestions", organization.id)),
        operator("/admin/v1/organizations".into()),
    ] {
        assert_eq!(reply.bad_fields(), [("lim0032".to_owned(), "parameter_invalid".to_owned())]);
        assert!(reply.body.len() < 1_000, "{} bytes", reply.body.len());
        let message = reply.json()["error"]["message"].clone();
        let expected = format!("at most 32 query parameters, and this one has {count}");
        assert!(message.as_str().is_some_and(|text| text.contains(&expected)), "{message}");
    }
}

#[test]
fn thirty_two_parameters_are_each_looked_at() {
    let organization = Server::shared().organization();
    let names: Vec<String> = (0..32).map(|n| format!("limi{n}")).collect();
    let reply = organization.get(&format!("/v1/vehicles?{}", names.join("=1&")));
    let named: Vec<String> = reply.bad_fields().into_iter().map(|(param, _)| param).collect();
    assert_eq!(named, names);
    let errors = reply.json()["error"]["errors"].clone();
    assert!(errors[0]["message"].as_str().is_some_and(|text| text.contains("did you mean `limit`")), "{errors}");
}

#[test]
fn a_body_lists_fifty_errors_and_counts_the_others() {
    let organization = Server::shared().organization();
    let unknown: Vec<String> = (0..60_000).map(|n| format!("\"nam{n}\":1")).collect();
    let (unknown, twice) = (unknown.join(","), vec!["\"year\":2020"; 60_000].join(","));
    for (body, unlisted) in [
        // `name` is missing too.
        (format!("{{{unknown}}}"), 60_001 - 50),
        (format!("{{\"name\":\"a\",{twice}}}"), 59_999 - 50),
        (format!("{{{unknown},\"name\":\" \",\"year\":1}}"), 60_002 - 50),
    ] {
        let reply = organization.raw("POST", "/v1/vehicles", &[], body.as_bytes());
        assert_eq!(reply.bad_fields().len(), 50);
        assert!(reply.body.len() < MOST_BYTES, "{} bytes", reply.body.len());
        let message = reply.json()["error"]["message"].clone();
        let expected = format!("(49 more in `errors`, {unlisted} more not listed.)");
        assert!(message.as_str().is_some_and(|text| text.ends_with(&expected)), "{message}");
    }
}

#[test]
fn free_json_and_the_lines_of_an_invoice_list_fifty_errors_too() {
    let organization = Server::shared().organization();
    let twice = vec!["\"a\":1"; 5_000].join(",");
    let path = format!("{{\"{}\":{{{twice}}}}}", "n".repeat(20_000));
    for raw in [format!("{{{twice}}}"), path] {
        let reply = organization.raw("POST", "/v1/leads", &[], format!("{{\"raw_data\":{raw}}}").as_bytes());
        assert_eq!(reply.bad_fields().len(), 50);
        assert!(reply.body.len() < MOST_BYTES, "{} bytes", reply.body.len());
    }
    let customer = organization.customer(json!({}));
    let lines: Vec<Value> = (0..200).map(|n| json!({"toll_id": format!("no such toll {n}")})).collect();
    let path = format!("/admin/v1/organizations/{}/invoices", organization.id);
    let reply = Server::shared().admin("POST", &path, &json!({"customer_id": customer, "lines": lines}));
    assert_eq!(reply.bad_fields().len(), 50);
    let message = reply.json()["error"]["message"].clone();
    assert!(message.as_str().is_some_and(|text| text.contains("150 more not listed")), "{message}");
}
