//! A limit of memory, while large bodies come and more is written than the server can do. `prlimit --data` bounds the memory
//! of the process that is no file, so an allocation beyond it fails.

use super::signals::keep_writing;
use crate::{
    overload::begin_uploads,
    support::{Connection, Organization, Server},
};
use serde_json::json;
use std::{
    fs,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

const WRITERS: usize = 32;
const BODY: usize = 8 << 20;

/// A server with at most so many MB of memory, on a file in `directory`.
fn start(directory: &Path, megabytes: usize) -> Server {
    let limit = format!("--data={}", megabytes << 20);
    let store = format!("redb:{}", directory.join("store.redb").display());
    let flags = ["--max-body", "8MB", "--cache-size", "16MB", "--request-timeout", "5m", "--store", &store];
    Server::start_by(&["prlimit", &limit], &flags)
}

/// Checks that acknowledged vehicles are there: 2,000 of them, the last ones among them.
fn all_there(organization: &Organization<'_>, acknowledged: &[String]) {
    let (mut connection, bearer) =
        (Connection::open(&organization.server.address), format!("Bearer {}", organization.write));
    for id in
        acknowledged.iter().rev().take(1_000).chain(acknowledged.iter().rev().step_by(acknowledged.len() / 1_000 + 1))
    {
        let reply = connection.send("GET", &format!("/v1/vehicles/{id}"), &[("Authorization", &bearer)], b"");
        assert_eq!(reply.status, 200, "{id} was acknowledged, and is gone");
    }
}

/// The bounds of `docs/limits.md` add up to about 300 MB here. Without the bound of bodies, the uploads alone would need 1 GB.
#[test]
fn within_a_limit_that_fits_its_bounds_the_server_refuses_bodies_and_lives() {
    const LIMIT: usize = 400;
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(directory.path(), LIMIT);
    let (large, small) = (server.organization(), server.organization());
    let (acknowledged, broken, stop) = (Mutex::new(Vec::new()), AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let (small, acknowledged, broken, stop) = (&small, &acknowledged, &broken, &stop);
        for number in 0..WRITERS {
            scope.spawn(move || keep_writing(small, number, acknowledged, (broken, stop)));
        }
        let uploads = begin_uploads(&large, 120, BODY, BODY - 1);
        let body = format!("{{\"name\":\"One\"{}}}", " ".repeat(BODY - 100));
        let refused = large.raw("POST", "/v1/vehicles", &[], body.as_bytes());
        refused.error(503, "api_error", "service_unavailable");
        assert_eq!(Connection::open(&server.address).send("GET", "/readyz", &[], b"").status, 200);
        let before = acknowledged.lock().unwrap().len();
        while acknowledged.lock().unwrap().len() < before + 5 * WRITERS {
            thread::sleep(Duration::from_millis(5));
        }
        drop(uploads);
        stop.store(true, Ordering::SeqCst);
    });
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid)).expect("the server lives");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM").trim();
    let acknowledged = acknowledged.into_inner().unwrap();
    println!("{} writes were acknowledged; resident at most {peak}", acknowledged.len());
    assert_eq!(broken.into_inner(), 0);
    all_there(&small, &acknowledged);
}

/// Below its bounds, an allocation fails, and the process ends at once. So it is like `kill -9`.
#[test]
fn a_server_without_the_memory_that_it_needs_ends_and_loses_nothing_acknowledged() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = start(directory.path(), 96);
    let (large, small) = (server.organization(), server.organization());
    let (id, read, write) = (small.id.clone(), small.read.clone(), small.write.clone());
    let (acknowledged, broken, stop) = (Mutex::new(Vec::new()), AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let (small, acknowledged, broken, stop) = (&small, &acknowledged, &broken, &stop);
        for number in 0..WRITERS {
            scope.spawn(move || keep_writing(small, number, acknowledged, (broken, stop)));
        }
        while acknowledged.lock().unwrap().len() < 5 * WRITERS {
            thread::sleep(Duration::from_millis(5));
        }
        // The connections to a server that ends are refused.
        let uploads = std::panic::catch_unwind(|| begin_uploads(&large, 60, BODY, BODY - 1));
        let gone = || !Path::new(&format!("/proc/{}/exe", server.pid)).exists();
        let is_gone = (0..3000).any(|_| {
            thread::sleep(Duration::from_millis(10));
            gone()
        });
        if !is_gone {
            server.signal("KILL");
            stop.store(true, Ordering::SeqCst);
            panic!("the limit is so high that the server lives");
        }
        drop(uploads);
        stop.store(true, Ordering::SeqCst);
    });
    let acknowledged = acknowledged.into_inner().unwrap();
    drop((large, small));
    // 128 and SIGABRT.
    assert_eq!(server.exit_code(), Some(134), "{}", server.log());
    assert!(server.log().contains("memory allocation of"), "{}", server.log());
    let again = start(directory.path(), 400);
    let organization = Organization { server: &again, id, read, write };
    println!("{} writes were acknowledged", acknowledged.len());
    all_there(&organization, &acknowledged);
    organization.vehicle(json!({}));
}
