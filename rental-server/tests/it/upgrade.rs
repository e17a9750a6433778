//! A store of an older version is upgraded before it is served.

use crate::support::{Connection, Server};
use serde_json::Value;
use std::{fs, path::Path, process::Command};

fn fixture(name: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rental-core/tests/fixtures/stores/v2");
    let packed = fs::read(root.join(format!("{name}.lz4"))).expect("a fixture");
    lz4_flex::block::decompress_size_prepended(&packed).expect("it is packed")
}

/// A directory with the store of version 2 and its master key.
fn older() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("store.redb"), fixture("store.redb")).expect("a file");
    fs::write(directory.path().join("store.redb.master-key"), "07".repeat(32)).expect("a file");
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
        let upgraded = server.log().contains("the store has schema version 3 now");
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
    let ran = Command::new(env!("CARGO_BIN_EXE_rental-server"))
        .args(["--listen", "127.0.0.1:0", "--store-upgrade", "never", "--store"])
        .arg(format!("redb:{}", directory.path().join("store.redb").display()))
        .output()
        .expect("it runs");
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(1), "{told}");
    assert!(told.contains("schema version 2") && told.contains("rental-cli store upgrade"), "{told}");
    let server = Server::start_on_file(directory.path(), &[]);
    assert!(server.log().contains("the store has schema version 3 now"), "{}", server.log());
}
