//! A clock that jumps while the server works, and is confirmed: all goes on by the new time. libfaketime gives the server a clock of its own;
//! its monotonic clock goes on, as that of the system does when somebody sets the time.

use crate::{
    support::{
        ADMIN_TOKEN, Connection, Server,
        receiver::{Act, Receiver, unix_seconds},
    },
    tls::{
        authority::Trusted,
        client::{Pair, config, connect_with},
    },
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read, Write},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

const LIBRARIES: [&str; 2] =
    ["/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1", "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1"];
pub(super) const HOUR: i64 = 3600;
/// How far a time of the server may be from the clock that it was given: the machine may be busy.
const NEAR: i64 = 120;

/// A server whose clock is that of this machine and as many seconds more as the file says.
pub(super) fn start(file: &Path, offset: i64, variables: &[&str], flags: &[&str]) -> Option<Server> {
    let library = LIBRARIES.into_iter().find(|library| Path::new(library).exists());
    let Some(library) = library else {
        assert!(std::env::var_os("RENTAL_REQUIRE_ALL").is_none(), "libfaketime is not installed");
        println!("skipped: libfaketime is not installed");
        return None;
    };
    set(file, offset);
    let [preload, file] = [format!("LD_PRELOAD={library}"), format!("FAKETIME_TIMESTAMP_FILE={}", file.display())];
    let environment = ["FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1"];
    let program = [&["env", &preload, &file][..], &environment, variables].concat();
    Some(Server::start_by(&program, flags).expecting_errors("the clock has jumped"))
}

/// Sets the clock of the server, and confirms that it is right.
fn set_and_confirm(server: &Server, file: &Path, offset: i64) {
    set(file, offset);
    confirm(server);
}

/// Confirms the clock of the server as it is.
pub(super) fn confirm(server: &Server) {
    let jump = server.admin("GET", "/admin/v1/status", &Value::Null).ok()["clock_jump"].clone();
    let told = server.admin("POST", "/admin/v1/clock/confirm", &json!({"seconds": jump["seconds"]})).ok();
    assert_eq!((&told["clock_jump"], &told["ready"]), (&Value::Null, &json!(true)), "{jump}");
}

pub(super) fn set(file: &Path, offset: i64) {
    // In one step: the server reads it all the time.
    let new = file.with_extension("new");
    fs::write(&new, format!("{offset:+}\n")).expect("a file");
    fs::rename(new, file).expect("a file");
}

pub(super) fn clock(offset: i64) -> i64 {
    i64::try_from(unix_seconds()).expect("a time") + offset
}

/// Seconds of a time in a response.
pub(super) fn seconds(time: &Value) -> i64 {
    let time = rental_core::value::Timestamp::parse(time.as_str().expect("a time")).expect("RFC 3339");
    i64::try_from(time.millis() / 1000).expect("seconds")
}

pub(super) fn near(found: i64, offset: i64, what: &str) {
    assert!((found - clock(offset)).abs() < NEAR, "{what}: {found} is not near {}", clock(offset));
}

pub(super) fn ticks(server: &Server) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.pid)).expect("a process");
    let (_, rest) = stat.rsplit_once(')').expect("a name");
    rest.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// Ends the other load, also when the test fails.
struct Stops<'s>(&'s AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_clock_that_jumps_an_hour_or_a_day_under_load_stops_nothing_once_it_is_confirmed() {
    let directory = tempfile::tempdir().expect("a directory");
    // A file, whatever the other tests use: a database has a clock of its own.
    let store = format!("redb:{}", directory.path().join("store.redb").display());
    let flags =
        ["--webhook-allow-private", "--rate-limit", "200", "--webhook-retry-schedule", "1s,1s,1s", "--store", &store];
    let Some(server) = start(&directory.path().join("clock"), 0, &[], &flags) else { return };
    let (organization, busy, receiver) = (server.organization(), server.organization(), Receiver::start());
    let hook = json!({"organization_id": organization.id, "url": receiver.url()});
    server.admin("POST", "/admin/v1/webhook_endpoints", &hook).ok();
    let mut ids = vec![organization.vehicle(json!({}))];
    receiver.wait_for(1);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _at_the_end = Stops(&stop);
        // Beside it, another organization is over its rate all the time.
        scope.spawn(|| {
            let mut connection = Connection::open(&server.address);
            let bearer = format!("Bearer {}", busy.write);
            while !stop.load(Ordering::SeqCst) {
                let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
                let reply = connection.send("POST", "/v1/customers", &headers, br#"{"full_name":"One"}"#);
                // 503: between a jump and its confirmation, sometimes before the body has arrived.
                assert!([200, 429, 503].contains(&reply.status), "{}", reply.text());
                if reply.header("connection") == Some("close") {
                    connection = Connection::open(&server.address);
                }
            }
        });
        for (step, offset) in [HOUR, 25 * HOUR, 0, -HOUR, -25 * HOUR, 0].into_iter().enumerate() {
            set_and_confirm(&server, &directory.path().join("clock"), offset);
            let key = format!("jump-{step}");
            let made =
                organization.call_with("POST", "/v1/vehicles", &[("Idempotency-Key", &key)], &json!({"name": "One"}));
            let again =
                organization.call_with("POST", "/v1/vehicles", &[("Idempotency-Key", &key)], &json!({"name": "One"}));
            assert_eq!((again.text(), again.header("idempotent-replayed")), (made.text(), Some("true")));
            near(seconds(&made.ok()["created_at"]), offset, "created_at");
            ids.push(made.id());
            let seen = receiver.wait_until("the event", |seen| seen.len() > ids.len() - 1);
            let last = seen.last().expect("a delivery");
            assert_eq!(last.json()["data"]["id"], json!(made.id()));
            let signature = last.header("Service-Signature");
            let time = signature.split(',').find_map(|part| part.strip_prefix("t=")).expect("a time");
            near(time.parse().expect("seconds"), offset, "t");
            // The rate of a key is measured by a clock that nobody sets.
            for _ in 0..3 {
                assert_eq!(organization.get("/v1/vehicles").status, 200);
            }
            let ready = Connection::open(&server.address).send("GET", "/readyz", &[], b"");
            assert_eq!(ready.status, 200, "{}", ready.text());
        }
    });
    assert!(ids.is_sorted() && ids.iter().collect::<std::collections::BTreeSet<_>>().len() == ids.len(), "{ids:?}");
    // Newest first, whatever the clock said.
    let listed = organization.get("/v1/vehicles?limit=100").ok();
    let listed: Vec<&str> =
        listed["data"].as_array().expect("a list").iter().filter_map(|one| one["id"].as_str()).collect();
    assert_eq!(listed, ids.iter().rev().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(receiver.count(), ids.len(), "each event came once");
    let before = ticks(&server);
    thread::sleep(Duration::from_secs(2));
    let used = ticks(&server) - before;
    assert!(used < 150, "a busy loop: {used} of 200 ticks");
}

/// A request on a connection with TLS. The response has a body, which comes whole.
fn ask(stream: &mut (impl Read + Write), method: &str, path: &str, token: &str, body: &Value) -> Value {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).expect("it is sent");
    let (mut reply, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut part).expect("a response");
        assert!(count > 0, "the connection was closed: {}", String::from_utf8_lossy(&reply));
        reply.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&reply);
        assert!("HTTP/1.1 200 ".starts_with(text.get(..13).unwrap_or(&text)), "{text}");
        let whole = text.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str(body).ok());
        if let Some(body) = whole {
            return body;
        }
    }
}

/// The certificates are valid from now on for two days. Only the one of the receiver is checked by the server's clock.
#[test]
fn a_clock_that_jumps_an_hour_or_a_day_keeps_tls_connections_and_says_what_is_wrong_with_a_certificate() {
    let directory = tempfile::tempdir().expect("a directory");
    let (receiver, secure) = (Receiver::start(), Trusted::start(directory.path()));
    let pair = Pair::make(directory.path(), "server");
    let [certificate, key] = [&pair.certificate, &pair.key].map(|path| path.to_str().expect("text").to_owned());
    let store = format!("redb:{}", directory.path().join("store.redb").display());
    let flags = ["--webhook-allow-private", "--webhook-retry-schedule", "1s,1s", "--store", &store];
    let flags = [&flags[..], &["--tls-cert", &certificate, "--tls-key", &key]].concat();
    let file = directory.path().join("clock");
    let Some(server) = start(&file, 0, &[&secure.trust], &flags) else { return };
    let client = config(Some(pair.der()), &[b"http/1.1"]);
    let connect = || connect_with(&server.address, Arc::clone(&client));
    let mut open = connect();
    let mut admin = |path: &str, body: &Value| ask(&mut open, "POST", path, ADMIN_TOKEN, body);
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let organization = admin("/admin/v1/organizations", &json!({"name": "Test"}))["id"].clone();
    let key = json!({"organization_id": organization, "scope": "read_write"});
    let key = text(&admin("/admin/v1/api_keys", &key)["key"]);
    let mut hook = |url: &str, kind: &str| {
        let body = json!({"organization_id": organization, "url": url, "events": [kind]});
        text(&admin("/admin/v1/webhook_endpoints", &body)["id"])
    };
    hook(&receiver.url(), "customer.created");
    // It gets no events, only tests.
    let secure = hook(&format!("{}/hooks", secure.url), "lead.received");
    // Behind first: a connection to the receiver that works is kept, and asks for no certificate any more.
    for (step, offset) in [-HOUR, -25 * HOUR, 0, HOUR, 25 * HOUR, 0].into_iter().enumerate() {
        set(&file, offset);
        let jump = ask(&mut open, "GET", "/admin/v1/status", ADMIN_TOKEN, &Value::Null)["clock_jump"].clone();
        ask(&mut open, "POST", "/admin/v1/clock/confirm", ADMIN_TOKEN, &json!({"seconds": jump["seconds"]}));
        // On the connection from before, and on a new one that resumes a session from before.
        let tested =
            ask(&mut open, "POST", &format!("/admin/v1/webhook_endpoints/{secure}/test"), ADMIN_TOKEN, &Value::Null);
        let expected = if offset < 0 { json!([null, "certificate_not_valid_now"]) } else { json!([404, null]) };
        assert_eq!(json!([tested["status"], tested["error"]]), expected, "{offset}: {tested}");
        let body = json!({"full_name": format!("Jump {step}")});
        let made = ask(&mut connect(), "POST", "/v1/customers", &key, &body);
        let seen = receiver.wait_until("the event", |seen| seen.len() > step);
        assert_eq!(seen.last().expect("a delivery").json()["data"]["id"], made["id"], "{offset}");
    }
    assert_eq!(receiver.count(), 6, "each event came once");
    let before = ticks(&server);
    thread::sleep(Duration::from_secs(2));
    let used = ticks(&server) - before;
    assert!(used < 150, "a busy loop: {used} of 200 ticks");
    assert_eq!(receiver.count(), 6, "each event came once");
}

/// The first failure of an endpoint begins probes. They are spaced by a clock that nobody sets.
#[test]
fn a_clock_that_is_set_back_silences_no_endpoint_after_a_failure() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = format!("redb:{}", directory.path().join("store.redb").display());
    let flags = ["--webhook-allow-private", "--webhook-retry-schedule", "1h", "--store", &store];
    let Some(server) = start(&directory.path().join("clock"), 0, &[], &flags) else { return };
    let organization = server.organization();
    let receiver = Receiver::with(|number, _| Act::Status(if number == 0 { 500 } else { 200 }));
    let hook = json!({"organization_id": organization.id, "url": receiver.url()});
    let id = server.admin("POST", "/admin/v1/webhook_endpoints", &hook).id();
    organization.vehicle(json!({}));
    let path = format!("/admin/v1/webhook_endpoints/{id}");
    while server.admin("GET", &path, &Value::Null).ok()["failures_in_a_row"] != 1 {
        thread::sleep(Duration::from_millis(20));
    }
    set_and_confirm(&server, &directory.path().join("clock"), -24 * HOUR);
    let after = organization.vehicle(json!({}));
    let seen = receiver.wait_for(2);
    assert_eq!(seen[1].json()["data"]["id"], json!(after));
}
