//! More than the server can do: the organization that sends it is refused, and the others are served. The same load with
//! figures is `examples/overload.rs`.

#[path = "../../examples/overload/load.rs"]
mod load;

use crate::{
    failed_sync::can_inject,
    support::{Connection, Organization, Server},
};
use load::Load;
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

fn metric(server: &Server, name: &str) -> u64 {
    let page = Connection::open(&server.address).send("GET", "/metrics", &[], b"").text();
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or_else(|| panic!("no {name} in {page}"))
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
    let [flood, few] = [&large, &small].map(|organization| post(organization, r#"{"name":"One"}"#));
    let load = |request, rate, connections| Load {
        address: &server.address,
        request,
        rate,
        connections,
        patience: PATIENCE,
        seed: 7,
    };
    let stop = AtomicBool::new(false);
    let flood = load(&flood, None, 400);
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
        let own = load(&few, Some(8.0), 8).run_for(Duration::from_secs(3));
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

/// Parts of large bodies that never end.
fn begin_uploads(organization: &Organization<'_>, count: usize, bytes: usize, sent: usize) -> Vec<Connection> {
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
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid)).expect("a process");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    let peak: usize = peak.expect("VmHWM");
    println!("{UPLOADS} uploads of {} MB: at most {} MB resident", BODY >> 20, peak >> 10);
    assert!(peak << 10 < UPLOADS * BODY / 2, "{peak} kB");
    drop(uploads);
    let again = (0..200).any(|_| {
        thread::sleep(Duration::from_millis(50));
        large.raw("POST", "/v1/vehicles", &[], body.as_bytes()).status == 200
    });
    assert!(again, "memory is given back when the uploads end");
}
