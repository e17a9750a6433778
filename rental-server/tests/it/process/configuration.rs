//! Configuration that cannot be used is refused before the server makes any file.

use super::{ANY_PORT, Program, directory, refused, run};
use std::{ffi::OsString, fs, path::Path};

fn files(directory: &Path) -> Vec<OsString> {
    let mut names: Vec<_> =
        fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").file_name()).collect();
    names.sort();
    names
}

#[test]
fn a_secret_that_cannot_be_used_is_refused_before_a_store_is_made() {
    for (flag, content, words) in [
        ("--admin-token-file", None, ["--admin-token-file (or RENTAL_ADMIN_TOKEN_FILE)", "openssl rand -hex 32"]),
        ("--admin-token-file", Some("short"), ["secret", "at least 32"]),
        ("--master-key-file", None, ["--master-key-file", "openssl rand -hex 32"]),
        (
            "--master-key-file",
            Some("short"),
            ["secret must hold 64 hexadecimal digits", "--master-key-file or RENTAL_MASTER_KEY_FILE"],
        ),
    ] {
        let directory = directory();
        let mut expected = vec!["stderr"];
        if let Some(content) = content {
            fs::write(directory.path().join("secret"), content).expect("a file");
            expected.insert(0, "secret");
        }
        refused(&run(directory.path(), &[&ANY_PORT[..], &[flag, "secret"]].concat(), &[]), &words);
        assert_eq!(files(directory.path()), expected, "{flag} {content:?}");
    }
}

#[test]
fn headers_without_a_collector_are_refused() {
    let directory = directory();
    fs::write(directory.path().join("h"), "authorization=Bearer%20of-the-collector").expect("a file");
    let by_flag = run(directory.path(), &[&ANY_PORT[..], &["--otlp-headers-file", "h"]].concat(), &[]);
    let by_variable = run(directory.path(), &ANY_PORT, &[("RENTAL_OTLP_HEADERS_FILE", "h")]);
    for ended in [by_flag, by_variable] {
        refused(&ended, &["--otlp-headers-file (or RENTAL_OTLP_HEADERS_FILE)", "add --otlp-endpoint URL"]);
        assert!(!ended.stderr.contains("of-the-collector"), "{}", ended.stderr);
    }
    assert_eq!(files(directory.path()), ["h", "stderr"], "no store is made");
}

#[test]
fn headers_of_a_collector_that_are_none_are_refused_without_their_text() {
    let flags = |file| {
        [
            &ANY_PORT[..],
            &["--otlp-endpoint", "http://127.0.0.1:4318"],
            if file { &["--otlp-headers-file", "h"] } else { &[] },
        ]
        .concat()
    };
    let form = "are not of the form NAME=VALUE";
    let directory = directory();
    let ended = run(directory.path(), &flags(true), &[]);
    refused(&ended, &["cannot read h", "--otlp-headers-file (or RENTAL_OTLP_HEADERS_FILE)"]);
    fs::write(directory.path().join("h"), "Bearer of-the-collector").expect("a file");
    let of_file = run(directory.path(), &flags(true), &[]);
    refused(&of_file, &["the headers in h", form]);
    let of_variable =
        run(directory.path(), &flags(false), &[("OTEL_EXPORTER_OTLP_HEADERS", "Bearer of-the-collector")]);
    refused(&of_variable, &["the headers in OTEL_EXPORTER_OTLP_HEADERS", form]);
    for ended in [of_file, of_variable] {
        assert!(!ended.stderr.contains("of-the-collector"), "{}", ended.stderr);
    }
    assert_eq!(files(directory.path()), ["h", "stderr"], "no store is made");
}

#[test]
fn an_address_without_a_host_is_shown_with_one() {
    let directory = directory();
    let ended = run(directory.path(), &["--listen", "8085"], &[]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("use 127.0.0.1:8085"), "{}", ended.stderr);
}

#[test]
fn an_empty_file_is_not_taken_for_a_new_store() {
    let directory = directory();
    fs::write(directory.path().join("rental.redb"), "").expect("a file");
    refused(&run(directory.path(), &ANY_PORT, &[]), &["rental.redb is empty", "restore it from a backup", "remove it"]);
    assert_eq!(files(directory.path()), ["rental.redb", "stderr"]);
    assert_eq!(fs::metadata(directory.path().join("rental.redb")).expect("a file").len(), 0);
}

#[test]
fn a_healthcheck_tells_whether_the_server_is_alive() {
    let (ours, theirs) = (directory(), directory());
    let mut program = Program::start(ours.path(), &ANY_PORT, &[]);
    let address = program.line_with("listening").rsplit_once("//").expect("an address").1.to_owned();
    let check = || run(theirs.path(), &["--healthcheck"], &[("RENTAL_LISTEN", &address)]);
    let alive = check();
    assert_eq!((alive.code, alive.stderr.as_str()), (Some(0), ""), "{alive:?}");
    assert_eq!(files(theirs.path()), ["stderr"], "it makes nothing");
    program.signal("TERM");
    assert_eq!(program.end().code, Some(0));
    refused(&check(), &["/healthz did not respond", "is the server running?"]);
    refused(&run(theirs.path(), &["--healthcheck", "--listen", "127.0.0.1:0"], &[]), &["--listen", "not 0"]);
    // What accepts connections and never answers is not alive.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("an address").to_string();
    refused(&run(theirs.path(), &["--healthcheck", "--listen", &address], &[]), &["/healthz did not respond"]);
}

#[test]
fn a_demo_takes_no_store_of_the_command_line() {
    let directory = directory();
    let ended = run(directory.path(), &[&ANY_PORT[..], &["--demo", "--store", "redb:mine.redb"]].concat(), &[]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("--demo serves a temporary store"), "{}", ended.stderr);
    assert_eq!(files(directory.path()), ["stderr"], "no store is made");
}
