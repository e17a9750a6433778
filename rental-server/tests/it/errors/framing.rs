//! How bodies arrive: their size, with a length or in chunks, and framing that is broken.

use crate::support::{Connection, Organization, Reply, Server};

const MAX_BODY: usize = 1 << 20;

fn head(organization: &Organization<'_>, framing: &str) -> String {
    let key = &organization.write;
    format!(
        "POST /v1/vehicles HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n{framing}\r\n\r\n"
    )
}

/// A body of exactly this many bytes that makes a vehicle.
fn sized(bytes: usize) -> Vec<u8> {
    let mut body = b"{\"name\":\"a\"".to_vec();
    body.resize(bytes - 1, b' ');
    body.push(b'}');
    body
}

#[track_caller]
fn send(organization: &Organization<'_>, framing: &str, body: &[u8]) -> std::io::Result<Reply> {
    let mut connection = Connection::open(&organization.server.address);
    connection.write(head(organization, framing).as_bytes())?;
    let _ = connection.write(body);
    connection.read_reply(false)
}

fn chunked(body: &[u8], chunk: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for part in body.chunks(chunk) {
        out.extend(format!("{:x}\r\n", part.len()).bytes());
        out.extend(part);
        out.extend(b"\r\n");
    }
    out.extend(b"0\r\n\r\n");
    out
}

#[test]
fn a_body_of_the_largest_size_is_taken_in_either_framing() {
    let organization = Server::shared().organization();
    for size in [MAX_BODY - 1, MAX_BODY] {
        let body = sized(size);
        send(&organization, &format!("Content-Length: {size}"), &body).unwrap().ok();
        for chunk in [4096, size] {
            send(&organization, "Transfer-Encoding: chunked", &chunked(&body, chunk)).unwrap().ok();
        }
    }
    send(&organization, "Transfer-Encoding: chunked", &chunked(b"{\"name\":\"a\"}", 1)).unwrap().ok();
}

#[test]
fn a_body_announced_as_too_large_is_refused_before_it_is_sent() {
    let organization = Server::shared().organization();
    for size in [MAX_BODY + 1, 1 << 30, usize::MAX / 2] {
        let reply = send(&organization, &format!("Content-Length: {size}"), b"").unwrap();
        let error = reply.error(413, "invalid_request_error", "request_too_large");
        assert!(error["message"].as_str().unwrap().contains("1048576"), "the message says the limit: {error}");
    }
}

#[test]
fn a_chunked_body_is_refused_as_soon_as_it_is_too_large() {
    let organization = Server::shared().organization();
    for chunk in [1 << 12, 1 << 16] {
        // No last chunk: the answer comes although the body never ends.
        let mut endless = chunked(&sized(MAX_BODY + 1), chunk);
        endless.truncate(endless.len() - "\r\n0\r\n\r\n".len());
        let reply = send(&organization, "Transfer-Encoding: chunked", &endless).unwrap();
        reply.error(413, "invalid_request_error", "request_too_large");
    }
}

/// A client that reads only when it has sent everything, as many do, must be able to send everything.
#[test]
fn who_sends_a_body_too_large_to_its_end_still_gets_the_answer() {
    let organization = Server::shared().organization();
    for size in [MAX_BODY + 1, 2 * MAX_BODY, 8 * MAX_BODY] {
        for _ in 0..5 {
            let body = sized(size);
            for (framing, bytes) in [
                (format!("Content-Length: {size}"), &body),
                ("Transfer-Encoding: chunked".to_owned(), &chunked(&body, 1 << 14)),
            ] {
                let mut connection = Connection::open(&organization.server.address);
                connection.write(head(&organization, &framing).as_bytes()).unwrap();
                connection.write(bytes).unwrap_or_else(|error| panic!("{framing}, {size} bytes: {error}"));
                let reply = connection.read_reply(false).expect("an answer, not a reset");
                reply.error(413, "invalid_request_error", "request_too_large");
            }
        }
    }
}

#[test]
fn the_largest_size_is_a_flag() {
    let server = Server::start(&["--max-body", "2KB"]);
    let organization = server.organization();
    organization.raw("POST", "/v1/vehicles", &[], &sized(2048)).ok();
    organization.raw("POST", "/v1/vehicles", &[], &sized(2049)).error(
        413,
        "invalid_request_error",
        "request_too_large",
    );
}

#[test]
fn broken_framing_is_refused_and_never_served() {
    let organization = Server::shared().organization();
    for (framing, body) in [
        ("Transfer-Encoding: chunked", &b"zz\r\n{\"name\":\"a\"}\r\n0\r\n\r\n"[..]),
        ("Transfer-Encoding: chunked", b"5\r\n{\"name\":\"a\"}\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 12", b"{\"name\":\"a\"}"),
        ("Content-Length: 12\r\nContent-Length: 13", b"{\"name\":\"a\"} "),
        ("Content-Length: -1", b"{\"name\":\"a\"}"),
        ("Content-Length: +12", b"{\"name\":\"a\"}"),
        ("Content-Length: 0xc", b"{\"name\":\"a\"}"),
        ("Transfer-Encoding: gzip", b"{\"name\":\"a\"}"),
    ] {
        let mut connection = Connection::open(&organization.server.address);
        connection.write(head(&organization, framing).as_bytes()).unwrap();
        let _ = connection.write(body);
        let _ = connection.stream.get_ref().shutdown(std::net::Shutdown::Write);
        if let Ok(reply) = connection.read_reply(false) {
            assert!((400..500).contains(&reply.status), "{framing}: {}", reply.status);
        }
    }
    assert_eq!(organization.get("/v1/vehicles").ok()["data"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_body_that_breaks_off_is_not_served() {
    let organization = Server::shared().organization();
    for (framing, body) in [
        ("Content-Length: 100", &b"{\"name\":\"a\"}"[..]),
        ("Transfer-Encoding: chunked", b"c\r\n{\"name\":\"a\"}\r\n"),
    ] {
        let mut connection = Connection::open(&organization.server.address);
        connection.write(head(&organization, framing).as_bytes()).unwrap();
        connection.write(body).unwrap();
        connection.stream.get_ref().shutdown(std::net::Shutdown::Write).unwrap();
        if let Ok(reply) = connection.read_reply(false) {
            assert!((400..500).contains(&reply.status), "{framing}: {}", reply.text());
        }
    }
    assert_eq!(organization.get("/v1/vehicles").ok()["data"].as_array().map(Vec::len), Some(0));
}

/// A request in one piece, so that its body has arrived when it is answered.
fn whole(organization: &Organization<'_>, method: &str, path: &str, body: &str) -> String {
    let key = &organization.write;
    let kind = "Content-Type: application/json";
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n{kind}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

#[test]
fn a_refusal_leaves_the_connection_in_order() {
    let organization = Server::shared().organization();
    let mut connection = Connection::open(&organization.server.address);
    for _ in 0..3 {
        for (method, path, body, status) in [
            ("POST", "/v1/vehicles", "[", 400),
            ("POST", "/v1/nothing", "{\"name\":\"a\"}", 404),
            ("DELETE", "/v1/vehicles", "{}", 405),
            ("GET", "/v1/vehicles", "", 200),
            ("GET", "/v1/vehicles", "{}", 200),
            ("HEAD", "/v1/vehicles", "", 200),
        ] {
            connection.write(whole(&organization, method, path, body).as_bytes()).unwrap();
            let reply =
                connection.read_reply(method == "HEAD").unwrap_or_else(|error| panic!("{method} {path}: {error}"));
            assert_eq!(reply.status, status, "{method} {path}");
        }
    }
}

/// A client that is told to expect the end opens another connection; one that is not loses its next request.
#[test]
fn a_connection_that_ends_after_an_early_answer_says_so() {
    let organization = Server::shared().organization();
    for (method, path, status) in
        [("POST", "/v1/nothing", 404), ("DELETE", "/v1/vehicles", 405), ("GET", "/v1/vehicles", 200)]
    {
        let request = whole(&organization, method, path, "{\"name\":\"a\"}");
        let (head, body) = request.split_at(request.find("\r\n\r\n").unwrap() + 4);
        let mut connection = Connection::open(&organization.server.address);
        connection.write(head.as_bytes()).unwrap();
        let reply = connection.read_reply(false).unwrap();
        assert_eq!(reply.status, status, "{method} {path}");
        let announced = reply.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let next = connection
            .write(body.as_bytes())
            .and_then(|()| connection.write(whole(&organization, "GET", "/v1/vehicles", "").as_bytes()))
            .and_then(|()| connection.read_reply(false));
        assert!(announced || next.is_ok_and(|reply| reply.status == 200), "{method} {path}: closed without a word");
    }
}

#[test]
fn a_request_without_exactly_one_host_is_refused() {
    let server = Server::shared();
    for (head, status) in [
        ("GET /healthz HTTP/1.1\r\n\r\n", 400),
        ("GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET /healthz HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", 400),
        ("GET /healthz HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", 200),
        ("GET /healthz HTTP/1.0\r\n\r\n", 200),
    ] {
        let mut connection = Connection::open(&server.address);
        connection.write(head.as_bytes()).unwrap();
        let reply = connection.read_reply(false).unwrap();
        assert_eq!(reply.status, status, "{head:?}: {}", reply.text());
        if status == 400 {
            let error = reply.error(400, "invalid_request_error", "parameter_invalid");
            assert_eq!(error["param"], "Host");
        }
    }
}

/// As RFC 9112, 2.2 allows. `docs/security.md` says so to those who put a proxy in front.
#[test]
fn a_line_of_a_head_may_end_in_a_bare_line_feed() {
    let server = Server::shared();
    for request in ["GET /healthz HTTP/1.1\nHost: x\r\n\r\n", "GET /healthz HTTP/1.1\r\nHost: x\n\n"] {
        let mut connection = Connection::open(&server.address);
        for _ in 0..2 {
            connection.write(request.as_bytes()).unwrap();
            assert_eq!(connection.read_reply(false).unwrap().status, 200, "{request:?}");
        }
    }
}

/// Sends a request that makes a vehicle; returns what follows the requests on the connection, too.
fn then(organization: &Organization<'_>, framing: &str, body: &[u8]) -> (Reply, std::io::Result<Reply>) {
    let mut connection = Connection::open(&organization.server.address);
    let mut bytes = whole(organization, "GET", "/healthz", "").into_bytes();
    bytes.extend(head(organization, framing).bytes());
    bytes.extend(body);
    bytes.extend(whole(organization, "GET", "/healthz", "").bytes());
    bytes.extend(whole(organization, "GET", "/healthz", "").bytes());
    connection.write(&bytes).unwrap();
    assert_eq!(connection.read_reply(false).unwrap().status, 200, "{framing}: the request before it is answered");
    let reply = connection.read_reply(false).unwrap_or_else(|error| panic!("{framing}: {error}"));
    (reply, connection.read_reply(false))
}

#[test]
fn only_a_single_transfer_coding_chunked_is_served() {
    let organization = Server::shared().organization();
    let body = chunked(b"{\"name\":\"a\"}", 100);
    for (framing, status, code) in [
        ("Transfer-Encoding: gzip, chunked", 501, "transfer_encoding_unsupported"),
        ("Transfer-Encoding: identity,chunked", 501, "transfer_encoding_unsupported"),
        ("Transfer-Encoding: chunked, chunked", 501, "transfer_encoding_unsupported"),
        ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", 400, "parameter_invalid"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", 400, "parameter_invalid"),
    ] {
        let (reply, next) = then(&organization, framing, &body);
        let error = reply.error(status, "invalid_request_error", code);
        assert_eq!(error["param"], "Transfer-Encoding", "{framing}");
        assert_eq!(reply.header("connection"), Some("close"), "{framing}: where the body ends is not known");
        assert!(next.is_err(), "{framing}: a request behind it was served");
    }
    assert_eq!(organization.get("/v1/vehicles").ok()["data"].as_array().map(Vec::len), Some(0));
    let (reply, next) = then(&organization, "transfer-encoding:  Chunked ", &body);
    reply.ok();
    assert_eq!(next.unwrap().status, 200);
}

/// A proxy in front may read another length than the server: nothing of these is served, and nothing behind them.
#[test]
fn a_body_of_uncertain_length_ends_the_connection() {
    let organization = Server::shared().organization();
    let plain = &b"{\"name\":\"a\"}"[..];
    let sized = |size: &str| format!("{size}\r\n{{\"name\":\"a\"}}\r\n0\r\n\r\n").into_bytes();
    let trailer = |trailer: &str| format!("c\r\n{{\"name\":\"a\"}}\r\n0\r\n{trailer}\r\n").into_bytes();
    let te = "Transfer-Encoding: chunked";
    for (framing, body) in [
        ("Content-Length: 12, 12", plain),
        ("Content-Length: +12", plain),
        ("Content-Length : 12", plain),
        (" Content-Length: 12", plain),
        ("Content-Length: 12\r\n X: folded", plain),
        ("Content-Length: 12\r\nX: a\0b", plain),
        ("Content-Length: 12\r\nX: a\rb", plain),
        (te, &sized("0xc")),
        (te, &sized("+c")),
        (te, &sized("c;a\n")),
        (te, &sized("c;a=\"b\n\"")),
        (te, &sized("c\n")),
        (te, &trailer("X: a\0b\r\n")),
        (te, &trailer("Content-Length : 5\r\n")),
    ] {
        let (reply, next) = then(&organization, framing, body);
        assert_eq!(reply.status, 400, "{framing}, {:?}: {}", String::from_utf8_lossy(body), reply.text());
        assert!(next.is_err(), "{framing}, {:?}: a request behind it was served", String::from_utf8_lossy(body));
    }
    assert_eq!(organization.get("/v1/vehicles").ok()["data"].as_array().map(Vec::len), Some(0));
    // As hyper reads them: the coding decides beside a length, and nothing behind it is served (RFC 9112, 6.1).
    let chunks = chunked(plain, 100);
    for framing in
        ["Transfer-Encoding: chunked\r\nContent-Length: 12", "Content-Length: 12\r\nTransfer-Encoding: chunked"]
    {
        let (reply, next) = then(&organization, framing, &chunks);
        reply.ok();
        assert!(next.is_err(), "{framing}: a request behind it was served");
    }
    for body in [trailer("X: y\r\n"), trailer("X: y\r\nZ: z\r\n"), sized("00c;a=b"), sized("C")] {
        let (reply, next) = then(&organization, te, &body);
        reply.ok();
        assert_eq!(next.unwrap().status, 200, "{:?}", String::from_utf8_lossy(&body));
    }
}

#[test]
fn a_host_that_is_no_host_is_refused() {
    let server = Server::shared();
    for (target, host, status) in [
        ("/healthz", "a b", 400),
        ("/healthz", "a/..@b", 400),
        ("/healthz", "a@b", 400),
        ("/healthz", "a/b", 400),
        ("/healthz", "a?b", 400),
        ("/healthz", "a#b", 400),
        ("/healthz", "a\\b", 400),
        ("/healthz", "a\"b", 400),
        ("/healthz", "a%zz", 400),
        ("/healthz", "a:b", 400),
        ("/healthz", "a:1:2", 400),
        ("/healthz", "a:65536", 400),
        ("/healthz", "a:+1", 400),
        ("/healthz", "::1", 400),
        ("/healthz", "[::1", 400),
        ("/healthz", "[x]:80", 400),
        ("/healthz", "[::1]80", 400),
        ("/healthz", "\u{e4}", 400),
        ("http://a/healthz", "b", 400),
        ("http://a/healthz", "a:81", 400),
        ("http://u@a/healthz", "a", 400),
        ("/healthz", "a.example:8080", 200),
        ("/healthz", "a_b.example:", 200),
        ("/healthz", "127.0.0.1:80", 200),
        ("/healthz", "[::1]:8080", 200),
        ("/healthz", "", 200),
        ("http://A.example/healthz", "a.example", 200),
    ] {
        let mut connection = Connection::open(&server.address);
        connection.write(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).unwrap();
        let reply = connection.read_reply(false).unwrap();
        assert_eq!(reply.status, status, "{target} {host:?}: {}", reply.text());
        if status == 400 {
            assert_eq!(reply.error(400, "invalid_request_error", "parameter_invalid")["param"], "Host");
        }
    }
}
