//! The limit of file descriptors, and what happens when all of them are in use.

use crate::support::{Connection, Server};
use serde_json::json;
use std::{fs, thread, time::Duration};

/// Hundredths of a second of the processor that the server has used.
fn ticks(server: &Server) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.pid)).expect("a process");
    let (_, rest) = stat.rsplit_once(')').expect("a name");
    rest.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

#[test]
fn without_file_descriptors_the_server_goes_on_and_takes_connections_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = format!("redb:{}", directory.path().join("store.redb").display());
    let server = Server::start_by(&["prlimit", "--nofile=100"], &["--store", &store]);
    let organization = server.organization();
    let mut early = Connection::open(&server.address);
    let mut ask = || early.send("GET", "/readyz", &[], b"").status;
    assert_eq!(ask(), 200);
    let mut idle = Vec::new();
    for _ in 0..200 {
        idle.push(Connection::open(&server.address));
        assert_eq!(ask(), 200, "an open connection is served");
    }
    while !server.log().contains("cannot accept a connection") {
        thread::sleep(Duration::from_millis(10));
        assert_eq!(ask(), 200, "an open connection is served");
    }
    let before = ticks(&server);
    thread::sleep(Duration::from_secs(2));
    let used = ticks(&server) - before;
    assert!(used < 150, "a busy loop: {used} of 200 ticks");
    let lines = server.log().matches("cannot accept a connection").count();
    assert!(lines < 10, "{lines} lines");
    drop(idle);
    for _ in 0..50 {
        organization.vehicle(json!({}));
    }
}

#[test]
fn a_low_soft_limit_of_open_files_is_raised_to_the_hard_limit() {
    let server = Server::start_by(&["prlimit", "--nofile=256:"], &[]);
    // Each connection is served while all before it stay open. Twice as many as the soft limit allows.
    let mut open: Vec<Connection> = Vec::new();
    for number in 0..512 {
        let mut connection = Connection::open(&server.address);
        assert_eq!(connection.send("GET", "/readyz", &[], b"").status, 200, "connection {number}");
        open.push(connection);
    }
    for connection in &mut open {
        assert_eq!(connection.send("GET", "/readyz", &[], b"").status, 200);
    }
}

#[test]
fn a_hard_limit_of_open_files_that_is_too_low_is_logged_once() {
    let warnings = |limit: &str| {
        let server = Server::start_by(&["prlimit", limit], &["--max-connections", "100"]);
        let log = server.log();
        log.lines().filter(|line| line.contains("limit of open files")).map(str::to_owned).collect::<Vec<_>>()
    };
    let low = warnings("--nofile=1000:2659");
    assert_eq!(low.len(), 1, "{low:?}");
    for part in ["limit=2659", "needed=2660", "LimitNOFILE=", "ulimit -n"] {
        assert!(low[0].contains(part), "{low:?}");
    }
    assert_eq!(warnings("--nofile=256:2660"), Vec::<String>::new());
}
