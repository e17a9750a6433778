//! Bodies that are not JSON, not an object, or JSON that is out to hurt.

use super::plain;
use crate::support::Server;
use serde_json::{Value, json};

#[test]
fn malformed_json_is_refused_with_its_line_and_column() {
    let organization = Server::shared().organization();
    for (body, line) in [
        (&b"{"[..], 1),
        (b"[]", 1),
        (b"[{\"name\":\"a\"}]", 1),
        (b"null", 1),
        (b"true", 1),
        (b"1", 1),
        (b"\"{}\"", 1),
        (b" ", 1),
        (b"\n", 2),
        (b"{}x", 1),
        (b"{}{}", 1),
        (b"{\"name\":}", 1),
        (b"{\"name\" \"a\"}", 1),
        (b"{\"name\":\"a\",}", 1),
        (b"{'name':'a'}", 1),
        (b"{name:\"a\"}", 1),
        (b"{\"name\":\"a\" /* b */}", 1),
        (b"{\"name\":NaN}", 1),
        (b"{\"name\":Infinity}", 1),
        (b"{\"name\":01}", 1),
        (b"{\"name\":1.}", 1),
        (b"{\"name\":.5}", 1),
        (b"{\"name\":+1}", 1),
        (b"{\"name\":0x10}", 1),
        (b"{\"name\":\"a\x01b\"}", 1),
        (b"{\"name\":\"a\tb\"}", 1),
        (b"{\"name\":\"a\\x41\"}", 1),
        (b"\xef\xbb\xbf{}", 1),
        (b"{\n  \"name\": \"a\",\n  \"year\": oops\n}", 3),
        (b"{\r\n\"name\":\"a\"\r\n", 3),
        (b"name=a&year=2020", 1),
        (b"\0", 1),
    ] {
        let reply = organization.raw("POST", "/v1/vehicles", &[], body);
        let error = reply.error(400, "invalid_request_error", "body_invalid_json");
        let message = error["message"].as_str().unwrap();
        let shown = String::from_utf8_lossy(body);
        assert!(message.contains(&format!("line {line} column ")), "{shown:?}: {message}");
        assert!(error.get("param").is_none() && error.get("errors").is_none(), "{shown:?}: {error}");
    }
}

#[test]
fn a_body_that_is_not_utf_8_is_refused() {
    let organization = Server::shared().organization();
    for body in [
        &b"{\"name\":\"\xff\"}"[..],
        b"{\"name\":\"\xc3\"}",
        b"{\"\xff\":1}",
        b"\xff\xfe{\0}\0",
        b"{\"name\":\"\xed\xa0\x80\"}",
    ] {
        let reply = organization.raw("POST", "/v1/vehicles", &[], body);
        reply.error(400, "invalid_request_error", "body_invalid_json");
        let reply = organization.raw("POST", "/v1/leads", &[], &[b"{\"raw_data\":", body, b"}"].concat());
        assert_eq!(reply.status, 400, "{}", reply.text());
    }
}

#[test]
fn half_of_a_surrogate_pair_is_refused() {
    let organization = Server::shared().organization();
    for body in [r#"{"name":"\ud800"}"#, r#"{"name":"\udc00\ud800"}"#, r#"{"name":"a","\ud800":1}"#] {
        assert_eq!(organization.raw("POST", "/v1/vehicles", &[], body.as_bytes()).status, 400, "{body}");
    }
}

#[test]
fn an_escaped_name_is_the_same_name() {
    let organization = Server::shared().organization();
    let reply = organization.raw("POST", "/v1/vehicles", &[], br#"{"\u006eame":"Es\u0063aped"}"#);
    assert_eq!(reply.ok()["name"], "Escaped");
    let twice = organization.raw("POST", "/v1/vehicles", &[], br#"{"name":"a","n\u0061me":"b"}"#);
    assert_eq!(twice.bad_fields(), [("name".to_owned(), "parameter_duplicate".to_owned())]);
}

#[test]
fn a_key_sent_thrice_is_refused_whatever_its_values() {
    let organization = Server::shared().organization();
    let reply = organization.raw("POST", "/v1/vehicles", &[], br#"{"name":"a","name":"a","year":1,"name":null}"#);
    let named: Vec<String> = reply.bad_fields().into_iter().map(|(param, _)| param).collect();
    assert!(named.contains(&"name".to_owned()) && named.contains(&"year".to_owned()), "{named:?}");
}

#[test]
fn deep_nesting_is_refused_and_the_server_lives_on() {
    let organization = Server::shared().organization();
    for depth in [129, 1000, 100_000, 400_000] {
        let nest = |open: &str, close: &str| format!("{}1{}", open.repeat(depth), close.repeat(depth));
        for deep in [nest("[", "]"), nest("{\"a\":", "}")].iter().filter(|deep| deep.len() < 1_000_000) {
            for body in [deep.clone(), format!("{{\"name\":{deep}}}"), format!("{{\"x\":{deep}}}")] {
                assert_eq!(organization.raw("POST", "/v1/vehicles", &[], body.as_bytes()).status, 400, "{depth}");
            }
            let body = format!("{{\"raw_data\":{{\"a\":{deep}}}}}");
            assert_eq!(organization.raw("POST", "/v1/leads", &[], body.as_bytes()).status, 400, "{depth}");
        }
        let open = "[".repeat(depth);
        assert_eq!(organization.raw("POST", "/v1/vehicles", &[], open.as_bytes()).status, 400, "{depth}");
    }
    assert_eq!(organization.get("/v1/vehicles").ok()["data"], json!([]));
}

#[test]
fn numbers_that_no_float_holds_are_refused_by_name_not_rounded() {
    let organization = Server::shared().organization();
    for number in [
        "1e400",
        "-1e400",
        "1e-400",
        "1e99999999999999999999",
        "9007199254740993",
        "0.1000000000000000055511151231257827",
    ] {
        for field in ["year", "daily_rate", "deposit_amount"] {
            let body = format!("{{\"name\":\"a\",\"{field}\":{number}}}");
            let reply = organization.raw("POST", "/v1/vehicles", &[], body.as_bytes());
            assert_eq!(reply.bad_fields(), [(field.to_owned(), "parameter_invalid".to_owned())], "{number}");
        }
    }
    let reply = organization.raw("POST", "/v1/vehicles", &[], br#"{"name":"a","year":2.024e3,"daily_rate":-0e5}"#);
    assert_eq!((&reply.ok()["year"], &reply.ok()["daily_rate"]), (&json!(2024), &json!(0)), "equal numbers are equal");
}

#[test]
fn every_bad_field_of_a_body_is_named_at_once_in_its_order() {
    let organization = Server::shared().organization();
    let body = br#"{"year":1,"name":" ","wheels":4,"plate":5,"status":"gone","id":"x","daily_rate":1.001}"#;
    let reply = organization.raw("POST", "/v1/vehicles", &[], body);
    let expected = [
        ("year", "parameter_invalid"),
        ("name", "parameter_invalid"),
        ("wheels", "parameter_unknown"),
        ("plate", "parameter_invalid"),
        ("status", "parameter_invalid"),
        ("id", "parameter_unknown"),
        ("daily_rate", "parameter_invalid"),
    ];
    assert_eq!(reply.bad_fields(), expected.map(|(param, code)| (param.to_owned(), code.to_owned())));
}

/// A refusal must not be a way to make the server work or talk much more than the client did.
#[test]
fn a_refusal_is_not_much_larger_than_its_request() {
    let organization = Server::shared().organization();
    let many: Vec<String> = (0..60_000).map(|n| format!("\"x{n}\":1")).collect();
    let long = format!("\"{}\":1", "y".repeat(400_000));
    for body in [format!("{{{}}}", many.join(",")), format!("{{{long},{long}}}")] {
        let reply = organization.raw("POST", "/v1/vehicles", &[], body.as_bytes());
        assert_eq!(reply.status, 400);
        assert!(reply.body.len() < body.len(), "{} bytes in, {} bytes out", body.len(), reply.body.len());
    }
}

#[test]
fn only_json_is_taken() {
    let organization = Server::shared().organization();
    for kind in [
        "text/plain",
        "text/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/xml",
        "application/jsonp",
        "json",
        "",
        "application/json; charset=iso-8859-1",
        "application/json; charset=utf-16",
        "application/json, text/plain",
        "*/*",
    ] {
        let reply = plain(&organization, "POST", "/v1/vehicles", &[("Content-Type", kind)], b"{\"name\":\"a\"}");
        reply.error(415, "invalid_request_error", "unsupported_media_type");
    }
    let both = [("Content-Type", "application/json"), ("Content-Type", "text/plain")];
    let reply = plain(&organization, "POST", "/v1/vehicles", &both, b"{\"name\":\"a\"}");
    reply.error(415, "invalid_request_error", "unsupported_media_type");
    assert_eq!(organization.get("/v1/vehicles").ok()["data"], Value::Array(Vec::new()));
}

#[test]
fn json_is_taken_under_each_of_its_names_and_without_one() {
    let organization = Server::shared().organization();
    for kind in [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        "application/json; charset=\"utf-8\"",
        "application/merge-patch+json",
        "application/vnd.example+json",
    ] {
        plain(&organization, "POST", "/v1/vehicles", &[("Content-Type", kind)], b"{\"name\":\"a\"}").ok();
    }
    plain(&organization, "POST", "/v1/vehicles", &[], b"{\"name\":\"a\"}").ok();
    plain(&organization, "POST", "/v1/leads", &[("Content-Type", "text/plain")], b"").ok();
}

#[test]
fn a_compressed_body_is_refused() {
    let organization = Server::shared().organization();
    for coding in ["gzip", "GZIP", "br", "deflate", "zstd", "compress", "gzip, identity", "x", ""] {
        let headers = [("Content-Type", "application/json"), ("Content-Encoding", coding)];
        let reply = plain(&organization, "POST", "/v1/vehicles", &headers, b"{\"name\":\"a\"}");
        reply.error(415, "invalid_request_error", "unsupported_media_type");
    }
    let headers = [("Content-Type", "application/json"), ("Content-Encoding", "identity")];
    plain(&organization, "POST", "/v1/vehicles", &headers, b"{\"name\":\"a\"}").ok();
}
