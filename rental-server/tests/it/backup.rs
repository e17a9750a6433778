//! Backups of a running server, over HTTP and with the command line, and what a rotten record does to one.

use crate::support::{ADMIN_TOKEN, Connection, Server, flip};
use rental_core::{
    check,
    store::{
        Record,
        archive::Reader,
        redb::{self, ClosedFile, Redb},
    },
};
use serde_json::{Value, json};
use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

const CACHE: usize = 4 << 20;
const PATH: &str = "/admin/v1/backup";

pub(crate) fn rows(archive: &[u8]) -> Vec<Record> {
    let mut reader = Reader::open(archive).expect("it is an archive");
    let mut rows = Vec::new();
    while let Some(frame) = reader.next_frame().expect("it is whole") {
        rows.extend(frame);
    }
    rows
}

fn dump(path: &Path) -> Vec<Record> {
    let store = Redb::open(path, CACHE).expect("it opens");
    let rows = store.snapshot().rows().expect("it can be read").map(|row| row.expect("a whole row")).collect();
    store.close().expect("it closes");
    rows
}

/// Begins a backup and reads no more than the head of the answer.
fn begun(server: &Server, query: &str) -> Connection {
    let mut connection = Connection::open(&server.address);
    let request = format!("GET {PATH}{query} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n\r\n");
    connection.write(request.as_bytes()).expect("it is sent");
    let mut head = [0; 12];
    connection.stream.read_exact(&mut head).expect("an answer begins");
    assert_eq!(&head, b"HTTP/1.1 200");
    connection
}

/// More than the kernel and the server keep for a client that does not read.
fn much(server: &Server) {
    let organization = server.organization();
    let noise = |n: u32| -> String {
        let mut state = u64::from(n) + 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(33 + (state >> 33) as u8 % 90)
        };
        (0..9_900).map(|_| next()).collect()
    };
    for n in 0..700 {
        let body = json!({"full_name": "Noise", "notes": noise(n).replace(['"', '\\'], "_")});
        // A commit can take longer than a short request time-out while other tests use the disk.
        while organization.post("/v1/customers", &body).status == 503 {}
    }
}

#[test]
fn a_backup_is_an_attachment_with_every_row() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::start_on_file(directory.path(), &[]);
    let made = server.organization().one_of_each();
    let reply = server.admin("GET", PATH, &Value::Null);
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/octet-stream")));
    let name = reply.header("content-disposition").unwrap();
    assert!(name.starts_with("attachment; filename=\"rental-2") && name.ends_with("Z.backup\""), "{name}");
    assert!(reply.header("request-id").is_some());
    let found = rows(&reply.body);
    for (plural, id) in made {
        assert!(found.iter().any(|row| row.key.id().is_some_and(|key| key.to_string() == id)), "{plural}");
    }
    server.signal("TERM");
    assert_eq!(server.exit_code(), Some(0));
    // When keys were last used is noted on the way out, and so is what the server has counted.
    let but_keys = |rows: Vec<Record>| -> Vec<Record> {
        let is_of_server = |row: &Record| row.key.as_bytes()[0] == b'v';
        rows.into_iter().filter(|row| row.key.as_bytes().get(17) != Some(&9) && !is_of_server(row)).collect()
    };
    let store = dump(&directory.path().join("store.redb"));
    assert!(but_keys(store) == but_keys(found), "the backup has other rows than the store");
}

#[test]
fn the_pace_is_gentle_or_full() {
    let server = Server::shared();
    for query in ["?pace=full", "?pace=gentle"] {
        // Another test may be making one.
        let reply = server.admin("GET", &format!("{PATH}{query}"), &Value::Null);
        assert!([200, 409].contains(&reply.status), "{}", reply.text());
    }
    let unknown = server.admin("GET", &format!("{PATH}?speed=1"), &Value::Null).bad_fields();
    assert_eq!(unknown, [("speed".to_owned(), "parameter_unknown".to_owned())]);
    for query in ["?pace=fast", "?pace=", "?pace=full&pace=full"] {
        let bad = server.admin("GET", &format!("{PATH}{query}"), &Value::Null).bad_fields();
        assert_eq!(bad, [("pace".to_owned(), "parameter_invalid".to_owned())], "{query}");
    }
}

#[test]
fn one_backup_runs_at_a_time_and_a_client_that_goes_away_ends_it() {
    let server = Server::start(&[]);
    much(&server);
    let first = begun(&server, "");
    let second = server.admin("GET", PATH, &Value::Null);
    let error = second.error(409, "invalid_request_error", "state_conflict");
    assert!(error["message"].as_str().unwrap().contains("A backup is already running"), "{error}");
    // An export has a place of its own.
    let export = format!("/admin/v1/organizations/{}/export?pace=full", server.organization().id);
    assert_eq!(server.admin("GET", &export, &Value::Null).status, 200);
    drop(first);
    let deadline = Instant::now() + Duration::from_secs(20);
    while server.admin("GET", PATH, &Value::Null).status != 200 {
        assert!(Instant::now() < deadline, "the backup goes on without its client");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(server.log().contains("a backup ended early"), "{}", server.log());
}

/// The file grows by everything that is written while a snapshot of it is kept.
#[test]
fn a_client_that_reads_nothing_of_a_backup_keeps_no_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start_on_file(directory.path(), &[]);
    much(&server);
    let organization = server.organization();
    let customer = organization.post("/v1/customers", &json!({"full_name": "Often changed"})).id();
    let change = |times: u32| {
        let length = || fs::metadata(directory.path().join("store.redb")).unwrap().len();
        let before = length();
        for n in 0..times {
            organization.patch(&format!("/v1/customers/{customer}"), &json!({"notes": format!("{n}")})).ok();
        }
        length() - before
    };
    change(100);
    let slow = begun(&server, "?pace=full");
    // Until it is read from the store, whatever its client does.
    std::thread::sleep(Duration::from_secs(3));
    let grown = change(1000);
    assert!(grown < 8 << 20, "{grown} bytes");
    drop(slow);
    let log = server.log();
    assert!(!log.contains("a backup ended early"), "it ended before the end of the test: {log}");
}

#[test]
fn a_backup_may_take_longer_than_a_request_and_than_a_silent_connection() {
    let server = Server::start(&["--request-timeout", "5s"]);
    much(&server);
    let mut slow = begun(&server, "?pace=full");
    // Beyond the request time-out and the 30 s after which a connection is closed that takes nothing of a response.
    std::thread::sleep(Duration::from_secs(45));
    let mut rest = Vec::new();
    slow.stream.get_ref().set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut part = [0; 65_536];
    while !rest.ends_with(b"\r\n0\r\n\r\n") {
        let count = slow.stream.read(&mut part).expect("the answer goes on");
        assert!(count > 0, "the answer broke off after {} bytes", rest.len());
        rest.extend_from_slice(&part[..count]);
    }
    assert!(rest.len() > 5_000_000, "{}", rest.len());
}

#[test]
fn a_rotten_record_is_a_500_that_names_it_in_the_log_and_nothing_else_suffers() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::start_on_file(directory.path(), &[]);
    let organization = server.organization();
    let rotten = organization.vehicle(json!({"color": "the-color-that-rots"}));
    let sound = organization.vehicle(json!({}));
    let [read, write] = [organization.read.clone(), organization.write.clone()];
    let id = organization.id.clone();
    drop(organization);
    server.signal("TERM");
    assert_eq!(server.exit_code(), Some(0));
    let path = directory.path().join("store.redb");
    // Wherever it lies: in the record, in its events, and in pages that are out of use.
    flip(&path, "the-color-that-rots");
    let server = Server::start_on_file(directory.path(), &[]).expecting_errors("damaged");
    let server = std::mem::ManuallyDrop::new(server);
    let organization = std::mem::ManuallyDrop::new(crate::support::Organization { server: &server, id, read, write });
    organization.get(&format!("/v1/vehicles/{rotten}")).error(500, "api_error", "data_damaged");
    organization.patch(&format!("/v1/vehicles/{rotten}"), &json!({"color": "red"})).error(
        500,
        "api_error",
        "data_damaged",
    );
    organization.get(&format!("/v1/vehicles/{sound}")).ok();
    organization.patch(&format!("/v1/vehicles/{sound}"), &json!({"color": "red"})).ok();
    assert_eq!(Connection::open(&server.address).send("GET", "/readyz", &[], b"").status, 200);
    let log = server.log();
    assert!(log.contains(&format!("vehicle {rotten} of organization {}", organization.id)), "{log}");
    // A backup of it would be a lie.
    let mut broken = begun(&server, "?pace=full");
    let mut rest = Vec::new();
    let _ = broken.stream.read_to_end(&mut rest);
    assert!(!rest.ends_with(b"\r\n0\r\n\r\n"), "the backup looks whole");
    assert!(server.log().contains("a backup failed"), "{}", server.log());
    server.signal("KILL");
    server.wait_until_gone();
    let report = check::of_file(&ClosedFile::open(&path, CACHE).unwrap(), &mut |_| {});
    assert!(report.listed.iter().any(|problem| problem.place.contains(&rotten)), "{:?}", report.listed);
}

/// The store of a server that did everything a server does has nothing wrong with it.
#[test]
fn a_store_with_a_bit_of_everything_is_sound() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::start_on_file(directory.path(), &["--webhook-allow-private"]);
    let organization = server.organization();
    let endpoint = server
        .admin(
            "POST",
            "/admin/v1/webhook_endpoints",
            &json!({"organization_id": organization.id, "url": "http://127.0.0.1:9/"}),
        )
        .id();
    organization.one_of_each();
    let vehicle = organization.vehicle(json!({}));
    let dates = json!({"start_date": "2027-06-01", "end_date": "2027-06-05", "status": "APPROVED"});
    let rental = organization.rental(&vehicle, dates);
    organization.patch(&format!("/v1/rentals/{rental}"), &json!({"status": "ACTIVE"})).ok();
    organization.call_with("POST", "/v1/leads", &[("Idempotency-Key", "k")], &json!({})).ok();
    let keys = server.admin("GET", "/admin/v1/api_keys", &Value::Null).ok();
    let key = keys["data"][0]["id"].as_str().unwrap().to_owned();
    server.admin("POST", &format!("/admin/v1/api_keys/{key}/rotate"), &json!({})).ok();
    server.admin("POST", &format!("/admin/v1/webhook_endpoints/{endpoint}/rotate_secret"), &json!({})).ok();
    std::thread::sleep(Duration::from_millis(300));
    drop(organization);
    server.signal("TERM");
    assert_eq!(server.exit_code(), Some(0));
    let path = directory.path().join("store.redb");
    let report = check::of_file(&ClosedFile::open(&path, CACHE).unwrap(), &mut |_| {});
    assert_eq!(report.listed, []);
    let tags: std::collections::BTreeSet<u8> = dump(&path).iter().map(|row| row.key.as_bytes()[0]).collect();
    let tags: Vec<char> = tags.into_iter().map(char::from).collect();
    assert_eq!(tags.iter().filter(|tag| **tag != 'o').collect::<String>(), "!acdghimnqrsvx");
}

/// Ends the load, also when the test fails.
struct Ends<'s>(&'s AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The command line, if it is built.
fn cli() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_rental-server")).parent().expect("a folder").join("rental-cli");
    if !program.exists() {
        assert!(std::env::var_os("RENTAL_REQUIRE_ALL").is_none(), "{} is not there", program.display());
        println!("skipped: {} is not there", program.display());
        return None;
    }
    Some(program)
}

#[test]
fn backups_under_load_restore_to_stores_that_are_sound() {
    let Some(program) = cli() else { return };
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&[]);
    let organization = server.organization();
    let (stop, vehicle) = (AtomicBool::new(false), organization.vehicle(json!({"daily_rate": 10})));
    std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut made = 0;
            while !stop.load(Ordering::Relaxed) {
                let day = 1 + made % 28;
                let dates = json!({"start_date": format!("{}-02-{day:02}", 2000 + made / 28), "end_date": format!("{}-02-{day:02}", 2000 + made / 28), "status": "APPROVED"});
                organization.rental(&vehicle, dates);
                made += 1;
            }
            made
        });
        let run = |args: &[&str]| {
            let ran = Command::new(&program)
                .args(args)
                .env("RENTAL_BASE_URL", format!("http://{}", server.address))
                .env("RENTAL_ADMIN_TOKEN", ADMIN_TOKEN)
                .output()
                .unwrap();
            assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
        };
        let ends = Ends(&stop);
        let mut before = 0;
        for round in 0..4 {
            std::thread::sleep(Duration::from_millis(150));
            let (file, to) =
                (directory.path().join(format!("{round}.backup")), directory.path().join(format!("{round}.redb")));
            let (file, url) = (file.to_str().unwrap(), format!("redb:{}", to.display()));
            run(&["store", "backup", "--to", file]);
            run(&["store", "restore", file, "--to", &url]);
            run(&["store", "check", &url]);
            let expected = rows(&fs::read(file).unwrap());
            assert!(dump(&to) == expected, "round {round}");
            assert!(expected.len() > before, "there was no load");
            before = expected.len();
        }
        drop(ends);
        assert!(load.join().unwrap() > 20);
    });
}

#[test]
fn a_server_goes_on_with_a_restored_store() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&[]);
    let organization = server.organization();
    let vehicle = organization.vehicle(json!({"color": "blue"}));
    let archive = server.admin("GET", PATH, &Value::Null).body;
    let path = directory.path().join("store.redb");
    redb::restore(&path, CACHE, &mut Reader::open(archive.as_slice()).unwrap(), &mut |_| {}).expect("it is restored");
    let restored = Server::start_on_file(directory.path(), &[]);
    let same = crate::support::Organization {
        server: &restored,
        id: organization.id.clone(),
        read: organization.read.clone(),
        write: organization.write.clone(),
    };
    let path = format!("/v1/vehicles/{vehicle}");
    assert_eq!(same.get(&path).body, organization.get(&path).body);
    same.patch(&path, &json!({"color": "red"})).ok();
}
