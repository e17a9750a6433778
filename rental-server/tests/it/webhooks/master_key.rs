//! The master key over the life of a store: a lost one is noticed at the start, a replaced one leaves a way back, and a
//! rotation goes on whatever is killed (decisions, Second round).

use super::{Hook, PRIVATE, act, hook, one_event, quiet_while, signed, state, wait_for};
use crate::support::{
    Organization, Server, database, ended,
    receiver::{Receiver, Seen},
};
use rental_core::{
    rows::{Marker, Row},
    store::{Batch, Store as _, Write, redb::Redb},
};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The key file beside the store of a directory.
fn key_file(directory: &Path) -> PathBuf {
    directory.join("store.redb.master-key")
}

fn start(directory: &Path) -> Server {
    Server::start_on_file(directory, &[PRIVATE])
}

fn stop(server: Server) {
    server.signal("TERM");
    server.wait_until_gone();
}

/// What a server says that does not start on the store in `directory`.
#[track_caller]
fn refusal(directory: &Path, flags: &[&str]) -> String {
    let store = format!("redb:{}", directory.join("store.redb").display());
    refusal_on(&store, flags)
}

#[track_caller]
fn refusal_on(store: &str, flags: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rental-server"));
    command.args(["--listen", "127.0.0.1:0"]).args(flags);
    command.env("RENTAL_STORE", store).env("RENTAL_ADMIN_TOKEN", crate::support::ADMIN_TOKEN);
    let ran = ended(&mut command);
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(1), "{told}");
    let lines: Vec<&str> = told.lines().filter(|line| line.starts_with("rental-server: ")).collect();
    assert_eq!(lines.len(), 1, "{told}");
    lines[0].to_owned()
}

fn again<'s>(server: &'s Server, old: &Organization) -> Organization<'s> {
    Organization { server, id: old.id.clone(), read: old.read.clone(), write: old.write.clone() }
}

/// Makes an event and gives the request that tells of it.
fn next(organization: &Organization, receiver: &Receiver) -> Seen {
    let before = receiver.count();
    one_event(organization);
    receiver.wait_for(before + 1).remove(before)
}

/// A store with one webhook endpoint whose server has been stopped: the ids of the organization, and the endpoint.
fn with_one_endpoint<'s>(directory: &Path, receiver: &Receiver, nobody: &'s Server) -> (Organization<'s>, Hook) {
    let server = start(directory);
    let organization = server.organization();
    let hook = hook(&organization, receiver);
    let kept = again(nobody, &organization);
    drop(organization);
    stop(server);
    (kept, hook)
}

fn master_key(server: &Server) -> Value {
    server.admin("GET", "/admin/v1/master_key", &Value::Null).ok()
}

fn rotate(server: &Server) -> crate::support::Reply {
    server.admin("POST", "/admin/v1/master_key/rotate", &Value::Null)
}

/// Waits until a rotation has ended, and gives the state after it.
fn rotated(server: &Server) -> Value {
    let look = || Some(master_key(server)).filter(|key| key["former_fingerprint"].is_null());
    wait_for("the end of the rotation", look, || master_key(server).to_string())
}

#[test]
fn a_store_is_refused_without_its_master_key_and_served_again_with_it() {
    let (directory, receiver) = (tempfile::tempdir().expect("a directory"), Receiver::start());
    let (before, hook) = with_one_endpoint(directory.path(), &receiver, super::usual());
    let file = key_file(directory.path());
    let key = fs::read_to_string(&file).expect("a key");
    fs::remove_file(&file).expect("a file");
    let told = refusal(directory.path(), &[]);
    assert!(told.contains("master-key is missing") && told.contains("--replace-master-key"), "{told}");
    assert!(!file.exists(), "no other key is made");
    fs::write(&file, "ab".repeat(32)).expect("a file");
    let told = refusal(directory.path(), &[]);
    assert!(told.contains("does not hold it") && told.contains("--replace-master-key"), "{told}");
    assert!(!told.contains("abab") && !told.contains(key.trim()), "no key is told");
    fs::write(&file, &key).expect("a file");
    let server = start(directory.path());
    let seen = next(&again(&server, &before), &receiver);
    assert_eq!(seen.header("Service-Signature"), signed(&seen, &[&hook.secret]));
}

#[test]
fn a_file_without_webhook_secrets_takes_any_key_and_a_database_only_its_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = start(directory.path());
    let before = master_key(&first)["fingerprint"].clone();
    stop(first);
    fs::remove_file(key_file(directory.path())).expect("a file");
    let second = master_key(&start(directory.path()));
    assert!(second["fingerprint"] != before && second["fingerprint"] == second["newest_fingerprint"], "{second}");

    let Some(url) = database() else { return };
    stop(Server::start_on(&url, &[]));
    let other = directory.path().join("other");
    fs::write(&other, "ab".repeat(32)).expect("a file");
    assert!(refusal_on(&url, &["--master-key-file", &other.to_string_lossy()]).contains("does not hold it"));
}

#[test]
fn after_a_replaced_key_a_rotation_with_the_default_overlap_brings_each_endpoint_back() {
    let (directory, receiver) = (tempfile::tempdir().expect("a directory"), Receiver::start());
    let (before, hook) = with_one_endpoint(directory.path(), &receiver, super::usual());
    fs::remove_file(key_file(directory.path())).expect("a file");
    let server = Server::start_on_file(directory.path(), &[PRIVATE, "--replace-master-key"]);
    let log = server.log();
    assert!(log.contains("the master key was replaced") && log.contains(&hook.id), "{log}");
    assert!(log.contains("unreadable=1"), "{log}");
    let key = master_key(&server);
    assert_eq!((&key["unreadable"], &key["unreadable_ids"]), (&json!(1), &json!([hook.id])), "{key}");
    let organization = again(&server, &before);
    one_event(&organization);
    assert_eq!(act(&server, &hook, "test", &Value::Null).status, 409);
    quiet_while();
    assert_eq!((receiver.count(), &state(&server, &hook)["status"]), (0, &json!("enabled")));
    let new = act(&server, &hook, "rotate_secret", &Value::Null).ok()["secret"].as_str().expect("a secret").to_owned();
    let waited = receiver.wait_for(1).remove(0);
    assert_eq!(waited.header("Service-Signature"), signed(&waited, &[&new]), "the lost secret signs no more");
    assert_eq!(master_key(&server)["unreadable"], 0);
    // The flag is needed once.
    drop(organization);
    stop(server);
    let server = start(directory.path());
    let seen = next(&again(&server, &before), &receiver);
    assert_eq!(seen.header("Service-Signature"), signed(&seen, &[&new]));
}

/// A directory with a store that has lost the fingerprint of its key, and this key in the file beside it.
fn without_fingerprint(key: &str) -> tempfile::TempDir {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rental-core/tests/fixtures/stores/v12/store.redb.lz4");
    let packed = fs::read(root).expect("a fixture");
    let directory = tempfile::tempdir().expect("a directory");
    let store = lz4_flex::block::decompress_size_prepended(&packed).expect("it is packed");
    let path = directory.path().join("store.redb");
    fs::write(&path, store).expect("a file");
    let store = Redb::open_any_version(&path, 8 << 20).expect("it opens");
    let writes = vec![Write::Delete(Row::Marker(Marker::MasterKey).encode())];
    let committed = store.commit(Batch { checks: Vec::new(), writes });
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(committed).expect("it commits");
    store.close().expect("it closes");
    fs::write(key_file(directory.path()), key).expect("a file");
    directory
}

#[test]
fn a_store_without_fingerprint_takes_the_key_that_opens_its_secrets_and_refuses_any_other() {
    let [right, wrong] = ["07", "08"].map(|pair| pair.repeat(32));
    let directory = without_fingerprint(&wrong);
    let told = refusal(directory.path(), &[]);
    assert!(told.contains("does not open the secrets of") && told.contains("--replace-master-key"), "{told}");
    fs::remove_file(key_file(directory.path())).expect("a file");
    assert!(refusal(directory.path(), &[]).contains("master-key is missing"));
    fs::write(key_file(directory.path()), format!("{right}\n{wrong}\n")).expect("a file");
    let server = start(directory.path());
    // The newest key of the file becomes that of the store, and all secrets are sealed with it.
    let key = rotated(&server);
    assert_eq!((&key["unreadable"], &key["fingerprint"]), (&json!(0), &key["newest_fingerprint"]), "{key}");
    wait_for("the end of the task", || server.log().contains("a long task is finished").then_some(()), || server.log());
    stop(server);
    fs::write(key_file(directory.path()), wrong).expect("a file");
    let key = master_key(&start(directory.path()));
    assert!(key["unreadable"] == 0 && key["webhook_endpoints"].as_u64() >= Some(5), "{key}");
}

/// Everything in the directory of a store except the file of keys.
fn contents(directory: &Path) -> Vec<u8> {
    let entries = fs::read_dir(directory).expect("a directory").flatten();
    let files = entries.filter(|entry| entry.path() != key_file(directory));
    files.flat_map(|entry| fs::read(entry.path()).expect("a file")).collect()
}

#[test]
fn a_rotation_survives_kills_and_every_endpoint_still_signs_with_its_secret() {
    let (directory, receiver) = (tempfile::tempdir().expect("a directory"), Receiver::start());
    let (before, hook) = with_one_endpoint(directory.path(), &receiver, super::usual());
    let mut server = start(directory.path());
    // More than two steps of the task.
    for _ in 0..12 {
        let organization = server.organization();
        (0..45).for_each(|_| drop(super::hook_at(&organization, "https://example.com/", json!({}))));
    }
    let former = master_key(&server)["fingerprint"].clone();
    let begun = rotate(&server).ok();
    assert_eq!(begun["former_fingerprint"], former, "{begun}");
    for _ in 0..4 {
        server.signal("KILL");
        server.wait_until_gone();
        drop(server);
        server = start(directory.path());
    }
    let key = rotated(&server);
    assert_eq!((&key["fingerprint"], &key["unreadable"]), (&begun["fingerprint"], &json!(0)), "{key}");
    assert_eq!(key["webhook_endpoints"], 541);
    let seen = next(&again(&server, &before), &receiver);
    assert_eq!(seen.header("Service-Signature"), signed(&seen, &[&hook.secret]));
    stop(server);
    // The former key is not needed any more.
    let text = fs::read_to_string(key_file(directory.path())).expect("a file");
    let keys: Vec<&str> = text.lines().collect();
    assert_eq!(keys.len(), 2);
    for key in &keys {
        let bytes = hex::decode(key).expect("a key");
        let all = contents(directory.path());
        assert!(!all.windows(key.len()).any(|window| window == key.as_bytes()), "a key outside of its file");
        assert!(!all.windows(bytes.len()).any(|window| window == bytes), "the bytes of a key outside of its file");
    }
    fs::write(key_file(directory.path()), keys[0]).expect("a file");
    assert!(refusal(directory.path(), &[]).contains("does not hold it"));
    fs::write(key_file(directory.path()), keys[1]).expect("a file");
    let server = start(directory.path());
    assert_eq!(master_key(&server)["unreadable"], 0);
    let seen = next(&again(&server, &before), &receiver);
    assert_eq!(seen.header("Service-Signature"), signed(&seen, &[&hook.secret]));
}

#[test]
fn a_rotation_that_is_repeated_begins_once_and_is_audited() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(directory.path());
    let token = format!("Bearer {}", server.admin_token);
    let send = || {
        let headers = [("Authorization", token.as_str()), ("Idempotency-Key", "rotation-1")];
        crate::support::Connection::open(&server.address).send("POST", "/admin/v1/master_key/rotate", &headers, b"")
    };
    let (first, replayed) = (send(), send());
    assert_eq!((first.ok(), replayed.header("idempotent-replayed")), (replayed.ok(), Some("true")));
    assert_eq!(fs::read_to_string(key_file(directory.path())).expect("a file").lines().count(), 2);
    rotated(&server);
    let audit = server.admin("GET", "/admin/v1/audit_entries?action=rotateMasterKey", &Value::Null).ok();
    assert_eq!(audit["data"].as_array().map(Vec::len), Some(1), "{audit}");
    rotate(&server).ok();
    rotated(&server);
    assert_eq!(fs::read_to_string(key_file(directory.path())).expect("a file").lines().count(), 3);
    assert_eq!(server.admin("POST", "/admin/v1/master_key/rotate", &json!({"key": "00"})).status, 400);
}

#[test]
fn a_key_that_was_added_by_hand_is_the_one_to_rotate_to() {
    let (directory, receiver) = (tempfile::tempdir().expect("a directory"), Receiver::start());
    let (before, hook) = with_one_endpoint(directory.path(), &receiver, super::usual());
    let server = start(directory.path());
    let file = key_file(directory.path());
    let text = fs::read_to_string(&file).expect("a file");
    fs::write(&file, format!("{text}{}", "not hexadecimal\n")).expect("a file");
    let refused = rotate(&server);
    assert_eq!(refused.status, 409, "{}", refused.text());
    fs::write(&file, format!("{text}{}\n", "3c".repeat(32))).expect("a file");
    let begun = rotate(&server).ok();
    assert_eq!(begun["fingerprint"], begun["newest_fingerprint"]);
    rotated(&server);
    stop(server);
    fs::write(&file, "3c".repeat(32)).expect("a file");
    let server = start(directory.path());
    let seen = next(&again(&server, &before), &receiver);
    assert_eq!(seen.header("Service-Signature"), signed(&seen, &[&hook.secret]));
}

/// Servers of one database, each with a key file of its own that begins with the same key.
#[test]
fn servers_of_one_database_rotate_when_all_have_the_new_key_and_refuse_one_with_another() {
    let Some(url) = database() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let [old, new, other] = ["5a", "6b", "7c"].map(|pair| format!("{}\n", pair.repeat(32)));
    let files = ["one", "two"].map(|name| directory.path().join(name));
    let start = |file: &Path| Server::start_on(&url, &[PRIVATE, "--master-key-file", &file.to_string_lossy()]);
    let [first, second] = files.each_ref().map(|file| {
        fs::write(file, &old).expect("a file");
        start(file)
    });
    let (organization, receiver) = (first.organization(), Receiver::start());
    let hook = hook(&organization, &receiver);
    let elsewhere = directory.path().join("elsewhere");
    fs::write(&elsewhere, &other).expect("a file");
    let told = refusal_on(&url, &["--master-key-file", &elsewhere.to_string_lossy()]);
    assert!(told.contains("does not hold it"), "{told}");

    let refused = rotate(&first);
    assert!(refused.status == 409 && refused.text().contains("openssl rand"), "{}", refused.text());
    fs::write(&files[0], format!("{old}{new}")).expect("a file");
    let refused = rotate(&first);
    assert!(refused.status == 409 && refused.text().contains("1 of the other servers"), "{}", refused.text());
    fs::write(&files[1], format!("{old}{new}")).expect("a file");
    let begun = wait_for(
        "the second server to read its file",
        || Some(rotate(&first)).filter(|it| it.status == 200),
        String::new,
    );
    // Both servers seal and send with what they have, during the rotation and after it.
    let added = super::hook(&organization.by_way_of(&second), &receiver);
    assert_eq!(rotated(&second)["fingerprint"], begun.ok()["fingerprint"]);
    for server in [&first, &second] {
        let before = receiver.count();
        one_event(&organization.by_way_of(server));
        for seen in &receiver.wait_for(before + 2)[before..] {
            let signature = seen.header("Service-Signature").to_owned();
            assert!([&hook, &added].iter().any(|hook| signature == signed(seen, &[&hook.secret])), "{signature}");
        }
    }
    fs::write(&elsewhere, &new).expect("a file");
    let third = start(&elsewhere);
    assert_eq!(master_key(&third)["unreadable"], 0);
}
