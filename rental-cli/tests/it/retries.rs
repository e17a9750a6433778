//! What is sent again, and that the server can tell.

use crate::fake_server::{FakeServer, Reply, error, ok};

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
    let ran = server.run(&["vehicles", "get", "1"]);
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
    assert_eq!(server.run(&["rentals", "update", "1", "--status", "ACTIVE"]).code, Some(6));
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn each_run_has_its_own_idempotency_key_unless_the_user_chooses() {
    let server = FakeServer::new(vec![ok(r#"{"id":"1"}"#)]);
    server.run(CREATE);
    server.run(CREATE);
    server.run(&["vehicles", "create", "--name", "x", "--idempotency-key", "import-7"]);
    server.run(&["vehicles", "update", "1", "--name", "y"]);
    server.run(&["vehicles", "get", "1"]);
    let asked = server.asked();
    let keys: Vec<_> = asked.iter().map(|asked| asked.header("idempotency-key")).collect();
    assert_ne!(keys[0], keys[1]);
    assert_eq!(keys[2], Some("import-7"));
    assert!(keys[3].is_some(), "a PATCH that announces its status must not do it twice");
    assert_eq!(keys[4], None);
}
