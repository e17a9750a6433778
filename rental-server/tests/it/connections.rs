//! Connections: slow, greedy and garbled clients, limits, and a drain that drops no accepted request.

pub(crate) mod crowding;
mod incomplete;

use crate::support::{Connection, Organization, Reply, Server};
use serde_json::{Value, json};
use std::{
    io::{ErrorKind, Read},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

fn head(organization: &Organization, request: &str, fields: &str) -> String {
    format!(
        "{request} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n{fields}\r\n",
        organization.write
    )
}

/// Whatever still comes until the server closes the connection.
fn rest(connection: &mut Connection) -> String {
    let mut bytes = Vec::new();
    match connection.stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        // The server closed while bytes of ours were on their way.
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the connection stays open: {error}"),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn heads_that_do_not_come_are_cut_off() {
    let server = Server::shared();
    let slow: Vec<_> = [&b""[..], b"GET /v1/vehicles HTTP/1.1\r\nHost: x\r\nX-Slow: ", b"G"]
        .into_iter()
        .map(|begun| {
            let mut connection = Connection::open(&server.address);
            connection.write(begun).expect("the server listens");
            std::thread::spawn(move || {
                // A byte now and then does not help: the whole head has one time limit.
                for _ in 0..12 {
                    std::thread::sleep(Duration::from_secs(2));
                    if connection.write(if begun.is_empty() { b"" } else { b"x" }).is_err() {
                        break;
                    }
                }
                let said = rest(&mut connection);
                assert!(
                    said.is_empty() || said.starts_with("HTTP/1.1 408") || said.starts_with("HTTP/1.1 400"),
                    "{said}"
                );
            })
        })
        .collect();
    slow.into_iter().for_each(|client| client.join().expect("it was cut off"));
}

#[test]
fn a_body_that_does_not_come_in_time_is_answered_with_408() {
    let server = Server::start(&["--request-timeout", "1s"]);
    let organization = server.organization();
    for (fields, begun) in
        [("Content-Length: 100\r\n", "{\"name\":"), ("Transfer-Encoding: chunked\r\n", "5\r\n{\"nam\r\n")]
    {
        for trickles in [false, true] {
            let mut connection = Connection::open(&server.address);
            connection.write(head(&organization, "POST /v1/vehicles", fields).as_bytes()).expect("sent");
            connection.write(begun.as_bytes()).expect("sent");
            for _ in 0..if trickles { 10 } else { 0 } {
                std::thread::sleep(Duration::from_millis(150));
                let _ = connection.write(if fields.starts_with('C') { b" " } else { b"1\r\n \r\n" });
            }
            let reply = connection.read_reply(false).expect("an answer");
            reply.error(408, "invalid_request_error", "request_timeout");
            assert_eq!(reply.header("connection"), Some("close"));
            assert_eq!(rest(&mut connection), "");
        }
    }
    assert_eq!(organization.get("/v1/vehicles").ok()["data"], json!([]));
}

fn chunked(body: &[u8], size: usize) -> Vec<u8> {
    let chunk = |part: &[u8]| [format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat();
    body.chunks(size).map(chunk).chain([b"0\r\n\r\n".to_vec()]).flatten().collect()
}

#[test]
fn a_body_is_measured_whatever_its_framing() {
    let server = Server::start(&["--max-body", "4KB"]);
    let organization = server.organization();
    let body = |length: usize| format!("{{\"name\":\"x\"{}}}", " ".repeat(length - 12)).into_bytes();
    let send = |fields: &str, bytes: &[u8]| {
        let mut connection = Connection::open(&server.address);
        connection.write(head(&organization, "POST /v1/vehicles", fields).as_bytes()).expect("sent");
        // The server may answer, and close, before the end.
        let _ = connection.write(bytes);
        connection.read_reply(false).expect("an answer")
    };
    for (length, fits) in [(4095, true), (4096, true), (4097, false), (100_000, false), (3_000_000, false)] {
        let bytes = body(length);
        let framings = [
            ("Transfer-Encoding: chunked\r\n".to_owned(), chunked(&bytes, 1000)),
            (format!("Content-Length: {length}\r\n"), bytes),
        ];
        for (fields, bytes) in framings {
            let reply = send(&fields, &bytes);
            if fits {
                reply.ok();
            } else {
                reply.error(413, "invalid_request_error", "request_too_large");
                assert_eq!(reply.header("connection"), Some("close"), "the rest of the body is not read");
            }
        }
    }
    // What is announced is enough to be refused.
    send("Content-Length: 9999999999999\r\n", b"").error(413, "invalid_request_error", "request_too_large");
    let made = organization.get("/v1/vehicles").ok()["data"].as_array().map(Vec::len);
    assert_eq!(made, Some(4));
}

#[test]
fn an_expected_continue_is_sent_before_the_body() {
    let organization = Server::shared().organization();
    let mut connection = Connection::open(&organization.server.address);
    let fields = "Expect: 100-continue\r\nContent-Length: 12\r\n";
    connection.write(head(&organization, "POST /v1/vehicles", fields).as_bytes()).expect("sent");
    assert_eq!(connection.read_reply(true).expect("an interim answer").status, 100);
    connection.write(br#"{"name":"x"}"#).expect("sent");
    connection.read_reply(false).expect("an answer").ok();
}

#[test]
fn connections_beyond_the_limit_wait_and_are_served() {
    let server = Server::start(&["--max-connections", "3"]);
    let healthy =
        |connection: &mut Connection| connection.try_send("GET", "/healthz", &[], b"").map(|reply| reply.status);
    let mut served: Vec<Connection> = (0..3).map(|_| Connection::open(&server.address)).collect();
    served.iter_mut().for_each(|connection| assert_eq!(healthy(connection).expect("served"), 200));
    let mut waiting = Connection::open(&server.address);
    waiting.stream.get_ref().set_read_timeout(Some(Duration::from_millis(300))).expect("a time-out");
    let early = healthy(&mut waiting);
    assert!(
        early.as_ref().is_err_and(|error| [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind())),
        "{early:?}"
    );
    waiting.stream.get_ref().set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out");
    served.pop();
    assert_eq!(waiting.read_reply(false).expect("its turn came").status, 200);
    drop((served, waiting));
    std::thread::scope(|scope| {
        for _ in 0..30 {
            scope.spawn(|| assert_eq!(healthy(&mut Connection::open(&server.address)).expect("served"), 200));
        }
    });
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let organization = Server::shared().organization();
    let ids: Vec<String> = (0..20).map(|_| organization.vehicle(json!({}))).collect();
    let mut connection = Connection::open(&organization.server.address);
    let all: String = ids.iter().map(|id| head(&organization, &format!("GET /v1/vehicles/{id}"), "")).collect();
    connection.write(all.as_bytes()).expect("sent");
    for id in &ids {
        assert_eq!(&connection.read_reply(false).expect("an answer").id(), id);
    }
}

#[test]
fn a_connection_is_kept_until_the_client_wants_it_closed() {
    let organization = Server::shared().organization();
    let mut connection = Connection::open(&organization.server.address);
    for n in 0..100 {
        let (request, status) = [("GET /v1/vehicles", 200), ("GET /v1/nothing", 404), ("GET /healthz", 200)][n % 3];
        connection.write(head(&organization, request, "").as_bytes()).expect("still open");
        assert_eq!(connection.read_reply(false).expect("an answer").status, status);
    }
    connection.write(head(&organization, "GET /healthz", "Connection: close\r\n").as_bytes()).expect("still open");
    assert_eq!(connection.read_reply(false).expect("an answer").header("connection"), Some("close"));
    assert_eq!(rest(&mut connection), "");
}

#[test]
fn garbage_is_answered_with_an_error_or_cut_off_and_never_hangs() {
    let server = Server::shared();
    let long_field = format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "x".repeat(100_000));
    let many_fields = format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "X: x\r\n".repeat(200));
    let body = |fields: &str| {
        format!(
            "POST /v1/leads HTTP/1.1\r\nHost: x\r\n{fields}\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        )
    };
    let garbage: Vec<Vec<u8>> = vec![
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 this is TLS\r\n\r\n".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        b"hello\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\nHost: x\r\n\r\n".to_vec(),
        b"GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\r\nHost : x\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\r\nX\0: x\r\n\r\n".to_vec(),
        long_field.into_bytes(),
        many_fields.into_bytes(),
        body("Content-Length: 5\r\nContent-Length: 6").into_bytes(),
        body("Content-Length: +5").into_bytes(),
        body("Transfer-Encoding: gzip").into_bytes(),
        body("Transfer-Encoding: chunked, gzip").into_bytes(),
        (0..4096_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).chain(*b"\r\n\r\n").collect(),
    ];
    for bytes in garbage {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned();
        let mut connection = Connection::open(&server.address);
        let _ = connection.write(&bytes);
        let said = rest(&mut connection);
        let status = said.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
        assert!(said.is_empty() || ["400", "414", "431", "505"].contains(&status.unwrap_or("")), "{shown:?}: {said}");
        assert!(!said.contains("200 OK"), "what follows is not taken for a request: {shown:?}: {said}");
    }
    assert_eq!(Connection::open(&server.address).send("GET", "/healthz", &[], b"").status, 200);
}

/// What one client saw until it could connect no more.
#[derive(Default)]
struct Seen {
    answered: AtomicUsize,
    /// Sent on a connection that had served before, and never answered.
    dropped: AtomicUsize,
    /// The same on a connection that had not served yet: it may have been in the kernel's queue still.
    dropped_first: AtomicUsize,
}

fn keep_asking(organization: &Organization, seen: &Seen, number: usize) {
    let bearer = format!("Bearer {}", organization.write);
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    while let Ok(mut connection) = Connection::try_open(&organization.server.address) {
        for served in 0.. {
            let (method, body) = if number.is_multiple_of(2) { ("GET", "") } else { ("POST", r#"{"name":"x"}"#) };
            match connection.try_send(method, "/v1/vehicles", &headers, body.as_bytes()) {
                Ok(reply) => {
                    reply.ok();
                    seen.answered.fetch_add(1, Ordering::SeqCst);
                    if reply.header("connection") == Some("close") {
                        break;
                    }
                }
                Err(_) => {
                    let dropped = if served > 0 { &seen.dropped } else { &seen.dropped_first };
                    dropped.fetch_add(1, Ordering::SeqCst);
                    break;
                }
            }
        }
    }
}

#[test]
fn a_drain_under_load_answers_every_request_and_exits_with_0() {
    const CLIENTS: usize = 16;
    const DRAINS: usize = 4;
    let mut dropped_first = 0;
    for _ in 0..DRAINS {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut server = Server::start_in(directory.path(), &[]);
        let (seen, organization) = (Seen::default(), server.organization());
        let keys = (organization.id.clone(), organization.read.clone(), organization.write.clone());
        std::thread::scope(|scope| {
            let (seen, organization) = (&seen, &organization);
            for number in 0..CLIENTS {
                scope.spawn(move || keep_asking(organization, seen, number));
            }
            while seen.answered.load(Ordering::SeqCst) < 100 {
                std::thread::sleep(Duration::from_millis(5));
            }
            organization.server.signal("TERM");
        });
        drop(organization);
        assert_eq!(server.exit_code(), Some(0));
        let count = |count: &AtomicUsize| count.load(Ordering::SeqCst);
        assert_eq!(count(&seen.dropped), 0, "of {} requests", count(&seen.answered));
        dropped_first += count(&seen.dropped_first);
        let server = Server::start_in(directory.path(), &[]);
        let organization = Organization { server: &server, id: keys.0, read: keys.1, write: keys.2 };
        assert_eq!(organization.post("/v1/vehicles", &json!({"name": "after"})).status, 200);
    }
    // No server can answer who enters the kernel's queue while the socket is closed: a matter of microseconds.
    assert!(
        dropped_first <= DRAINS,
        "{dropped_first} new connections had sent a request and were closed without an answer"
    );
}

#[test]
fn a_request_whose_body_still_comes_is_finished_before_the_end() {
    let mut server = Server::start(&[]);
    let organization = server.organization();
    let mut connection = Connection::open(&server.address);
    let body = r#"{"name":"late"}"#;
    let fields = format!("Content-Length: {}\r\n", body.len());
    connection.write(head(&organization, "POST /v1/vehicles", &fields).as_bytes()).expect("sent");
    connection.write(&body.as_bytes()[..5]).expect("sent");
    let mut ready = Connection::open(&server.address);
    assert_eq!(ready.send("GET", "/readyz", &[], b"").status, 200);
    server.signal("TERM");
    // Until nobody is let in any more.
    while Connection::try_open(&server.address).is_ok() {
        std::thread::sleep(Duration::from_millis(20));
    }
    connection.write(&body.as_bytes()[5..]).expect("still open");
    let reply = connection.read_reply(false).expect("an answer");
    assert_eq!((reply.ok()["name"].as_str(), reply.header("connection")), (Some("late"), Some("close")));
    drop(organization);
    assert_eq!(server.exit_code(), Some(0));
}

#[test]
fn a_second_signal_ends_the_server_at_once_and_what_was_acknowledged_is_there() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut server = Server::start_in(directory.path(), &[]);
    let organization = server.organization();
    let vehicle = organization.vehicle(json!({}));
    let (id, read, write) = (organization.id.clone(), organization.read.clone(), organization.write.clone());
    // A request in progress, for which the server would wait.
    let mut waiting = Connection::open(&server.address);
    waiting.write(head(&organization, "POST /v1/vehicles", "Content-Length: 15\r\n").as_bytes()).expect("sent");
    waiting.write(b"{\"name\"").expect("sent");
    drop(organization);
    server.signal("TERM");
    while Connection::try_open(&server.address).is_ok() {
        std::thread::sleep(Duration::from_millis(20));
    }
    server.signal("TERM");
    assert_eq!(server.exit_code(), Some(130));
    let server = Server::start_in(directory.path(), &[]);
    Organization { server: &server, id, read, write }.get(&format!("/v1/vehicles/{vehicle}")).ok();
}

/// Within the drain deadline of 30 s an idle connection would be cut anyway; promptly means well before.
#[test]
fn idle_connections_do_not_delay_the_end() {
    let mut server = Server::start(&[]);
    let mut used = Connection::open(&server.address);
    assert_eq!(used.send("GET", "/healthz", &[], b"").status, 200);
    let mut fresh = Connection::open(&server.address);
    let gone = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..200 {
                std::thread::sleep(Duration::from_millis(100));
                if gone.load(Ordering::SeqCst) {
                    return;
                }
            }
            server.signal("KILL");
        });
        server.signal("TERM");
        server.wait_until_gone();
        gone.store(true, Ordering::SeqCst);
    });
    assert_eq!((rest(&mut used), rest(&mut fresh)), (String::new(), String::new()));
    assert_eq!(server.exit_code(), Some(0), "it ended by itself");
}

/// Asks until the limit is reached; gives the refusal.
fn until_limited(organization: &Organization, headers: &[(&str, &str)]) -> Reply {
    for _ in 0..500 {
        let reply = organization.call_with("POST", "/v1/leads", headers, &json!({}));
        assert!(reply.header("ratelimit").is_some() && reply.header("ratelimit-policy").is_some(), "{reply:?}");
        if reply.status != 200 {
            return reply;
        }
    }
    panic!("500 requests in no time, and no limit");
}

#[test]
fn a_key_over_its_rate_is_told_when_to_come_back_and_is_let_in_then() {
    let server = Server::start(&["--rate-limit", "5"]);
    let (organization, other) = (server.organization(), server.organization());
    let refused = until_limited(&organization, &[]);
    refused.error(429, "rate_limit_error", "rate_limited");
    let wait: u64 = refused.header("retry-after").expect("it says when").parse().expect("whole seconds");
    assert!((1..=5).contains(&wait));
    assert_eq!(refused.header("ratelimit-policy"), Some("\"default\";q=10;w=2"));
    assert!(refused.header("ratelimit").is_some_and(|value| value.starts_with("\"default\";r=0;")), "{refused:?}");
    assert_eq!(other.get("/v1/vehicles").status, 200, "another organization has a rate of its own");
    let read = format!("Bearer {}", organization.read);
    let by_read = Connection::open(&server.address).send("GET", "/v1/vehicles", &[("Authorization", &read)], b"");
    assert_eq!(by_read.status, 200, "so has another key");
    std::thread::sleep(Duration::from_secs(wait));
    assert_eq!(organization.get("/v1/vehicles").status, 200, "who waits as told is let in");
}

#[test]
fn a_refusal_for_the_rate_is_not_kept_under_an_idempotency_key() {
    let server = Server::start(&["--rate-limit", "1"]);
    let organization = server.organization();
    until_limited(&organization, &[]);
    let send = || organization.call_with("POST", "/v1/vehicles", &[("Idempotency-Key", "k")], &json!({"name": "x"}));
    let mut reply = send();
    while reply.status == 429 {
        std::thread::sleep(Duration::from_millis(1100));
        reply = send();
    }
    assert_eq!((reply.status, reply.header("idempotent-replayed")), (200, None));
    assert_ne!(reply.ok()["id"], Value::Null);
}
