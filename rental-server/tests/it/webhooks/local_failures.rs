//! What this server and its network cannot do counts against no endpoint and no delivery.

use super::{
    Hook, PRIVATE, hook, hook_at, many_events, observed, state, wait_for, wait_for_deliveries, wait_for_state,
};
use crate::support::{
    Connection, Organization, Server,
    receiver::{Act, Receiver},
};
use serde_json::{Value, json};
use std::{
    fs,
    net::UdpSocket,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, Instant},
};

/// Five retries in quick succession; probes are as far apart.
const QUICK: [&str; 3] = [PRIVATE, "--webhook-retry-schedule", "20ms,20ms,20ms,20ms,20ms"];
/// More than the six attempts of a delivery and the 20 failures of an endpoint.
const MANY: f64 = 30.0;

/// How many attempts this server could not make for a reason, read over an open connection.
fn not_sent(connection: &mut Connection, reason: &str) -> f64 {
    let page = connection.send("GET", "/metrics", &[], b"").text();
    let wanted = format!("rental_webhook_attempts_not_sent_total{{reason=\"{reason}\"}} ");
    page.lines().find_map(|line| line.strip_prefix(&wanted)).map_or(0.0, |count| count.parse().expect("a number"))
}

#[track_caller]
fn wait_for_many(connection: &mut Connection, reason: &str) {
    wait_for(
        &format!("attempts that fail with {reason}"),
        || (not_sent(connection, reason) >= MANY).then_some(()),
        String::new,
    );
}

/// The endpoint has no failure, its deliveries wait without an attempt, and the log says it once.
#[track_caller]
fn assert_nothing_counted(organization: &Organization, hook: &Hook, count: usize, reason: &str) {
    let state = state(organization.server, hook);
    assert_eq!((&state["status"], &state["failures_in_a_row"]), (&json!("enabled"), &json!(0)), "{state}");
    let deliveries = observed(organization, "deliveries", "");
    assert_eq!(deliveries.len(), count);
    for delivery in deliveries {
        assert_eq!((&delivery["status"], &delivery["attempts"]), (&json!("pending"), &json!(0)), "{delivery}");
    }
    let log = organization.server.log();
    let lines = log.lines().filter(|line| line.contains("cannot send webhook deliveries") && line.contains(reason));
    assert_eq!(lines.count(), 1, "{log}");
}

/// The deliveries arrived, each with its first attempt.
#[track_caller]
fn assert_first_attempts_arrived(organization: &Organization, hook: &Hook, count: usize) {
    for delivery in wait_for_deliveries(organization, hook, count, "delivered") {
        assert_eq!(delivery["attempts"], 1, "{delivery}");
    }
}

/// Lets the server open no more files than it has open, or again as many as it could.
fn limit_open_files(server: &Server, limited: bool) {
    let open = |number: &u64| fs::symlink_metadata(format!("/proc/{}/fd/{number}", server.pid)).is_ok();
    let soft = if limited { (0..).find(|number| !open(number)).expect("one is free") } else { 1024 };
    let limits = format!("--nofile={soft}:");
    let done = Command::new("prlimit").args(["--pid", &server.pid.to_string(), &limits]).status();
    assert!(done.expect("prlimit runs").success());
}

#[test]
fn a_server_without_file_descriptors_disables_no_endpoint() {
    let server = Server::start(&QUICK);
    let (organization, receiver) = (server.organization(), Receiver::start());
    let hook = hook(&organization, &receiver);
    let mut connection = Connection::open(&server.address);
    assert_eq!(not_sent(&mut connection, "no_file_descriptors"), 0.0);
    limit_open_files(&server, true);
    let key = format!("Bearer {}", organization.write);
    let headers = [("Authorization", key.as_str()), ("Content-Type", "application/json")];
    for _ in 0..3 {
        connection.send("POST", "/v1/leads", &headers, b"{}").ok();
    }
    wait_for_many(&mut connection, "no_file_descriptors");
    assert_eq!(receiver.count(), 0);
    limit_open_files(&server, false);
    assert_first_attempts_arrived(&organization, &hook, 3);
    let log = server.log();
    assert_eq!(log.matches("cannot send webhook deliveries").count(), 1, "{log}");
    assert_eq!(state(&server, &hook)["failures_in_a_row"], 0);
}

#[test]
fn a_server_without_a_route_disables_no_endpoint() {
    let server = Server::start(&QUICK);
    let organization = server.organization();
    // No routing table has a route on which a TCP connection to it could be opened.
    let hook = hook_at(&organization, "http://255.255.255.255:9/", json!({}));
    many_events(&organization, 3);
    wait_for_many(&mut Connection::open(&server.address), "no_route");
    assert_nothing_counted(&organization, &hook, 3, "no_route");
    let receiver = Receiver::start();
    let path = format!("/admin/v1/webhook_endpoints/{}", hook.id);
    server.admin("PATCH", &path, &json!({"url": receiver.url()})).ok();
    assert_first_attempts_arrived(&organization, &hook, 3);
}

#[test]
fn a_receiver_that_refuses_connections_is_disabled() {
    let server = Server::start(&QUICK);
    let organization = server.organization();
    let hook = hook_at(&organization, &format!("http://{}/", Receiver::nobody()), json!({}));
    many_events(&organization, 8);
    let state = wait_for_state(&server, &hook, "disabled", |state| state["status"] == "disabled");
    assert_eq!(state["failures_in_a_row"], 20);
}

#[test]
fn what_failed_here_ends_no_streak_of_failures_there() {
    let server = Server::start(&QUICK);
    let (organization, receiver) = (server.organization(), Receiver::with(|_, _| Act::Status(500)));
    let hook = hook(&organization, &receiver);
    many_events(&organization, 1);
    receiver.wait_for(6);
    wait_for_state(&server, &hook, "six failures", |state| state["failures_in_a_row"] == 6);
    let path = format!("/admin/v1/webhook_endpoints/{}", hook.id);
    server.admin("PATCH", &path, &json!({"url": "http://255.255.255.255:9/"})).ok();
    many_events(&organization, 1);
    wait_for_many(&mut Connection::open(&server.address), "no_route");
    assert_eq!(state(&server, &hook)["failures_in_a_row"], 6);
}

const NXDOMAIN: u8 = 3;
const SERVFAIL: u8 = 2;

/// A DNS server on a loopback address of its own. It responds with this code. With 0, each name is `127.0.0.1`, but DNS servers
/// of `dead.example` fail, and those of `silent.example` do not respond.
fn name_server(address: &str, code: Arc<AtomicU8>) -> std::io::Result<()> {
    let socket = UdpSocket::bind((address, 53))?;
    std::thread::spawn(move || {
        let mut packet = [0; 512];
        while let Ok((size, from)) = socket.recv_from(&mut packet) {
            let question = packet[..size].iter().skip(12).position(|byte| *byte == 0).map_or(size, |end| 12 + end + 5);
            let is = |name: &[u8]| packet[13..size].starts_with(name);
            let code = match code.load(Ordering::SeqCst) {
                0 if is(b"silent") => continue,
                0 if is(b"dead") => SERVFAIL,
                code => code,
            };
            let has_address = code == 0 && packet[question - 3] == 1;
            let mut response = packet[..question].to_vec();
            response[2..12].copy_from_slice(&[0x81, 0x80 | code, 0, 1, 0, u8::from(has_address), 0, 0, 0, 0]);
            if has_address {
                response.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1]);
            }
            let _ = socket.send_to(&response, from);
        }
    });
    Ok(())
}

/// A server that asks only this DNS server; `None`, and a line that says so, where that is not permitted.
fn resolving_at(address: &str, code: &Arc<AtomicU8>, flags: &[&str]) -> Option<Server> {
    resolving_within(address, 2, code, flags)
}

/// The same where the system waits this many seconds for the DNS server.
fn resolving_within(address: &str, seconds: u8, code: &Arc<AtomicU8>, flags: &[&str]) -> Option<Server> {
    let permitted = Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|status| status.success());
    if !permitted || name_server(address, Arc::clone(code)).is_err() {
        println!("skipped: a DNS server of one's own needs `unshare -m` and port 53");
        return None;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let configuration = directory.path().join("resolv.conf");
    fs::write(&configuration, format!("nameserver {address}\noptions timeout:{seconds} attempts:1\n")).expect("a file");
    let mount = r#"mount --bind "$0" /etc/resolv.conf && exec "$@""#;
    let program = ["unshare", "-m", "sh", "-c", mount, configuration.to_str().expect("text")];
    Some(Server::start_by(&program, &[&QUICK, flags].concat()))
}

#[test]
fn a_dns_server_that_fails_disables_no_endpoint_but_an_unknown_name_does() {
    let code = Arc::new(AtomicU8::new(SERVFAIL));
    let Some(server) = resolving_at("127.83.7.53", &code, &[]) else { return };
    let (organization, receiver) = (server.organization(), Receiver::start());
    let url = format!("http://receiver.example:{}/", receiver.address.port());
    let hook = hook_at(&organization, &url, json!({"events": ["customer.created"]}));
    many_events(&organization, 3);
    wait_for_many(&mut Connection::open(&server.address), "resolver_failed");
    assert_nothing_counted(&organization, &hook, 3, "resolver_failed");
    code.store(0, Ordering::SeqCst);
    assert_first_attempts_arrived(&organization, &hook, 3);

    code.store(NXDOMAIN, Ordering::SeqCst);
    let other = hook_at(&organization, "http://elsewhere.example/", json!({"events": ["lead.received"]}));
    (0..8).for_each(|_| drop(organization.post("/v1/leads", &json!({})).ok()));
    wait_for_state(&server, &other, "disabled", |state| state["status"] == "disabled");
    let unknown = observed(&organization, "deliveries", &format!("&endpoint={}", other.id));
    assert!(unknown.iter().any(|one| one["last_error"] == "name_unknown"), "{unknown:?}");
    assert_eq!(state(&server, &hook)["status"], Value::from("enabled"));
}

/// In an outage of DNS every name fails. After it only one domain does, with SERVFAIL or without a response.
#[track_caller]
fn assert_only_a_dead_domain_is_disabled(server: &Server, code: &AtomicU8, dead: &str) {
    code.store(0, Ordering::SeqCst);
    let (organization, live_receiver) = (server.organization(), closing());
    let live = live_at(&organization, &live_receiver);
    many_events(&organization, 1);
    live_receiver.wait_for(1);
    // The live name was resolved a moment ago.
    code.store(SERVFAIL, Ordering::SeqCst);
    let hook = hook_at(&organization, &format!("http://{dead}.example/"), json!({"events": ["lead.received"]}));
    (0..8).for_each(|_| drop(organization.post("/v1/leads", &json!({})).ok()));
    many_events(&organization, 8);
    let mut connection = Connection::open(&server.address);
    let before = not_sent(&mut connection, "resolver_failed");
    wait_for(
        "failures of both",
        || (not_sent(&mut connection, "resolver_failed") >= before + 60.0).then_some(()),
        String::new,
    );
    for one in [&live, &hook] {
        let state = state(server, one);
        assert_eq!((&state["status"], &state["failures_in_a_row"]), (&json!("enabled"), &json!(0)), "{state}");
    }
    let mut waiting = observed(&organization, "deliveries", "");
    waiting.retain(|delivery| delivery["status"] == "pending");
    assert_eq!(waiting.len(), 16, "{waiting:?}");
    assert!(waiting.iter().all(|delivery| delivery["attempts"] == 0), "{waiting:?}");

    code.store(0, Ordering::SeqCst);
    let disabled = wait_for_state(server, &hook, "disabled", |state| state["status"] == "disabled");
    assert_eq!(disabled["failures_in_a_row"], 20);
    let deliveries = observed(&organization, "deliveries", &format!("&endpoint={}", hook.id));
    assert!(deliveries.iter().any(|one| one["last_error"] == "cannot_connect"), "{deliveries:?}");
    wait_for_deliveries(&organization, &live, 9, "delivered");
    let live = state(server, &live);
    assert_eq!((&live["status"], &live["failures_in_a_row"]), (&json!("enabled"), &json!(0)), "{live}");
}

/// A receiver that ends each connection: each attempt looks its name up.
fn closing() -> Receiver {
    Receiver::that(Act::header(200, "Connection: close"))
}

fn live_at(organization: &Organization, receiver: &Receiver) -> Hook {
    let url = format!("http://live.example:{}/", receiver.address.port());
    hook_at(organization, &url, json!({"events": ["customer.created"]}))
}

#[test]
fn a_domain_whose_dns_servers_fail_is_disabled_while_others_are_resolved() {
    let code = Arc::new(AtomicU8::new(0));
    let Some(server) = resolving_at("127.83.8.53", &code, &[]) else { return };
    assert_only_a_dead_domain_is_disabled(&server, &code, "dead");
}

#[test]
fn a_domain_whose_dns_servers_do_not_respond_is_disabled_while_others_are_resolved() {
    let code = Arc::new(AtomicU8::new(0));
    // A look-up may take half of it, less than the resolver's own time-out.
    let Some(server) = resolving_at("127.83.9.53", &code, &["--webhook-timeout", "1s"]) else { return };
    assert_only_a_dead_domain_is_disabled(&server, &code, "silent");
}

#[test]
fn a_shutdown_does_not_wait_for_a_dns_server_that_does_not_respond() {
    let code = Arc::new(AtomicU8::new(0));
    // The attempt ends after a second, and the thread that waits for the response after 25.
    let flags = ["--webhook-timeout", "1s"];
    let Some(mut server) = resolving_within("127.83.10.53", 25, &code, &flags) else { return };
    let organization = server.organization();
    hook_at(&organization, "http://silent.example/", json!({}));
    many_events(&organization, 1);
    drop(organization);
    let mut connection = Connection::open(&server.address);
    wait_for("a look-up", || (not_sent(&mut connection, "resolver_failed") >= 1.0).then_some(()), String::new);
    drop(connection);
    let began = Instant::now();
    server.signal("TERM");
    assert_eq!(server.exit_code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}
