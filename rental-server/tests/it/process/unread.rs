//! Nobody reads what the server says: its log goes to a full disk, or to a program that has ended.

use super::{ANY_PORT, Program, directory};
use crate::support::Connection;
use std::process::{Command, Stdio};

/// The program with its stdout or stderr elsewhere.
fn start(redirection: &str, flags: &[&str]) -> (tempfile::TempDir, Program) {
    let directory = directory();
    let mut shell = Command::new("sh");
    let script = format!("exec \"$0\" \"$@\" {redirection}");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_rental-server")]).stdin(Stdio::null()).stdout(Stdio::piped());
    let program = Program::spawn(shell, directory.path(), flags);
    (directory, program)
}

#[test]
fn a_log_that_cannot_be_written_stops_nothing() {
    let (_directory, mut server) = start("2>/dev/full", &[&ANY_PORT[..], &["--log-level", "debug"]].concat());
    let line = server.line_with("http://");
    let address = line.split("http://").nth(1).and_then(|rest| rest.split_whitespace().next()).expect("an address");
    for _ in 0..3 {
        // The refusal is logged.
        let headers = [("Authorization", "Bearer wrong")];
        assert_eq!(Connection::open(address).send("GET", "/v1/vehicles", &headers, b"").status, 401);
    }
    assert_eq!(Connection::open(address).send("GET", "/readyz", &[], b"").status, 200);
    server.signal("TERM");
    assert_eq!(server.end().code, Some(0));
}

#[test]
fn an_error_that_cannot_be_written_keeps_its_exit_code() {
    let (_directory, server) = start("2>/dev/full", &["--no-such-flag"]);
    assert_eq!(server.end().code, Some(2));
    let (_directory, server) = start("2>/dev/full", &["--store", "redb:/no/such/directory/store.redb"]);
    assert_eq!(server.end().code, Some(1));
}

/// As with `rental-server --demo 2>&1 | head -1`.
#[test]
fn a_reader_that_has_ended_keeps_the_demo_from_nothing() {
    let (directory, mut server) = start("2>&1", &[&ANY_PORT[..], &["--demo"]].concat());
    server.line().expect("a first line");
    // The pipe is closed.
    server.stdout = std::io::BufReader::new(Box::new(std::io::empty()));
    std::thread::sleep(std::time::Duration::from_millis(1500));
    server.signal("TERM");
    assert_eq!(server.end().code, Some(0));
    let left: Vec<_> =
        std::fs::read_dir(directory.path()).expect("a directory").flatten().map(|file| file.file_name()).collect();
    assert_eq!(left, ["stderr"], "the sample data is removed");
}
