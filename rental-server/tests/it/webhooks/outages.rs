//! Failures of this server's own network: while several hosts of several organizations fail, no endpoint is disabled.

use super::{
    Hook, PRIVATE, hook_at, many_events, observed, one_event, state, wait_for, wait_for_deliveries, wait_for_state,
};
use crate::support::{
    Connection, Organization, Server,
    receiver::{PATIENCE, Receiver},
};
use serde_json::json;
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
/// Addresses to which no routing table has a route for TCP.
const NO_ROUTE: [&str; 5] =
    ["http://224.0.0.1:9/", "http://224.0.0.2:9/", "http://224.0.0.3:9/", "http://224.0.0.4:9/", "http://224.0.0.5:9/"];

/// The value of a metric, read over an open connection.
fn value(connection: &mut Connection, name: &str) -> f64 {
    let page = connection.send("GET", "/metrics", &[], b"").text();
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or_else(|| panic!("no {name} in {page}"))
}

/// How many attempts counted against no endpoint, for a reason.
fn not_sent(connection: &mut Connection, reason: &str) -> f64 {
    value(connection, &format!("rental_webhook_attempts_not_sent_total{{reason=\"{reason}\"}}"))
}

/// Endpoints for one type of event at these URLs, of two organizations in turn.
fn hooks<'s>(
    organizations: &'s [Organization<'s>; 2],
    event: &str,
    urls: &[String],
) -> Vec<(&'s Organization<'s>, Hook)> {
    let make = |(organization, url): (&'s Organization<'s>, &String)| {
        (organization, hook_at(organization, url, json!({"events": [event]})))
    };
    organizations.iter().cycle().zip(urls).map(make).collect()
}

/// All deliveries have failed after six attempts, and the endpoints have fewer failures than would disable them.
#[track_caller]
fn assert_failed_and_enabled(hooks: &[(&Organization<'_>, Hook)], events: usize) {
    for (organization, hook) in hooks {
        for delivery in wait_for_deliveries(organization, hook, events, "failed") {
            assert_eq!(delivery["attempts"], 6, "{delivery}");
        }
        let state = state(organization.server, hook);
        assert!(state["status"] == "enabled" && state["failures_in_a_row"].as_u64() < Some(20), "{state}");
    }
}

#[test]
fn five_hosts_of_two_organizations_without_a_route_are_not_disabled() {
    let server = Server::start(&QUICK);
    let organizations = [server.organization(), server.organization()];
    let hooks = hooks(&organizations, "customer.created", &NO_ROUTE.map(str::to_owned));
    // The failures before that of the fifth host count.
    organizations.iter().for_each(one_event);
    assert_failed_and_enabled(&hooks, 1);
    organizations.iter().for_each(|organization| many_events(organization, 7));
    assert_failed_and_enabled(&hooks, 8);
    let mut connection = Connection::open(&server.address);
    assert!(not_sent(&mut connection, "no_route") >= 5.0 * 7.0 * 6.0, "those of the last events");
    let deliveries = observed(&organizations[0], "deliveries", "");
    assert!(deliveries.iter().all(|one| one["last_error"] == "no_route"), "{deliveries:?}");
    let log = server.log();
    assert_eq!(log.matches("reach no address at several hosts").count(), 1, "{log}");
}

#[test]
fn hosts_of_one_organization_without_a_route_are_disabled() {
    let server = Server::start(&QUICK);
    let organization = server.organization();
    let hooks = NO_ROUTE.map(|url| hook_at(&organization, url, json!({})));
    many_events(&organization, 8);
    for hook in &hooks {
        let state = wait_for_state(&server, hook, "disabled", |state| state["status"] == "disabled");
        assert_eq!(state["failures_in_a_row"], 20);
    }
    assert_eq!(not_sent(&mut Connection::open(&server.address), "no_route"), 0.0);
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
    let organizations = [server.organization(), server.organization()];
    let port = Receiver::nobody().port();
    let hooks =
        hooks(&organizations, "lead.received", &[1, 2, 3, 4, 5].map(|host| format!("http://127.0.0.{host}:{port}/")));
    // On PostgreSQL the server opens the connections to the database that a write needs.
    for organization in &organizations {
        organization.post("/v1/customers", &json!({"full_name": "Ada"})).ok();
    }
    let mut connection = Connection::open(&server.address);
    // The server closes the connections of what came before.
    std::thread::sleep(Duration::from_millis(500));
    limit_open_files(&server, true);
    let mut event = |organization: &Organization<'_>| {
        let key = format!("Bearer {}", organization.write);
        let headers = [("Authorization", key.as_str()), ("Content-Type", "application/json")];
        connection.send("POST", "/v1/leads", &headers, b"{}").ok();
    };
    organizations.iter().for_each(&mut event);
    // An attempt fails within milliseconds, so a delivery has failed within a second.
    std::thread::sleep(Duration::from_secs(1));
    (0..7).for_each(|_| organizations.iter().for_each(&mut event));
    let deadline = Instant::now() + PATIENCE;
    let unanswered = r#"rental_webhook_attempt_duration_seconds_count{outcome="unanswered"}"#;
    // Until all attempts were made.
    while not_sent(&mut connection, "no_file_descriptors") + value(&mut connection, unanswered) < 5.0 * 8.0 * 6.0 {
        assert!(Instant::now() < deadline, "{}", server.log());
        // One of those that were open can have become free.
        limit_open_files(&server, true);
        std::thread::sleep(Duration::from_millis(50));
    }
    limit_open_files(&server, false);
    assert_failed_and_enabled(&hooks, 8);
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

const NXDOMAIN: u8 = 3;
const SERVFAIL: u8 = 2;

/// A DNS server on a loopback address of its own. It responds with this code; with 0, each name is `127.0.0.1`. It does not respond
/// to questions about `silent.example`.
fn name_server(address: &str, code: Arc<AtomicU8>) -> std::io::Result<()> {
    let socket = UdpSocket::bind((address, 53))?;
    std::thread::spawn(move || {
        let mut packet = [0; 512];
        while let Ok((size, from)) = socket.recv_from(&mut packet) {
            let question = packet[..size].iter().skip(12).position(|byte| *byte == 0).map_or(size, |end| 12 + end + 5);
            let is = |name: &[u8]| packet[13..size].starts_with(name);
            let code = match code.load(Ordering::SeqCst) {
                0 if is(b"silent") => continue,
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
    let organizations = [server.organization(), server.organization()];
    let receiver = Receiver::start();
    let urls = ["a", "b", "c", "d", "e"].map(|name| format!("http://{name}.example:{}/", receiver.address.port()));
    let hooks = hooks(&organizations, "customer.created", &urls);
    organizations.iter().for_each(one_event);
    assert_failed_and_enabled(&hooks, 1);
    organizations.iter().for_each(|organization| many_events(organization, 7));
    assert_failed_and_enabled(&hooks, 8);
    assert!(not_sent(&mut Connection::open(&server.address), "resolver_failed") >= 5.0 * 7.0 * 6.0);
    code.store(0, Ordering::SeqCst);
    organizations.iter().for_each(one_event);
    receiver.wait_for(5);

    code.store(NXDOMAIN, Ordering::SeqCst);
    let other = hook_at(&organizations[0], "http://elsewhere.example/", json!({"events": ["lead.received"]}));
    (0..8).for_each(|_| drop(organizations[0].post("/v1/leads", &json!({})).ok()));
    wait_for_state(&server, &other, "disabled", |state| state["status"] == "disabled");
    let unknown = observed(&organizations[0], "deliveries", &format!("&endpoint={}", other.id));
    assert!(unknown.iter().any(|one| one["last_error"] == "name_unknown"), "{unknown:?}");
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
    let attempts = r#"rental_webhook_attempt_duration_seconds_count{outcome="unanswered"}"#;
    wait_for("a look-up", || (value(&mut connection, attempts) >= 1.0).then_some(()), String::new);
    drop(connection);
    let began = Instant::now();
    server.signal("TERM");
    assert_eq!(server.exit_code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}
