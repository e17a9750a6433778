//! Requests and responses that are incomplete when one side closes: the client its sending half, or the server at shutdown.

use super::{head, rest};
use crate::support::{Connection, Server};
use serde_json::json;
use std::{io::BufRead, net::Shutdown, time::Duration};

#[test]
fn a_client_that_closes_its_sending_half_gets_the_response() {
    let organization = Server::shared().organization();
    let body = r#"{"name":"x"}"#;
    let fields = format!("Content-Length: {}\r\n", body.len());
    let post = head(&organization, "POST /v1/vehicles", &fields) + body;
    let get = head(&organization, "GET /v1/vehicles", "");
    for request in [&post, &get].repeat(20) {
        let mut connection = Connection::open(&organization.server.address);
        connection.write(request.as_bytes()).expect("sent");
        connection.stream.get_ref().shutdown(Shutdown::Write).expect("it is open");
        assert_eq!(connection.read_reply(false).expect("a response").status, 200, "{request}");
        assert_eq!(rest(&mut connection), "", "the server closes its half too");
    }
}

#[test]
fn a_body_that_ends_too_early_changes_nothing() {
    let organization = Server::shared().organization();
    let mut connection = Connection::open(&organization.server.address);
    connection.write(head(&organization, "POST /v1/vehicles", "Content-Length: 100\r\n").as_bytes()).expect("sent");
    connection.write(br#"{"name":"x"}"#).expect("sent");
    connection.stream.get_ref().shutdown(Shutdown::Write).expect("it is open");
    rest(&mut connection);
    assert_eq!(organization.get("/v1/vehicles").ok()["data"], json!([]));
}

#[test]
fn a_shutdown_closes_connections_without_a_complete_head_and_waits_for_bodies() {
    let mut server = Server::start(&[]);
    let organization = server.organization();
    let body = r#"{"name":"late"}"#;
    let fields = format!("Content-Length: {}\r\n", body.len());
    let mut complete = Connection::open(&server.address);
    complete.write(head(&organization, "POST /v1/vehicles", &fields).as_bytes()).expect("sent");
    let begun: [&[u8]; 3] = [b"G", b"GET /v1/vehicles HTTP/1.1\r\nHost: x\r\n", b"POST /v1/vehicles HTTP/1.1\r\nX: "];
    let mut incomplete: Vec<Connection> = begun
        .iter()
        .flat_map(|begun| {
            let (mut fresh, mut used) = (Connection::open(&server.address), Connection::open(&server.address));
            assert_eq!(used.send("GET", "/readyz", &[], b"").status, 200);
            for connection in [&mut fresh, &mut used] {
                connection.write(begun).expect("sent");
            }
            [fresh, used]
        })
        .collect();
    server.signal("TERM");
    for connection in &mut incomplete {
        assert_eq!(rest(connection), "");
    }
    complete.write(body.as_bytes()).expect("still open");
    assert_eq!(complete.read_reply(false).expect("a response").ok()["name"], "late");
    drop(organization);
    server.wait_until_gone();
    assert!(!server.log().contains("drain deadline"), "{}", server.log());
    assert_eq!(server.exit_code(), Some(0));
}

#[test]
fn a_shutdown_waits_for_a_client_that_reads_slowly() {
    let mut server = Server::start(&[]);
    let organization = server.organization();
    // Four bytes each: a page is about 4 MB.
    let notes = "\u{1F697}".repeat(10_000);
    for number in 0..100 {
        organization.customer(json!({"full_name": format!("Customer {number}"), "notes": notes}));
    }
    let mut connection = Connection::open(&server.address);
    let list = head(&organization, "GET /v1/customers?limit=100", "");
    connection.write(list.repeat(10).as_bytes()).expect("sent");
    // Meanwhile the server fills the buffers of the kernel, and has to wait with the rest of a response.
    std::thread::sleep(Duration::from_secs(1));
    server.signal("TERM");
    while Connection::try_open(&server.address).is_ok() {
        std::thread::sleep(Duration::from_millis(20));
    }
    // By now the server closes what is idle.
    std::thread::sleep(Duration::from_secs(2));
    let mut responses = 0;
    while !connection.stream.fill_buf().expect("no reset").is_empty() {
        assert_eq!(connection.read_reply(false).expect("the whole response").status, 200);
        responses += 1;
    }
    assert!((1..10).contains(&responses), "{responses} responses: none was on its way at the shutdown");
    drop(organization);
    assert_eq!(server.exit_code(), Some(0));
}
