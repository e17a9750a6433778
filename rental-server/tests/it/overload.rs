//! More than the server can do: the organization that sends it is refused, and the others are served. The same load with
//! figures is `examples/overload.rs`.

#[path = "../../examples/overload/load.rs"]
mod load;

use crate::{
    failed_sync::can_inject,
    support::{Connection, Organization, Server},
};
use load::Load;
use rental_core::operations::api_keys::key_text;
use serde_json::json;
use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Far longer than any request takes: what is slower hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A request that makes a vehicle.
pub(crate) fn post(organization: &Organization<'_>, body: &str) -> Vec<u8> {
    let (address, key, length) = (&organization.server.address, &organization.write, body.len());
    format!(
        "POST /v1/vehicles HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// A request that lists the vehicles.
fn get(organization: &Organization<'_>) -> Vec<u8> {
    let (address, key) = (&organization.server.address, &organization.write);
    format!("GET /v1/vehicles HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\r\n").into_bytes()
}

/// These requests, at this rate or as fast as they are answered.
fn load<'a>(server: &'a Server, requests: &'a [Vec<u8>], rate: Option<f64>, connections: usize) -> Load<'a> {
    Load { address: &server.address, requests, rate, connections, patience: PATIENCE, seed: 7 }
}

fn metric(server: &Server, name: &str) -> u64 {
    let page = Connection::open(&server.address).send("GET", "/metrics", &[], b"").text();
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<f64>().ok());
    value.unwrap_or_else(|| panic!("no {name} in {page}")) as u64
}

/// Each sync takes 50 ms, so that a few hundred clients are more than the disk can serve.
#[test]
fn an_organization_that_sends_too_much_is_refused_and_another_one_is_served() {
    if !can_inject() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let store = format!("redb:{}", directory.path().join("store.redb").display());
    let strace = "strace -D -f -qq -o /dev/null -e trace=fdatasync -e inject=fdatasync:delay_enter=50000";
    let server = Server::start_by(&strace.split(' ').collect::<Vec<_>>(), &["--store", &store]);
    let (large, small) = (server.organization(), server.organization());
    let [flood, few] = [&large, &small].map(|organization| [post(organization, r#"{"name":"One"}"#)]);
    let stop = AtomicBool::new(false);
    let flood = load(&server, &flood, None, 400);
    let (theirs, own) = thread::scope(|scope| {
        let (flood, stop) = (&flood, &stop);
        let theirs = scope.spawn(move || flood.run(stop));
        let begun = Instant::now();
        while metric(&server, "rental_http_requests_crowded_total") == 0 && begun.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(20));
        }
        let refused = (0..200).map(|_| large.post("/v1/vehicles", &json!({"name": "One"})));
        let refused = refused.filter(|reply| reply.status != 200).take(1).collect::<Vec<_>>();
        for reply in refused {
            reply.error(503, "api_error", "service_unavailable");
            assert_eq!(reply.header("retry-after"), Some("1"));
        }
        let own = load(&server, &few, Some(8.0), 8).run_for(Duration::from_secs(3));
        stop.store(true, Ordering::Relaxed);
        (theirs.join().expect("the flood"), own)
    });
    println!(
        "the flood: {:.0}/s of {} served, {} refused after {:?} (median); the other: {:.0}/s, {:?} (p99)",
        theirs.goodput(),
        theirs.offered(),
        theirs.refused.len(),
        theirs.refusal(0.5),
        own.goodput(),
        own.latency(0.99)
    );
    assert!(!theirs.refused.is_empty() && !theirs.served.is_empty() && theirs.failed == 0, "{}", theirs.failed);
    assert!(own.refused.is_empty() && own.failed + own.late == 0, "{own:?}");
    assert!(own.served.len() > 10, "{}", own.served.len());
    let log = server.log();
    assert!(log.contains("requests were turned away"), "{log}");
    assert!(log.lines().count() < theirs.refused.len().max(100), "a line for each refused request");
}

/// One that sends much waits for its part of the processors while another one is active, and loses no request.
#[test]
fn an_organization_with_many_connections_waits_while_another_one_is_served() {
    let server = Server::start(&[]);
    let (large, small) = (server.organization(), server.organization());
    let [flood, few] = [&large, &small].map(|organization| [get(organization)]);
    let stop = AtomicBool::new(false);
    let flood = load(&server, &flood, None, 300);
    let (theirs, own) = thread::scope(|scope| {
        let (flood, stop) = (&flood, &stop);
        let theirs = scope.spawn(move || flood.run(stop));
        let own = load(&server, &few, Some(20.0), 4).run_for(Duration::from_secs(3));
        stop.store(true, Ordering::Relaxed);
        (theirs.join().expect("the flood"), own)
    });
    assert!(theirs.served.len() > 1000 && theirs.failed == 0, "{} {}", theirs.served.len(), theirs.failed);
    assert!(own.served.len() > 10 && own.refused.is_empty() && own.failed + own.late == 0, "{own:?}");
    let waits = metric(&server, "rental_http_turn_waits_total");
    assert!(waits > 10, "{waits}");
}

/// Parts of large bodies that never end.
pub(crate) fn begin_uploads(
    organization: &Organization<'_>,
    count: usize,
    bytes: usize,
    sent: usize,
) -> Vec<Connection> {
    let head = format!(
        "POST /v1/vehicles HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {bytes}\r\n\r\n",
        organization.write
    );
    let part = vec![b' '; sent];
    let begin = |_| {
        let mut connection = Connection::open(&organization.server.address);
        connection.write(head.as_bytes()).expect("sent");
        // A refused one is closed while it is sent.
        let _ = connection.write(&part);
        connection
    };
    (0..count).map(begin).collect()
}

#[test]
fn large_bodies_of_one_organization_leave_memory_to_the_server_and_to_others() {
    const BODY: usize = 8 << 20;
    const UPLOADS: usize = 100;
    let server = Server::start(&["--max-body", "8MB", "--request-timeout", "5m"]);
    let (large, small) = (server.organization(), server.organization());
    let uploads = begin_uploads(&large, UPLOADS, BODY, BODY - 1);
    let body = format!("{{\"name\":\"One\"{}}}", " ".repeat(BODY - 100));
    let refused = large.raw("POST", "/v1/vehicles", &[], body.as_bytes());
    refused.error(503, "api_error", "service_unavailable");
    large.vehicle(json!({}));
    small.raw("POST", "/v1/vehicles", &[], body.as_bytes()).ok();
    let peak = kilobytes(&server, "VmHWM:");
    println!("{UPLOADS} uploads of {} MB: at most {} MB resident", BODY >> 20, peak >> 10);
    assert!(peak << 10 < UPLOADS * BODY / 2, "{peak} kB");
    drop(uploads);
    let again = (0..200).any(|_| {
        thread::sleep(Duration::from_millis(50));
        large.raw("POST", "/v1/vehicles", &[], body.as_bytes()).status == 200
    });
    assert!(again, "memory is given back when the uploads end");
}

/// A list of vehicles with this key, which a proxy passes on for this address.
fn forwarded(address: &str, key: &str, client: u32) -> Vec<u8> {
    let client = std::net::Ipv4Addr::from_bits(client);
    format!("GET /v1/vehicles HTTP/1.1\r\nHost: {address}\r\nX-Forwarded-For: {client}\r\nAuthorization: Bearer {key}\r\n\r\n")
        .into_bytes()
}

/// A key that looks like one of the server's, and is none.
fn unknown_key(number: u32) -> String {
    let mut random = [7; 32];
    random[..4].copy_from_slice(&number.to_be_bytes());
    key_text(&random)
}

fn kilobytes(server: &Server, name: &str) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid)).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse().ok());
    line.unwrap_or_else(|| panic!("no {name}"))
}

/// Behind a proxy, unknown keys come from one address and from 20,000, and also keys that cannot be any.
#[test]
fn floods_of_unknown_keys_take_bounded_memory_and_other_addresses_are_served() {
    const KEYS: u32 = 20_000;
    let server = Server::start(&["--trusted-proxy", "127.0.0.0/8"]);
    let organization = server.organization();
    organization.vehicle(json!({}));
    let own = forwarded(&server.address, &organization.read, u32::MAX - 1);
    let address = &server.address;
    let floods: [(&str, Vec<Vec<u8>>); 3] = [
        ("one address", (0..KEYS).map(|key| forwarded(address, &unknown_key(key), 7)).collect()),
        ("many addresses", (0..KEYS).map(|key| forwarded(address, &unknown_key(key), 1 << 24 | key << 3)).collect()),
        ("no keys", (0..KEYS).map(|key| forwarded(address, &format!("guess-{key}"), 1 << 28 | key << 3)).collect()),
    ];
    let load = |requests| Load { address, requests, rate: None, connections: 64, patience: PATIENCE, seed: 7 };
    // So that what is made once is there.
    floods.iter().for_each(|(_, requests)| drop(load(requests).run_for(Duration::from_millis(500))));
    let before = kilobytes(&server, "VmHWM:");
    for (what, requests) in &floods {
        let stop = AtomicBool::new(false);
        let theirs = thread::scope(|scope| {
            let theirs = scope.spawn(|| load(requests).run(&stop));
            let mut connection = Connection::open(address);
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_secs(2) {
                connection.write(&own).expect("sent");
                let reply = connection.read_reply(false).expect("a response");
                assert_eq!(reply.status, 200, "{what}: {}", reply.text());
            }
            stop.store(true, Ordering::Relaxed);
            theirs.join().expect("the flood")
        });
        assert_eq!(theirs.served.len(), 0, "{what}");
        println!("{what}: {} unauthorized", theirs.failed);
    }
    // The kernel's counts are approximate: a later one can be a little less.
    let grown = kilobytes(&server, "VmHWM:").saturating_sub(before);
    println!("{grown} kB more for {} addresses", 2 * KEYS + 1);
    assert!(grown < 16 << 10, "{grown} kB for {} addresses and keys", 2 * KEYS);
    assert!(server.log().lines().count() < 500, "a line for each failure");
}
