//! Requests and responses that are incomplete when the client closes its sending half.

use super::{head, rest};
use crate::support::{Connection, Server};
use serde_json::json;
use std::net::Shutdown;

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
