//! A store of an older version is upgraded before it is served.

use crate::support::{Connection, Reply, Server, SmallDisk};
use rental_core::{
    rows::{Marker, Row, Tag},
    store::{Batch, Commit, Prior, Record, SCHEMA_VERSION, Store, Versioned, Write, redb::Redb},
    upgrade::{self, State, Step, Upgrade},
};
use serde_json::Value;
use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
};

const CACHE: usize = 64 << 20;

fn fixture(name: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rental-core/tests/fixtures/stores/v12");
    let packed = fs::read(root.join(format!("{name}.lz4"))).expect("a fixture");
    lz4_flex::block::decompress_size_prepended(&packed).expect("it is packed")
}

/// A directory with the store of version 12 and its master key.
pub(crate) fn older() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("store.redb"), fixture("store.redb")).expect("a file");
    fs::write(directory.path().join("store.redb.master-key"), "07".repeat(32)).expect("a file");
    directory
}

/// The same without index entries and holds, which the upgrade writes.
fn with_much_to_write() -> tempfile::TempDir {
    let directory = older();
    let store = open(directory.path());
    let derived = rows_of(&store).into_iter().filter(|row| matches!(row.key.as_bytes()[0], b'h' | b'i'));
    let writes = derived.map(|row| Write::Delete(row.key)).collect();
    wait(store.commit(Batch { checks: Vec::new(), writes })).expect("it is written");
    store.close().expect("it closes");
    directory
}

fn get(address: &str, path: &str, key: &str) -> Value {
    let authorization = format!("Bearer {key}");
    Connection::open(address).send("GET", path, &[("Authorization", &authorization)], b"").ok()
}

#[test]
fn a_server_upgrades_its_store_and_answers_as_before() {
    let directory = older();
    let answers: Value = serde_json::from_slice(&fixture("answers.json")).expect("JSON");
    let organization = &answers["organizations"][0];
    let key = organization["key"].as_str().expect("a key");
    for start in 0..2 {
        let server = Server::start_on_file(directory.path(), &[]);
        let upgraded = server.log().contains(&format!("the store has schema version {SCHEMA_VERSION} now"));
        assert_eq!(upgraded, start == 0, "{}", server.log());
        for (path, before) in organization["objects"].as_object().expect("objects").iter().take(60) {
            let before: Value = serde_json::from_str(before["body"].as_str().expect("a body")).expect("JSON");
            assert_eq!(get(&server.address, path, key)["id"], before["id"], "{path}");
        }
        let vehicles = get(&server.address, "/v1/vehicles", key);
        let vehicle = vehicles["data"].as_array().expect("a list").last().expect("a vehicle")["id"].clone();
        let path = format!("/v1/rentals?vehicle={}", vehicle.as_str().expect("an id"));
        let rentals = get(&server.address, &path, key);
        assert!(rentals["data"].as_array().is_some_and(|rentals| !rentals.is_empty()), "{rentals}");
    }
}

#[test]
fn a_server_that_must_not_upgrade_says_what_to_do() {
    let directory = older();
    let bytes = || fs::read(directory.path().join("store.redb")).expect("the file can be read");
    // A file that was not closed is recovered first, as at every start.
    open(directory.path()).close().expect("it closes");
    let before = bytes();
    let ran = Command::new(env!("CARGO_BIN_EXE_rental-server"))
        .args(["--listen", "127.0.0.1:0", "--store-upgrade", "never", "--store"])
        .arg(format!("redb:{}", directory.path().join("store.redb").display()))
        .output()
        .expect("it runs");
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(1), "{told}");
    assert!(told.contains("schema version 12") && told.contains("rental-cli store upgrade"), "{told}");
    assert!(told.contains("--store-upgrade never"), "{told}");
    assert!(bytes() == before, "a refused file is not changed");
    let server = Server::start_on_file(directory.path(), &[]);
    assert!(server.log().contains(&format!("the store has schema version {SCHEMA_VERSION} now")), "{}", server.log());
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts").block_on(future)
}

fn open(directory: &Path) -> Redb {
    Redb::open_any_version(&directory.join("store.redb"), CACHE).expect("the store opens")
}

/// All rows but those that mean nothing without the server.
fn rows(directory: &Path) -> Vec<Record> {
    let store = open(directory);
    let rows = store.snapshot().rows().expect("rows").map(|row| row.expect("a row"));
    rows.filter(|row| !rental_core::rows::key::is_of_servers(&row.key)).collect()
}

/// Adds so many copies of a rental, without the rows that are derived of them: the upgrade writes those.
fn add_rentals(directory: &Path, count: u32) {
    let store = open(directory);
    let of_rental = |row: &Record| matches!(Row::decode(&row.key), Some(Row::Record { resource: 3, .. }));
    let rental = rows_of(&store).into_iter().find(of_rental).expect("a rental");
    let Some(Row::Record { organization, resource, id }) = Row::decode(&rental.key) else { panic!("no record") };
    let text = String::from_utf8(rental.value.to_vec()).expect("text");
    let mut batch = Batch::default();
    for number in 1..=count {
        let copy = uuid::Uuid::from_u128(id.as_u128() ^ u128::from(number));
        let value = text.replace(&id.to_string(), &copy.to_string()).into();
        let key = Row::Record { organization, resource, id: copy }.encode();
        batch.writes.push(Write::Put(key, 1, value, Prior::New));
        if number % 1000 == 0 || number == count {
            assert_eq!(wait(store.commit(std::mem::take(&mut batch))), Ok(Commit::Applied));
        }
    }
    store.close().expect("it closes");
}

fn rows_of(store: &Redb) -> Vec<Record> {
    store.snapshot().rows().expect("rows").map(|row| row.expect("a row")).collect()
}

/// A server that has not said where it listens, because it upgrades its store first.
struct Upgrading {
    server: Child,
    address: String,
}

impl Upgrading {
    fn start(directory: &Path) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("an address");
        let address = free.local_addr().expect("an address").to_string();
        drop(free);
        let server = Command::new(env!("CARGO_BIN_EXE_rental-server"))
            .args(["--listen", &address, "--store", &format!("redb:{}", directory.join("store.redb").display())])
            .env("RENTAL_ADMIN_TOKEN", crate::support::ADMIN_TOKEN)
            .stdout(Stdio::null())
            .stderr(fs::File::create(directory.join("log")).expect("a log file"))
            .spawn()
            .expect("it starts");
        Self { server, address }
    }

    /// The answer to a GET, as soon as the server takes connections.
    fn get(&mut self, path: &str) -> Reply {
        loop {
            assert_eq!(self.server.try_wait().expect("it can be asked"), None, "the server ended");
            // A connection that comes at the moment when the upgrade ends may be closed.
            let asked = Connection::try_open(&self.address)
                .and_then(|mut to| to.try_send("GET", path, &[("X-Request-Id", "of-the-client")], b""));
            if let Ok(reply) = asked {
                assert_eq!(reply.header("x-request-id"), Some("of-the-client"), "{}", reply.text());
                return reply;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    /// How far the upgrade is once it has begun; `None` when it was faster than this question.
    fn progress(&mut self) -> Option<Value> {
        loop {
            let ready = self.get("/readyz");
            if ready.status == 200 {
                return None;
            }
            assert_eq!((ready.status, ready.header("retry-after")), (503, Some("5")), "{}", ready.text());
            let told = ready.json();
            assert_eq!(
                (&told["status"], &told["from"], &told["to"]),
                (&"upgrading".into(), &12.into(), &SCHEMA_VERSION.into())
            );
            let phases = ["checking", "counting", "upgrading"];
            assert!(told["phase"].as_str().is_some_and(|phase| phases.contains(&phase)), "{told}");
            if told["phase"] == "upgrading" {
                return Some(told);
            }
        }
    }
}

impl Drop for Upgrading {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Calls `look` with a server in the middle of an upgrade. How fast that is depends on the machine: a store that is upgraded
/// before the first question is followed by a larger one.
fn in_the_middle(look: impl Fn(&Path, &mut Upgrading, &Value) -> bool) {
    for rentals in [3_000, 20_000, 120_000] {
        let directory = older();
        add_rentals(directory.path(), rentals);
        fs::copy(directory.path().join("store.redb"), directory.path().join("before.redb")).expect("a copy");
        let mut server = Upgrading::start(directory.path());
        assert_eq!(server.get("/healthz").status, 200);
        if let Some(told) = server.progress()
            && look(directory.path(), &mut server, &told)
        {
            return;
        }
    }
    panic!("no upgrade was slow enough to be seen");
}

#[test]
fn a_server_is_alive_and_not_ready_while_it_upgrades() {
    in_the_middle(|_, server, told| {
        let count = |name: &str| told[name].as_u64().expect("a count");
        assert!(count("records") > 3_000 && count("records_done") <= count("records"), "{told}");
        assert!(count("rows_counted") > count("records"), "{told}");
        let asked = server.get("/v1/vehicles");
        if asked.status != 503 {
            return false;
        }
        assert_eq!((asked.header("retry-after"), asked.header("cache-control")), (Some("5"), Some("no-store")));
        assert!(
            asked.json()["error"]["message"].as_str().is_some_and(|text| text.contains("upgrade")),
            "{}",
            asked.text()
        );
        while server.get("/readyz").status != 200 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(server.get("/healthz").status, 200);
        assert_eq!(server.get("/v1/vehicles").status, 401);
        true
    });
}

#[test]
fn a_body_that_nobody_reads_does_not_reset_the_response_while_a_store_is_upgraded() {
    let body = vec![b' '; 1 << 20];
    let head = format!("POST /v1/vehicles HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
    in_the_middle(|_, server, _| {
        for _ in 0..20 {
            let reply = Connection::try_open(&server.address).and_then(|mut to| {
                to.write(head.as_bytes())?;
                to.write(&body)?;
                to.read_reply(false)
            });
            match reply {
                Ok(reply) if reply.status == 503 => {}
                Ok(_) => return false,
                // At the moment when the upgrade ends, connections may be closed.
                Err(error) => {
                    assert_eq!(server.get("/readyz").status, 200, "{error} during the upgrade");
                    return false;
                }
            }
        }
        true
    });
}

#[test]
fn an_upgrade_that_is_killed_goes_on_at_the_next_start() {
    in_the_middle(|directory, server, _| {
        server.server.kill().expect("kill -9");
        server.server.wait().expect("it ends");
        let store = open(directory);
        let State::Unfinished(marker) = wait(upgrade::state(&store)).expect("a state") else { return false };
        assert_eq!((marker.from, marker.to), (12, SCHEMA_VERSION));
        drop(store);
        let copy = older();
        fs::copy(directory.join("before.redb"), copy.path().join("store.redb")).expect("a copy");
        let restarted = Server::start_on_file(directory, &[]);
        assert!(
            restarted.log().contains(&format!("the store has schema version {SCHEMA_VERSION} now")),
            "{}",
            restarted.log()
        );
        restarted.signal("TERM");
        restarted.wait_until_gone();
        // The same as without the kill, and whole.
        // The restarted server sends webhooks meanwhile, which changes their rows.
        let fleet = |row: &Record| match Row::decode(&row.key) {
            Some(Row::Record { resource, .. } | Row::IndexEntry { resource, .. }) => (1..=6).contains(&resource),
            Some(Row::Hold { .. } | Row::Identity { .. } | Row::Calendar { .. }) => true,
            _ => false,
        };
        let (mut found, mut expected) = (rows(directory), finished(copy.path()));
        assert!(!found.iter().any(|row| row.key == Row::Marker(Marker::Upgrade).encode()));
        found.retain(fleet);
        expected.retain(fleet);
        assert!(found == expected, "{} and {} rows", found.len(), expected.len());
        let stamped = |row: &&Record| row.key.as_bytes()[0] == Tag::Record as u8 && row.key.as_bytes()[17] == 3;
        assert!(found.iter().filter(stamped).all(|row| row.value.windows(11).any(|part| part == b"\"time_zone\"")));
        true
    });
}

/// All rows after the upgrade, by the library.
fn finished(directory: &Path) -> Vec<Record> {
    let store = open(directory);
    let mut upgrade = wait(Upgrade::begin(&store)).expect("it begins").expect("it is older");
    while wait(upgrade.step()).expect("a step") != Step::Done {}
    drop(upgrade);
    assert_eq!(wait(store.version()), Ok(SCHEMA_VERSION));
    assert_eq!(wait(store.get(&[Row::Marker(Marker::Upgrade).encode()])), Ok(vec![None]));
    drop(store);
    rows(directory)
}

#[test]
fn a_disk_too_small_for_the_upgrade_is_noticed_before_it_begins() {
    let Some(disk) = SmallDisk::mount("12m") else { return };
    let store = disk.path().join("store.redb");
    fs::write(&store, fixture("store.redb")).expect("a file");
    let before = rows(disk.path());
    let ran = Command::new(env!("CARGO_BIN_EXE_rental-server"))
        .args(["--listen", "127.0.0.1:0", "--store", &format!("redb:{}", store.display())])
        .output()
        .expect("it runs");
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(1), "{told}");
    assert!(told.contains("too small for the upgrade") && told.contains("nothing was changed"), "{told}");
    assert_eq!(wait(open(disk.path()).version()), Ok(12));
    assert!(rows(disk.path()) == before);
}

/// Starts a server on a damaged file, which it refuses.
fn is_refused(store: &Path) {
    let state = || wait(upgrade::state(&open(store.parent().expect("a folder")))).expect("a state");
    let before = state();
    // A server that serves it does not end by itself.
    let ran = Command::new("timeout")
        .args(["60", env!("CARGO_BIN_EXE_rental-server")])
        .args(["--listen", "127.0.0.1:0", "--store", &format!("redb:{}", store.display())])
        .output()
        .expect("it runs");
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(1), "{told}");
    assert!(told.contains("restore it from a backup") && told.contains("nothing was changed"), "{told}");
    assert_eq!(state(), before);
}

/// The rest of the upgrade would free the nights of the rentals that are lost.
#[test]
fn half_an_upgrade_with_a_damaged_page_is_refused() {
    const PAGE: usize = 4096;
    let directory = with_much_to_write();
    let store = open(directory.path());
    let mut upgrade = wait(Upgrade::begin(&store)).expect("it begins").expect("it is older").in_batches_of(30);
    assert_eq!(wait(upgrade.step()), Ok(Step::Continue));
    drop(upgrade);
    let is_rental = |row: &Record| matches!(Row::decode(&row.key), Some(Row::Record { resource: 3, .. }));
    let rental = rows_of(&store).into_iter().rfind(is_rental).expect("a rental");
    store.close().expect("it closes");
    let path = directory.path().join("store.redb");
    let mut bytes = fs::read(&path).expect("a file");
    let places = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&rental.value)).collect::<Vec<_>>();
    // The list of lengths of each page that has the rental.
    places.iter().for_each(|at| bytes[at / PAGE * PAGE + 4] ^= 0x5F);
    fs::write(&path, bytes).expect("a file");
    is_refused(&path);
}

#[test]
fn a_file_with_a_damaged_page_is_not_upgraded() {
    let directory = older();
    let store = directory.path().join("store.redb");
    open(directory.path()).close().expect("it closes");
    let entries: Vec<Record> = rows(directory.path()).into_iter().filter(|row| row.key.as_bytes()[0] == b'i').collect();
    let key = entries[entries.len() / 2].key.as_bytes();
    let mut bytes = fs::read(&store).expect("a file");
    let at = (0..bytes.len() - key.len()).rfind(|at| bytes[*at..].starts_with(key)).expect("the file has it");
    bytes[at + 18] ^= 0x5f;
    fs::write(&store, bytes).expect("a file");
    is_refused(&store);
}
