//! What is sent again, and that the server can tell.

use crate::fake_server::{FakeServer, Ran, Reply, error, ok};
use std::process::{Command, Stdio};

const CREATE: &[&str] = &["vehicles", "create", "--name", "x", "--json"];

fn busy() -> Reply {
    error(503, "retry-after: 0\r\n", "api_error", "service_unavailable")
}

#[test]
fn a_busy_server_is_asked_again_with_the_same_idempotency_key() {
    let server = FakeServer::new(vec![busy(), busy(), ok(r#"{"id":"1"}"#)]);
    let ran = server.run(CREATE);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "{\"id\":\"1\"}\n", ""));
    let asked = server.asked();
    let keys: Vec<_> = asked.iter().filter_map(|asked| asked.header("idempotency-key")).collect();
    assert_eq!((keys.len(), keys[0].len()), (3, 36));
    assert!(keys.iter().all(|key| *key == keys[0]));
    assert!(asked.iter().all(|asked| asked.line == "POST /v1/vehicles" && asked.body == r#"{"name":"x"}"#));
}

#[test]
fn statuses_that_pass_are_tried_again_with_the_same_idempotency_key() {
    for status in [408, 429, 500, 502, 503, 504] {
        let refused = || error(status, "retry-after: 0\r\n", "api_error", "passes");
        let server = FakeServer::new(vec![refused(), refused(), ok(r#"{"id":"1"}"#)]);
        assert_eq!(server.run(CREATE).code, Some(0), "{status}");
        let asked = server.asked();
        let keys: Vec<_> = asked.iter().filter_map(|asked| asked.header("idempotency-key")).collect();
        assert!(keys.len() == 3 && keys.iter().all(|key| *key == keys[0]), "{status}: {keys:?}");
    }
    for status in [400, 401, 403, 404, 405, 409, 412, 413, 415, 422, 501] {
        let server = FakeServer::new(vec![error(status, "retry-after: 0\r\n", "api_error", "stays")]);
        assert_ne!(server.run(CREATE).code, Some(0), "{status}");
        assert_eq!(server.asked().len(), 1, "{status}");
    }
}

#[test]
fn a_longer_wait_than_ten_seconds_is_left_to_the_user() {
    for wait in ["retry-after: 11\r\n", "retry-after: Fri, 31 Dec 9999 23:59:59 GMT\r\n"] {
        let server = FakeServer::new(vec![error(429, wait, "rate_limit_error", "rate_limited")]);
        let ran = server.run(&["vehicles", "list"]);
        assert_eq!((ran.code, server.asked().len()), (Some(8), 1), "{wait}");
        assert!(ran.stderr.contains("hint: try again in "), "{}", ran.stderr);
    }
    let passed = "retry-after: Fri, 31 Dec 1999 23:59:59 GMT\r\n";
    let server = FakeServer::new(vec![error(503, passed, "api_error", "service_unavailable")]);
    server.run(&["vehicles", "list"]);
    assert_eq!(server.asked().len(), 3, "a date that has passed asks for no pause");
}

#[test]
fn a_file_that_is_refused_for_now_is_sent_again_whole() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tolls.csv");
    std::fs::write(&file, "transaction_id\n").unwrap();
    let server = FakeServer::new(vec![ok("{}"), busy(), ok("{\"object\":\"import\",\"received\":0}\n")]);
    let ran = server.run(&[
        "tolls",
        "import",
        "--organization",
        "0190d0f2-7c3a-7cc0-8000-000000000000",
        file.to_str().unwrap(),
    ]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "received\t0\n"), "{}", ran.stderr);
    let sent: Vec<_> = server.asked().into_iter().skip(1).map(|asked| asked.body).collect();
    assert_eq!(sent, ["transaction_id\n", "transaction_id\n"]);
    let mut from_stdin =
        server.command(&["tolls", "import", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000", "-"]);
    let server = FakeServer::new(vec![ok("{}"), busy()]);
    let ran = Ran::of(from_stdin.env("RENTAL_BASE_URL", &server.base_url).stdin(Stdio::null()));
    assert_eq!((ran.code, server.asked().len()), (Some(9), 2), "stdin can be read once only: {}", ran.stderr);
}

#[test]
fn an_export_that_is_refused_for_now_is_asked_for_again() {
    let end = "{\"object\":\"export_end\",\"objects\":0}\n";
    let server = FakeServer::new(vec![busy(), ok(end)]);
    let ran = server.run(&["export", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), end), "{}", ran.stderr);
}

#[test]
fn a_server_that_stays_busy_is_asked_three_times() {
    let server = FakeServer::new(vec![busy()]);
    assert_eq!(server.run(&["vehicles", "list"]).code, Some(9));
    assert_eq!(server.asked().len(), 3);
}

#[test]
fn broken_connections_are_tried_again() {
    let server = FakeServer::new(vec![Reply::HangUp, Reply::BreakOff, ok(r#"{"id":"1"}"#)]);
    assert_eq!(server.run(CREATE).code, Some(0));
    assert_eq!(server.asked().len(), 3);
}

#[test]
fn a_connection_that_always_breaks_exits_with_7() {
    let server = FakeServer::new(vec![Reply::BreakOff]);
    let ran = server.run(&["vehicles", "get", "0190d0f2-7c3a-7cc0-8000-000000000001"]);
    assert_eq!(ran.code, Some(7));
    assert!(ran.stderr.contains("the connection broke"), "{}", ran.stderr);
}

#[test]
fn a_request_that_still_runs_is_waited_for() {
    let in_use = error(409, "retry-after: 0\r\n", "idempotency_error", "idempotency_key_in_use");
    let server = FakeServer::new(vec![in_use, ok(r#"{"id":"1"}"#)]);
    assert_eq!(server.run(CREATE).code, Some(0));
    assert_eq!(server.asked().len(), 2);
}

#[test]
fn a_booking_conflict_is_not_tried_again() {
    let server = FakeServer::new(vec![error(409, "", "invalid_request_error", "vehicle_unavailable")]);
    assert_eq!(
        server.run(&["rentals", "update", "0190d0f2-7c3a-7cc0-8000-000000000001", "--status", "ACTIVE"]).code,
        Some(6)
    );
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn each_run_has_its_own_idempotency_key_unless_the_user_chooses() {
    let server = FakeServer::new(vec![ok(r#"{"id":"1"}"#)]);
    server.run(CREATE);
    server.run(CREATE);
    server.run(&["vehicles", "create", "--name", "x", "--idempotency-key", "import-7"]);
    server.run(&["vehicles", "update", "0190d0f2-7c3a-7cc0-8000-000000000001", "--name", "y"]);
    server.run(&["vehicles", "get", "0190d0f2-7c3a-7cc0-8000-000000000001"]);
    let asked = server.asked();
    let keys: Vec<_> = asked.iter().map(|asked| asked.header("idempotency-key")).collect();
    assert_ne!(keys[0], keys[1]);
    assert_eq!(keys[2], Some("import-7"));
    assert!(keys[3].is_some(), "a PATCH that announces its status must not do it twice");
    assert_eq!(keys[4], None);
}

#[test]
fn an_interrupted_import_says_that_a_repetition_is_safe() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tolls.csv");
    std::fs::write(&file, "transaction_id\n").unwrap();
    let server = FakeServer::new(vec![ok("{}"), Reply::Silence]);
    let mut command = server.command(&[
        "tolls",
        "import",
        "--organization",
        "0190d0f2-7c3a-7cc0-8000-000000000000",
        file.to_str().unwrap(),
    ]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while server.asked().len() < 2 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ended = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(130), "{stderr}");
    assert!(stderr.starts_with("error[interrupted]: ") && stderr.contains("none is imported twice"), "{stderr}");
    assert!(stderr.contains("goes on with the file if it has all of it"), "{stderr}");
}
