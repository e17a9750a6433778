//! HTTP/2: its bounds, early responses, and a shutdown that finishes what is in flight.

use super::{
    client::{Pair, config},
    start,
};
use crate::connections::crowding::own_address;
use bytes::Bytes;
use h2::{Reason, client::SendRequest};
use serde_json::{Value, json};
use std::{
    process::Command,
    time::{Duration, Instant},
};
use tokio::{net::TcpStream, task::JoinHandle};
use warp::http::Request;

/// How the connection ended.
type Ended = JoinHandle<Result<(), h2::Error>>;

/// Runs a client on a connection of its own.
pub(super) fn run(address: &str, pair: &Pair, client: impl AsyncFnOnce(SendRequest<Bytes>, Ended)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = TcpStream::connect(address).await.unwrap();
        let connector = tokio_rustls::TlsConnector::from(config(Some(pair.der()), &[b"h2", b"http/1.1"]));
        let stream = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (requests, connection) = h2::client::handshake(stream).await.unwrap();
        let ended = tokio::spawn(connection);
        let requests = requests.ready().await.unwrap();
        // A hang is a failure.
        tokio::time::timeout(Duration::from_secs(60), client(requests, ended)).await.expect("no response in a minute");
    });
}

/// A request to this path with a bearer token.
pub(super) fn request(method: &str, path: &str, token: &str) -> Request<()> {
    let request = Request::builder().method(method).uri(format!("https://localhost{path}"));
    let request = if token.is_empty() { request } else { request.header("authorization", format!("Bearer {token}")) };
    request.body(()).unwrap()
}

async fn body(mut from: h2::RecvStream) -> Value {
    let mut bytes = Vec::new();
    while let Some(part) = from.data().await {
        let part = part.unwrap();
        from.flow_control().release_capacity(part.len()).unwrap();
        bytes.extend_from_slice(&part);
    }
    serde_json::from_slice(&bytes).unwrap()
}

/// Sends an object, which must succeed.
async fn post(client: &SendRequest<Bytes>, path: &str, token: &str, object: &Value) -> Value {
    let mut client = client.clone().ready().await.unwrap();
    let (response, mut sending) = client.send_request(request("POST", path, token), false).unwrap();
    sending.send_data(object.to_string().into(), true).unwrap();
    let response = response.await.unwrap();
    let status = response.status();
    let body = body(response.into_body()).await;
    assert_eq!(status, 200, "{body}");
    body
}

fn new_organization() -> Bytes {
    json!({"name": "Test"}).to_string().into()
}

#[test]
fn the_streams_of_a_connection_are_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let (server, pair) = start(directory.path(), &[]);
    run(&server.address, &pair, async |mut client, _| {
        let (response, _) = client.send_request(request("GET", "/healthz", ""), true).unwrap();
        assert_eq!(response.await.unwrap().status(), 200);
        assert_eq!(client.current_max_send_streams(), 50);
        // The largest list of header fields that the server announces is smaller than this one: the client's library
        // does not look, the server refuses.
        let mut large = request("GET", "/healthz", "");
        large.headers_mut().insert("x-large", "x".repeat(40_000).parse().unwrap());
        let (response, _) = client.send_request(large, true).unwrap();
        let refused = response.await;
        assert!(refused.is_err() || refused.is_ok_and(|response| response.status() == 431));
    });
}

/// 100 leads of 64 KiB make a page of 6.5 MB.
#[test]
fn responses_that_a_client_does_not_read_leave_memory_to_others() {
    let directory = tempfile::tempdir().unwrap();
    let (server, pair) = start(directory.path(), &["--organization-requests", "0"]);
    let lead = json!({"raw_data": {"text": "x".repeat(64_000)}});
    let path = "/v1/events?limit=100";
    run(&server.address, &pair, async |client, _| {
        let mut keys = Vec::new();
        for name in ["One", "Other"] {
            let made = post(&client, "/admin/v1/organizations", &server.admin_token, &json!({"name": name})).await;
            let asked = json!({"organization_id": made["id"], "scope": "read_write"});
            let key = post(&client, "/admin/v1/api_keys", &server.admin_token, &asked).await;
            keys.push(key["key"].as_str().unwrap().to_owned());
        }
        for key in &keys {
            for _ in 0..100 {
                post(&client, "/v1/leads", key, &lead).await;
            }
        }
        // The window of the connection is full, and nothing is read: the bodies wait in the server.
        let (mut kept, mut statuses) = (Vec::new(), Vec::new());
        for _ in 0..35 {
            let mut client = client.clone().ready().await.unwrap();
            let response = client.send_request(request("GET", path, &keys[0]), true).unwrap().0.await.unwrap();
            statuses.push(response.status().as_u16());
            kept.push(response);
        }
        let served = statuses.iter().filter(|status| **status == 200).count();
        // Half of 256 MB, and the one that came last.
        assert!((10..=22).contains(&served), "{statuses:?}");
        assert!(statuses[served..].iter().all(|status| *status == 503), "{statuses:?}");
        let of_another = async |key: &str| {
            let mut status = 0;
            for _ in 0..100 {
                let mut client = client.clone().ready().await.unwrap();
                let response = client.send_request(request("GET", path, key), true).unwrap().0.await.unwrap();
                status = response.status().as_u16();
                if status == 200 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            status
        };
        assert_eq!(of_another(&keys[1]).await, 200);
        // Who gives them up has room again.
        drop(kept);
        assert_eq!(of_another(&keys[0]).await, 200);
    });
}

#[test]
fn an_early_response_ends_with_no_error_and_the_connection_stays() {
    let directory = tempfile::tempdir().unwrap();
    let (server, pair) = start(directory.path(), &[]);
    run(&server.address, &pair, async |mut client, _| {
        for _ in 0..2 {
            let (response, mut send) = client.send_request(request("POST", "/v1/vehicles", "wrong"), false).unwrap();
            // The response can come before the data is sent.
            let _ = send.send_data(Bytes::from_static(b"{\"name\":"), false);
            let response = response.await.unwrap();
            assert_eq!(response.status(), 401);
            assert_eq!(response.headers().get("connection"), None);
            assert_eq!(body(response.into_body()).await["error"]["type"], "authentication_error");
            let reason = std::future::poll_fn(|context| send.poll_reset(context)).await.unwrap();
            assert_eq!(reason, Reason::NO_ERROR);
        }
        let (response, _) = client.send_request(request("GET", "/healthz", ""), true).unwrap();
        assert_eq!(response.await.unwrap().status(), 200);
    });
}

/// Many clients send their body whole and read the response then, or lose it when the stream is reset before.
#[test]
fn curl_gets_each_early_response() {
    let version =
        Command::new("curl").arg("--version").output().map(|ran| String::from_utf8_lossy(&ran.stdout).into_owned());
    if !version.is_ok_and(|text| text.contains("HTTP2")) {
        assert!(std::env::var_os("RENTAL_REQUIRE_ALL").is_none(), "curl with HTTP/2 is not there");
        println!("skipped: curl with HTTP/2 is not there");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (server, _) = start(directory.path(), &[]);
    let body = directory.path().join("body");
    let (key, nobody) = (server.admin_token.clone(), "wrong".to_owned());
    for (size, path, token, status) in [
        (1_500_000, "/v1/vehicles", &nobody, 401),
        (10_000, "/v1/vehicles", &nobody, 401),
        (12, "/v1/vehicles", &nobody, 401),
        (1_500_000, "/admin/v1/organizations", &key, 413),
        (10_000, "/admin/v1/nothing", &key, 404),
    ] {
        std::fs::write(&body, " ".repeat(size)).unwrap();
        let expected = format!("2 {status} 0");
        let mut missed = 0;
        for _ in 0..10 {
            let mut curl = Command::new("curl");
            curl.args(["-sk", "-m", "30", "-o", "/dev/null", "-w", "%{http_version} %{http_code} %{exitcode}"]);
            curl.args(["-H", "Content-Type: application/json", "-H", &format!("Authorization: Bearer {token}")]);
            curl.arg("--data-binary").arg(format!("@{}", body.display()));
            let ran = curl.arg(format!("https://{}{path}", server.address)).output().unwrap();
            let got = String::from_utf8_lossy(&ran.stdout).into_owned();
            assert!(got.starts_with(&format!("2 {status} ")), "{size} bytes to {path}: {got}");
            missed += u8::from(got != expected);
        }
        // Beside many other tests curl lost one of 50 once, for a reason that is not known. Without the reading it loses all of 1.5 MB.
        assert!(missed <= 1, "{size} bytes to {path}: {missed} of 10");
    }
}

/// A proxy that forwards by one of them and a server that reads the other would disagree (RFC 9113, 8.3.1).
#[test]
fn a_host_beside_another_authority_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (server, pair) = start(directory.path(), &[]);
    run(&server.address, &pair, async |client, _| {
        for (host, status) in [("localhost", 200), ("LOCALHOST", 200), ("other.example", 400), ("localhost:1", 400)] {
            let mut client = client.clone().ready().await.unwrap();
            let mut request = request("GET", "/healthz", "");
            request.headers_mut().insert("host", host.parse().unwrap());
            let (response, _) = client.send_request(request, true).unwrap();
            assert_eq!(response.await.unwrap().status(), status, "{host}");
        }
    });
}

#[test]
fn a_body_that_is_not_as_long_as_announced_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (server, pair) = start(directory.path(), &[]);
    let token = server.admin_token.as_str();
    let right = new_organization().len();
    for (announced, created) in [(right - 1, false), (right + 1, false), (right, true)] {
        // An offence can end the whole connection, so each has its own.
        run(&server.address, &pair, async |mut client, _| {
            let mut post = request("POST", "/admin/v1/organizations", token);
            post.headers_mut().insert("content-length", announced.into());
            let (response, mut send) = client.send_request(post, false).unwrap();
            send.send_data(new_organization(), true).unwrap();
            let status = response.await.map(|response| response.status().as_u16());
            assert!(status.as_ref().is_ok_and(|status| *status == 200) == created, "{announced}: {status:?}");
        });
        let list = format!(
            "GET /admin/v1/organizations HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        let reply = super::ask(&server.address, &pair, &list);
        assert_eq!(reply.contains("\"name\":\"Test\""), created, "{announced}: {reply}");
    }
}

#[test]
fn requests_in_flight_are_bounded_on_all_connections_together() {
    let directory = tempfile::tempdir().unwrap();
    let (server, pair) = start(directory.path(), &["--max-connections", "3"]);
    let token = server.admin_token.as_str();
    run(&server.address, &pair, async |mut client, _| {
        let mut waiting = Vec::new();
        for _ in 0..3 {
            let path = "/admin/v1/organizations";
            let (response, send) = client.send_request(request("POST", path, token), false).unwrap();
            waiting.push((response, send));
        }
        let (response, _) = client.send_request(request("GET", "/healthz", ""), true).unwrap();
        let response = response.await.unwrap();
        assert_eq!((response.status().as_u16(), &response.headers()["retry-after"]), (503, &"1".parse().unwrap()));
        for (response, mut send) in waiting {
            send.send_data(new_organization(), true).unwrap();
            assert_eq!(response.await.unwrap().status(), 200);
        }
        let (response, _) = client.send_request(request("GET", "/healthz", ""), true).unwrap();
        assert_eq!(response.await.unwrap().status(), 200);
    });
}

#[test]
fn a_connection_with_many_requests_leaves_some_to_another_connection() {
    let directory = tempfile::tempdir().unwrap();
    let (server, pair) = start(directory.path(), &["--max-connections", "4"]);
    let token = server.admin_token.as_str();
    run(&server.address, &pair, async |mut client, _| {
        let begin = |client: &mut SendRequest<Bytes>| {
            client.send_request(request("POST", "/admin/v1/organizations", token), false).unwrap()
        };
        let waiting: Vec<_> = (0..4).map(|_| begin(&mut client)).collect();
        let mut one_more = request("GET", "/healthz", "");
        one_more.headers_mut().insert("x-request-id", "mine".parse().unwrap());
        let (response, _) = client.send_request(one_more, true).unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.status(), 503, "it has its share");
        assert_eq!(response.headers()["x-request-id"], "mine");
        assert!(response.headers().contains_key("strict-transport-security"));
        let (address, other) = (server.address.clone(), pair.clone());
        let served = std::thread::spawn(move || {
            run(&address, &other, async |mut client, _| {
                let (response, _) = client.send_request(request("GET", "/healthz", ""), true).unwrap();
                assert_eq!(response.await.unwrap().status(), 200);
            });
        });
        tokio::task::spawn_blocking(|| served.join()).await.unwrap().expect("another connection is served");
        drop(waiting);
    });
}

/// Begins requests whose responses it never reads. Needs no key.
async fn hold_responses(address: &str, pair: &Pair) -> (SendRequest<Bytes>, Vec<h2::RecvStream>) {
    let stream = TcpStream::connect(address).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(config(Some(pair.der()), &[b"h2"]));
    let stream = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
    let (mut client, connection) =
        h2::client::Builder::new().initial_window_size(0).handshake::<_, Bytes>(stream).await.unwrap();
    tokio::spawn(connection);
    let mut held = Vec::new();
    for _ in 0..16 {
        client = client.ready().await.unwrap();
        let (response, _) = client.send_request(request("GET", "/healthz", ""), true).unwrap();
        held.push(response.await.unwrap().into_body());
    }
    (client, held)
}

#[test]
fn the_connections_of_one_address_leave_requests_to_another_address() {
    let Some(own) = own_address() else {
        eprintln!("skipped the_connections_of_one_address: this machine has no address but loopback");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let (server, pair) = start(directory.path(), &["--listen", "0.0.0.0:0", "--max-connections", "8"]);
    let port = server.address.rsplit_once(':').expect("a port").1.to_owned();
    let [far, near] = [format!("{own}:{port}"), format!("127.0.0.1:{port}")];
    run(&near, &pair, async |mut client, _| {
        let mut held = Vec::new();
        for _ in 0..6 {
            held.push(hold_responses(&far, &pair).await);
        }
        let (response, _) = client.send_request(request("GET", "/healthz", ""), true).unwrap();
        assert_eq!(response.await.unwrap().status(), 200);
    });
}

#[test]
fn a_shutdown_sends_goaway_and_finishes_what_is_in_flight() {
    let directory = tempfile::tempdir().unwrap();
    let (mut server, pair) = start(directory.path(), &[]);
    let token = server.admin_token.clone();
    run(&server.address, &pair, async |mut client, ended| {
        let path = "/admin/v1/organizations";
        let (response, mut send) = client.send_request(request("POST", path, &token), false).unwrap();
        let (health, _) = client.send_request(request("GET", "/healthz", ""), true).unwrap();
        assert_eq!(health.await.unwrap().status(), 200, "the server has both requests");
        server.signal("TERM");
        // GOAWAY: this library refuses to begin a request then.
        while let Ok(ready) = client.ready().await {
            client = ready;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        send.send_data(new_organization(), true).unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(body(response.into_body()).await["object"], "organization");
        let ended = ended.await.unwrap();
        assert!(ended.is_ok(), "the connection ends without an error: {ended:?}");
    });
    assert_eq!(server.exit_code(), Some(0));
}

/// The status of a GET.
async fn status_of(client: &SendRequest<Bytes>, path: &str, token: &str) -> u16 {
    let mut client = client.clone().ready().await.unwrap();
    let (response, _) = client.send_request(request("GET", path, token), true).unwrap();
    response.await.unwrap().status().as_u16()
}

/// Whether a key was revoked.
async fn is_revoked(client: &SendRequest<Bytes>, key: &str, token: &str) -> bool {
    let mut client = client.clone().ready().await.unwrap();
    let (response, _) = client.send_request(request("GET", key, token), true).unwrap();
    !body(response.await.unwrap().into_body()).await["revoked_at"].is_null()
}

/// Sends a POST without a body, and resets its stream after `pause`.
async fn give_up(client: &SendRequest<Bytes>, path: &str, token: &str, pause: Duration) {
    let mut client = client.clone().ready().await.unwrap();
    let (response, mut send) = client.send_request(request("POST", path, token), true).unwrap();
    // The connection is driven by another thread; a sleep would be too coarse.
    let began = Instant::now();
    while began.elapsed() < pause {
        std::hint::spin_loop();
    }
    send.send_reset(Reason::CANCEL);
    drop(response);
}

/// The reset of a stream drops the handler of its request, also while it waits for its commit. HTTP/1 has no such signal.
#[test]
fn a_revoked_key_is_refused_although_the_stream_of_its_revocation_was_reset() {
    let directory = tempfile::tempdir().unwrap();
    let (server, pair) = start(directory.path(), &[]);
    let token = server.admin_token.as_str();
    for first_pause in (1..=20).map(|n| Duration::from_micros(100 * (n % 10))) {
        run(&server.address, &pair, async |client, _| {
            let organization = post(&client, "/admin/v1/organizations", token, &json!({"name": "Test"})).await;
            let asked = json!({"organization_id": organization["id"], "scope": "read"});
            let made = post(&client, "/admin/v1/api_keys", token, &asked).await;
            let text = |name: &str| made[name].as_str().unwrap().to_owned();
            let (path, key) = (format!("/admin/v1/api_keys/{}", text("id")), text("key"));
            // The server remembers the key for a second.
            assert_eq!(status_of(&client, "/v1/vehicles", &key).await, 200);
            let mut pause = first_pause;
            // The server does not handle a request that was reset before it was read.
            'revoked: loop {
                give_up(&client, &format!("{path}/revoke"), token, pause).await;
                pause += Duration::from_micros(200);
                for _ in 0..10 {
                    if is_revoked(&client, &path, token).await {
                        break 'revoked;
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
            // For what follows the commit.
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert_eq!(status_of(&client, "/v1/vehicles", &key).await, 401, "{pause:?}");
        });
    }
}
