//! `api`, `me` and `--debug`.

use crate::fake_server::{FakeServer, ok};

#[test]
fn any_path_is_asked_for_with_the_secret_of_its_half() {
    let server = FakeServer::new(vec![ok(r#"{"a":1}"#)]);
    let ran = server.run(&["api", "get", "/v1/rentals?status=ACTIVE&limit=5"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "{\"a\":1}\n"), "{}", ran.stderr);
    let ran =
        server.run(&["api", "POST", "/admin/v1/api_keys", "--data", r#"{"scope":"read"}"#, "--idempotency-key", "k"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let asked = server.asked();
    assert_eq!(asked[0].line, "GET /v1/rentals?status=ACTIVE&limit=5");
    assert_eq!(asked[0].header("authorization"), Some("Bearer rk_live_test"));
    assert_eq!((asked[1].line.as_str(), asked[1].body.as_str()), ("POST /admin/v1/api_keys", r#"{"scope":"read"}"#));
    assert_eq!(asked[1].header("authorization"), Some("Bearer admin-token-of-the-test"));
    assert_eq!(
        (asked[1].header("idempotency-key"), asked[1].header("content-type")),
        (Some("k"), Some("application/json"))
    );
}

#[test]
fn a_path_stays_in_its_half_and_below_the_base_url() {
    let server = FakeServer::new(vec![ok("{}")]);
    for path in
        ["v1/vehicles", "/docs", "https://evil.example/v1/", "/v1/../admin/v1/x", "/v1/%2E./x", "/v1/a#b", "/v1\\..\\x"]
    {
        let ran = server.run(&["api", "GET", path]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{path}");
    }
    for (path, meant) in [("v1/me", "write /v1/me"), ("admin/v1/status", "write /admin/v1/status")] {
        let ran = server.run(&["api", "GET", path]);
        assert!(ran.code == Some(2) && ran.stderr.contains(meant), "{path}: {}", ran.stderr);
    }
    assert_eq!(server.run(&["api", "GET", "/v1/x", "--data", "{}"]).code, Some(2));
    assert_eq!(server.run(&["api", "BREW", "/v1/x"]).code, Some(2));
    assert_eq!(server.asked().len(), 0);
}

#[test]
fn a_body_comes_from_a_file_too() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("body.json");
    std::fs::write(&file, "{\"a\": 1}").unwrap();
    let server = FakeServer::new(vec![ok("{}")]);
    let ran = server.run(&["api", "PATCH", "/v1/vehicles/1", "--data", &format!("@{}", file.display())]);
    assert_eq!((ran.code, server.asked()[0].body.as_str()), (Some(0), "{\"a\": 1}"));
    assert_eq!(server.run(&["api", "PATCH", "/v1/vehicles/1", "--data", "@/nowhere"]).code, Some(1));
}

#[test]
fn me_tells_the_limits_of_the_key() {
    let server = FakeServer::new(vec![ok(
        r#"{"object":"me","organization_name":"Sunrise","scope":"read","limits":{"max_objects":5,"max_bytes":null}}"#,
    )]);
    let ran = server.run(&["me"]);
    assert_eq!(ran.stdout, "organization_name\tSunrise\nscope\tread\nmax_objects\t5\nmax_bytes\tno limit\n");
    assert_eq!(server.asked()[0].line, "GET /v1/me");
}

#[test]
fn debug_shows_exchanges_on_stderr_without_secrets() {
    let server = FakeServer::new(vec![ok(r#"{"object":"api_key","id":"1","key":"rk_live_new"}"#)]);
    let args =
        ["api-keys", "create", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000", "--scope", "read", "--debug"];
    let ran = server.run(&args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for text in ["> POST http://", "/admin/v1/api_keys", "> authorization: Bearer ***", "< 200", "\"scope\":\"read\""] {
        assert!(ran.stderr.contains(text), "{text}: {}", ran.stderr);
    }
    for secret in ["rk_live", "admin-token"] {
        assert!(!ran.stderr.contains(secret), "{secret}: {}", ran.stderr);
    }
    assert!(ran.stdout.contains("rk_live_new"));
}
