//! Receivers that answer badly, slowly, without end or not at all: one failed attempt each, and nobody else notices
//! (spec, Retries 1; decisions, Webhooks).

use super::{PRIVATE, hook, hook_at, observed, one_event, quiet_while, wait_for, wait_for_deliveries};
use crate::{
    support::{
        Organization, Server,
        receiver::{Act, Receiver},
    },
    tls::authority::Leaf,
};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use std::{
    io::Write as _,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};

/// A second failed attempt would come after an hour. The time-out is long enough for a busy machine.
const FLAGS: [&str; 3] = [PRIVATE, "--webhook-retry-schedule", "1h"];
/// For receivers that are waited for in vain.
const BRIEF: [&str; 5] = [PRIVATE, "--webhook-retry-schedule", "1h", "--webhook-timeout", "2s"];

/// Sends one event to an endpoint at `url` and gives the delivery after its first attempt.
#[track_caller]
fn attempt_at(organization: &Organization, url: &str, what: &str) -> Value {
    let hook = hook_at(organization, url, json!({}));
    one_event(organization);
    let look = || observed(organization, "deliveries", &format!("&endpoint={}", hook.id)).pop();
    wait_for(what, || look().filter(|one| one["attempts"] != 0), || format!("{:?}", look()))
}

/// What a receiver does, what is noted as the status of the answer, and as the reason why there was none.
type Case = (&'static str, Act, Option<u16>, Option<&'static str>);

fn raw(bytes: &[u8]) -> Act {
    Act::Raw(bytes.to_vec())
}

/// Each case on an organization of its own; exactly one request reaches each receiver, and the endpoint counts one failure.
#[track_caller]
fn each_is_one_failed_attempt(flags: &[&str], cases: Vec<Case>) {
    let server = Server::start(flags);
    for (what, act, status, error) in cases {
        let (organization, receiver, healthy) = (server.organization(), Receiver::that(act), Receiver::start());
        hook(&organization, &healthy);
        let delivery = attempt_at(&organization, &receiver.url(), what);
        assert_eq!((&delivery["status"], &delivery["attempts"]), (&json!("pending"), &json!(1)), "{what}: {delivery}");
        assert_eq!(delivery["last_response_status"], json!(status), "{what}: {delivery}");
        assert_eq!(delivery["last_error"], json!(error), "{what}: {delivery}");
        assert_eq!(delivery["log"][0]["status"], json!(status), "{what}: {delivery}");
        assert_eq!(delivery["log"][0]["error"], json!(error), "{what}: {delivery}");
        assert_eq!(receiver.wait_for(1).len(), 1, "{what}");
        healthy.wait_for(1);
    }
}

#[test]
fn any_status_but_2xx_is_a_failure() {
    each_is_one_failed_attempt(
        &FLAGS,
        [300, 304, 399, 400, 401, 404, 410, 418, 422, 429, 500, 502, 503, 599, 600, 999]
            .map(|status| ("a status", Act::Status(status), Some(status), None))
            .to_vec(),
    );
}

#[test]
fn a_redirect_is_a_failure_and_never_followed() {
    let elsewhere = Receiver::start();
    let location = format!("Location: {}", elsewhere.url());
    each_is_one_failed_attempt(
        &FLAGS,
        [301, 302, 303, 305, 307, 308]
            .map(|status| ("a redirect", Act::header(status, &location), Some(status), None))
            .to_vec(),
    );
    quiet_while();
    assert_eq!(elsewhere.connections(), 0, "a redirect was followed");
}

#[test]
fn no_whole_answer_in_time_is_a_failure() {
    let pour = |head: &str, drop: &str, millis| {
        Act::Pour(head.as_bytes().to_vec(), drop.as_bytes().to_vec(), Duration::from_millis(millis))
    };
    let late = Act::After(Duration::from_secs(10), Box::new(Act::Status(200)));
    each_is_one_failed_attempt(
        &BRIEF,
        vec![
            ("no answer", Act::Hang, None, Some("timed_out")),
            ("a late answer", late, None, Some("timed_out")),
            ("a dripping body", Act::drip(), None, Some("timed_out")),
            ("a dripping head", pour("HTTP/1.1 200 OK\r\nX-Filler: ", ".", 20), None, Some("timed_out")),
            ("a dripping status line", pour("HTTP/1.1 200 ", "O", 20), None, Some("timed_out")),
            (
                "informational answers without end",
                pour("", "HTTP/1.1 103 Early Hints\r\n\r\n", 10),
                None,
                Some("timed_out"),
            ),
            (
                "a body shorter than announced",
                pour("HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n", "", 50),
                None,
                Some("timed_out"),
            ),
        ],
    );
}

#[test]
fn what_is_no_http_answer_is_a_failure() {
    let bad = Some("bad_answer");
    each_is_one_failed_attempt(
        &FLAGS,
        vec![
            ("an early close", raw(b""), None, bad),
            ("half a head", raw(b"HTTP/1.1 200 OK\r\nContent-"), None, bad),
            ("half a body", raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), None, bad),
            ("half a chunk", raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhalf"), None, bad),
            (
                "no chunk",
                raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhalf\r\n0\r\n\r\n"),
                None,
                bad,
            ),
            ("garbage", raw(&[0xff, 0x00, 0x16, 0x03, 0x01, b'\r', b'\n', b'\r', b'\n']), None, bad),
            ("another protocol", raw(b"SSH-2.0-OpenSSH_9.9\r\n"), None, bad),
            ("a status that is none", raw(b"HTTP/1.1 2000 OK\r\n\r\n"), None, bad),
            ("a length that is none", raw(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"), None, bad),
            ("two lengths", raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"), None, bad),
            ("a flood of headers", raw(&flood()), None, bad),
        ],
    );
}

fn flood() -> Vec<u8> {
    let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
    (0..100_000).for_each(|number| head.extend_from_slice(format!("X-{number}: 0123456789\r\n").as_bytes()));
    [head.as_slice(), b"\r\n"].concat()
}

#[test]
fn a_refused_connection_and_an_unknown_name_are_failures() {
    let server = Server::start(&FLAGS);
    let organization = server.organization();
    let refused = attempt_at(&organization, &format!("http://{}/", Receiver::nobody()), "a refusal");
    assert_eq!((&refused["last_error"], &refused["status"]), (&json!("cannot_connect"), &json!("pending")));
    let unknown = attempt_at(&organization, "http://no-such-name.invalid/", "a look-up");
    let error = unknown["last_error"].as_str().expect("an error");
    // Where a resolver does not answer at all, the attempt ends with its time.
    assert!(["name_unknown", "timed_out"].contains(&error), "{unknown}");
}

#[test]
fn a_body_without_end_is_read_up_to_a_bound() {
    let server = Server::start(&FLAGS);
    let organization = server.organization();
    let [fine, broken] = [200, 500].map(|status| Receiver::that(Act::endless(status)));
    let delivery = attempt_at(&organization, &fine.url(), "a 200 without end");
    assert_eq!((&delivery["attempts"], &delivery["log"][0]["status"]), (&json!(1), &json!(200)), "{delivery}");
    assert_eq!(delivery["status"], "delivered", "any 2xx is a success");
    let delivery = attempt_at(&organization, &broken.url(), "a 500 without end");
    assert_eq!((&delivery["status"], &delivery["log"][0]["status"]), (&json!("pending"), &json!(500)), "{delivery}");
    let kept = delivery["log"][0]["response"].as_str().expect("an excerpt").len();
    assert_eq!(kept, 1024);
    assert_eq!((fine.count(), broken.count()), (2, 1), "one attempt for each event");
}

#[test]
fn a_compressed_body_is_not_unpacked() {
    let server = Server::start(&FLAGS);
    let organization = server.organization();
    // `ok` as gzip, and an announcement that is not true.
    let packed = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\xcf\x06\x00\x47\xdd\xdc\x79\x02\x00\x00\x00".to_vec();
    for (coding, body) in [("gzip", packed), ("gzip", b"no gzip".to_vec()), ("br", vec![0xff; 5000])] {
        let answer = Act::Answer(200, vec![format!("Content-Encoding: {coding}")], body.clone());
        let receiver = Receiver::that(answer);
        let delivery = attempt_at(&organization, &receiver.url(), "a packed body");
        assert_eq!((&delivery["status"], &delivery["attempts"]), (&json!("delivered"), &json!(1)), "{delivery}");
        let expected = String::from_utf8_lossy(&body[..body.len().min(1024)]).into_owned();
        assert_eq!(
            delivery["log"][0]["response"], expected,
            "the bytes as they came, one replacement for each bad one"
        );
    }
}

/// Most memory that the server has had, in KiB.
fn peak_kib(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid)).expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
}

/// Each flood is ended by its bound, long before the time-out, which here is longer than a busy machine needs.
#[test]
fn floods_end_at_their_bound_and_cost_little_memory() {
    let server = Server::start(&[PRIVATE, "--webhook-retry-schedule", "1h", "--webhook-timeout", "60s"]);
    let organization = server.organization();
    let before = peak_kib(&server);
    let head = Act::Pour(b"HTTP/1.1 200 OK\r\n".to_vec(), b"X: ........\r\n".repeat(1000), Duration::ZERO);
    let line = Act::Pour(b"HTTP/1.1 200 OK\r\nX: ".to_vec(), vec![b'.'; 64 * 1024], Duration::ZERO);
    let hints = Act::Pour(Vec::new(), b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(1000), Duration::ZERO);
    let chunk = Act::Pour(b"HTTP/1.1 500 No\r\n\r\n".to_vec(), vec![0; 1 << 20], Duration::ZERO);
    for (what, act, error) in [
        ("headers", head, Some("bad_answer")),
        ("one header", line, Some("bad_answer")),
        ("hints", hints, Some("bad_answer")),
        ("a body", chunk, None),
    ] {
        let receiver = Receiver::that(act);
        let delivery = attempt_at(&organization, &receiver.url(), what);
        assert_eq!((&delivery["last_error"], receiver.count()), (&json!(error), 1), "{what}: {delivery}");
    }
    let grown = peak_kib(&server).saturating_sub(before);
    assert!(grown < 64 * 1024, "{grown} KiB more");
}

/// hyper keeps a connection until the request is sent. So such a receiver would keep a descriptor and the request for ever.
#[test]
fn receivers_that_respond_and_receive_nothing_keep_no_descriptor() {
    const EVENTS: usize = 20;
    let server = Server::start(&[PRIVATE]);
    let organization = server.organization();
    let descriptors = || std::fs::read_dir(format!("/proc/{}/fd", server.pid)).expect("Linux").flatten().count();
    let before = descriptors();
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    listener.set_recv_buffer_size(1).expect("the least that there is");
    listener.set_tcp_mss(536).expect("short segments");
    listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a port");
    listener.listen(128).expect("a listener");
    let listener = TcpListener::from(listener);
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let accepted = std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming().take(EVENTS) {
            let mut stream = stream.expect("a connection");
            stream.peek(&mut [0]).expect("the beginning of a request");
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").expect("a response");
            held.push(stream);
        }
        held
    });
    let hook = hook_at(&organization, &url, json!({"events": ["lead.received"]}));
    let large = json!({"raw_data": {"text": "x".repeat(60_000)}});
    for _ in 0..EVENTS {
        organization.post("/v1/leads", &large).ok();
    }
    wait_for_deliveries(&organization, &hook, EVENTS, "delivered");
    let _held = accepted.join().expect("all of them");
    wait_for("the descriptors", || (descriptors() < before + EVENTS / 2).then_some(()), || descriptors().to_string());
}

/// rustls reads session tickets as long as they come, and hands nothing to hyper.
#[test]
fn session_tickets_without_end_are_read_up_to_a_bound() {
    const TICKETS: usize = 50_000;
    let directory = tempfile::tempdir().expect("a directory");
    let leaf = Leaf::new(directory.path());
    let certificate = CertificateDer::from_pem_file(&leaf.certificate).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(&leaf.key).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let mut config = config.with_no_client_auth().with_single_cert(vec![certificate], key).expect("a pair");
    config.send_tls13_tickets = TICKETS;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let url = format!("https://localhost:{}/", listener.local_addr().expect("an address").port());
    let config = Arc::new(config);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut tls = rustls::ServerConnection::new(Arc::clone(&config)).expect("a connection");
            // It sends its tickets and never responds.
            while tls.complete_io(&mut stream).is_ok() {}
        }
    });
    let flags = [PRIVATE, "--webhook-retry-schedule", "1h", "--webhook-timeout", "60s"];
    let trust = format!("SSL_CERT_FILE={}", leaf.authority.display());
    let server = Server::start_by(&["env", &trust], &flags);
    let organization = server.organization();
    let delivery = attempt_at(&organization, &url, "tickets");
    assert_eq!(delivery["last_error"], json!("bad_answer"), "{delivery}");
}
