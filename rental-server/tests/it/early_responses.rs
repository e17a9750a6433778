//! Responses that are sent before the body was read: 401, 404, 405, 413. The client gets the whole response and no reset,
//! whatever it still sends (decisions, Second round; RFC 9112, 9.6).

mod proxies;

use crate::support::{Connection, Reply, Server};
use serde_json::Value;
use std::io::{self, ErrorKind, Read};

/// A key of the right form that does not exist.
const NO_KEY: &str = "rk_live_0000000000000000000000000000000000000000000000000";

fn head(request: &str, key: &str, length: usize) -> String {
    format!(
        "{request} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n"
    )
}

/// Sends the whole request before it reads, as simple clients do.
fn send(address: &str, request: &str, key: &str, length: usize) -> io::Result<Reply> {
    let mut connection = Connection::open(address);
    connection.write(head(request, key, length).as_bytes())?;
    connection.write(&vec![b' '; length])?;
    connection.read_reply(false)
}

/// Sends `count` requests one after the other; each gets the whole response with this status.
#[track_caller]
fn all_answered(address: &str, count: usize, (request, key, length): (&str, &str, usize), status: u16) {
    let mut wrong = Vec::new();
    for _ in 0..count {
        match send(address, request, key, length) {
            Ok(reply) if reply.status == status && serde_json::from_slice::<Value>(&reply.body).is_ok() => {}
            Ok(reply) => wrong.push(format!("{} {}", reply.status, reply.text())),
            Err(error) => wrong.push(error.to_string()),
        }
    }
    assert!(wrong.is_empty(), "{} of {count} requests of {length} bytes: {wrong:#?}", wrong.len());
}

#[test]
fn a_client_that_sends_its_whole_body_first_gets_the_response() {
    let server = Server::shared();
    let organization = server.organization();
    for (request, key, status) in [
        ("POST /v1/vehicles", NO_KEY, 401),
        ("POST /v1/vehicles", organization.read.as_str(), 403),
        ("POST /v1/nothing", organization.write.as_str(), 404),
        ("PUT /v1/vehicles", organization.write.as_str(), 405),
    ] {
        all_answered(&server.address, 200, (request, key, 60_000), status);
    }
    all_answered(&server.address, 50, ("POST /v1/vehicles", NO_KEY, 8 << 20), 401);
    all_answered(&server.address, 50, ("POST /v1/vehicles", &organization.write, 8 << 20), 413);
}

/// What comes after the response, until the server closes its half.
fn rest(connection: &mut Connection) -> io::Result<usize> {
    connection.stream.read_to_end(&mut Vec::new())
}

#[test]
fn the_connection_is_closed_for_sending_at_once_and_still_read_from() {
    let server = Server::shared();
    let mut connection = Connection::open(&server.address);
    connection.write(head("POST /v1/vehicles", NO_KEY, 1 << 20).as_bytes()).expect("sent");
    let reply = connection.read_reply(false).expect("a response although the body is missing");
    assert_eq!((reply.status, reply.header("connection")), (401, Some("close")));
    assert_eq!(rest(&mut connection).expect("no reset"), 0, "nothing follows the response");
    connection.write(&vec![b' '; 1 << 20]).expect("the server still reads");
}

#[test]
fn a_head_that_is_refused_does_not_reset_the_connection_either() {
    let server = Server::shared();
    for _ in 0..20 {
        let mut connection = Connection::open(&server.address);
        let _ = connection.write(format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}", "x".repeat(8 << 20)).as_bytes());
        let reply = connection.read_reply(false).expect("a response and no reset");
        assert_eq!(reply.status, 431);
        assert_eq!(reply.text(), "");
    }
}

#[test]
fn clients_that_never_end_their_body_do_not_keep_their_connections() {
    let server = Server::start(&["--max-connections", "3"]);
    let stalled: Vec<Connection> = (0..3)
        .map(|_| {
            let mut connection = Connection::open(&server.address);
            connection.write(head("POST /v1/vehicles", NO_KEY, 1 << 20).as_bytes()).expect("sent");
            assert_eq!(connection.read_reply(false).expect("a response").status, 401);
            connection
        })
        .collect();
    assert_eq!(Connection::open(&server.address).send("GET", "/healthz", &[], b"").status, 200);
    drop(stalled);
}

#[test]
fn a_client_that_sends_without_end_is_cut_off() {
    let server = Server::shared();
    let mut connection = Connection::open(&server.address);
    connection.write(head("POST /v1/vehicles", NO_KEY, 1 << 40).as_bytes()).expect("sent");
    let part = vec![b' '; 1 << 20];
    let error = (0..1 << 20).find_map(|_| connection.write(&part).err()).expect("it is cut off");
    assert!([ErrorKind::BrokenPipe, ErrorKind::ConnectionReset].contains(&error.kind()), "{error}");
}

#[test]
fn a_shutdown_does_not_wait_for_bodies_that_nobody_reads() {
    let mut server = Server::start(&[]);
    let mut stalled: Vec<Connection> = (0..20)
        .map(|_| {
            let mut connection = Connection::open(&server.address);
            connection.write(head("POST /v1/vehicles", NO_KEY, 1 << 20).as_bytes()).expect("sent");
            connection
        })
        .collect();
    for connection in &mut stalled {
        assert_eq!(connection.read_reply(false).expect("a response").status, 401);
    }
    server.signal("TERM");
    server.wait_until_gone();
    assert!(!server.log().contains("drain deadline"), "{}", server.log());
    assert_eq!(server.exit_code(), Some(0));
}
