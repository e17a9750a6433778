//! `master-key`, and what `doctor`, `store check` and a restored backup tell about the key.

use super::{Cli, Ran, ran};
use crate::support::{Server, ended, receiver::PATIENCE};
use serde_json::{Value, json};
use std::{fs, process::Command, time::Instant};

/// A server on a file in `directory` with one webhook endpoint; gives the endpoint's id too.
fn with_an_endpoint(directory: &std::path::Path, flags: &[&str]) -> (Server, String) {
    let server = Server::start_on_file(directory, flags);
    let id = server.admin("POST", "/admin/v1/organizations", &json!({"name": "Keys"})).id();
    let hook = json!({"organization_id": id, "url": "https://example.com/"});
    let hook = server.admin("POST", "/admin/v1/webhook_endpoints", &hook).id();
    (server, hook)
}

/// Waits until a rotation has ended, and gives what `master-key get` says then.
#[track_caller]
fn rotated(cli: &Cli, server: &Server) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let now = cli.run(server, "master-key get --json").json();
        if now["former_fingerprint"].is_null() {
            return now;
        }
        assert!(Instant::now() < deadline, "the rotation does not end: {now}");
    }
}

#[track_caller]
fn check(cli: &Cli, directory: &std::path::Path) -> (Ran, Value) {
    let store = format!("redb:{}", directory.join("store.redb").display());
    let ran = ran(&mut cli.command("http://127.0.0.1:1", &format!("store check {store} --json")));
    let report = ran.json();
    (ran, report)
}

#[test]
fn a_rotation_is_begun_and_watched_by_command_and_no_key_is_shown() {
    let Some(cli) = Cli::find() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (server, _) = with_an_endpoint(directory.path(), &[]);
    let before = cli.run(&server, "master-key get --json").json();
    let begun = cli.run(&server, "master-key rotate");
    assert_eq!(begun.code, Some(0), "{begun:?}");
    assert!(begun.stderr.contains("Back up the key file now"), "{}", begun.stderr);
    let after = rotated(&cli, &server);
    assert_ne!(before["fingerprint"], after["fingerprint"]);
    assert_eq!((&after["webhook_endpoints"], &after["unreadable"]), (&json!(1), &json!(0)));
    let keys = fs::read_to_string(directory.path().join("store.redb.master-key")).unwrap();
    for key in keys.lines() {
        assert!(!begun.stdout.contains(key) && !begun.stderr.contains(key) && !after.to_string().contains(key));
        assert!(!server.log().contains(key));
    }
    let well = cli.run(&server, "doctor");
    assert!(well.code == Some(0) && well.stdout.contains("opens all webhook secrets"), "{well:?}");
}

#[test]
fn store_check_tells_the_key_of_a_store_and_doctor_what_it_does_not_open() {
    let Some(cli) = Cli::find() else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.redb.master-key");
    let (server, hook) = with_an_endpoint(directory.path(), &[]);
    server.signal("TERM");
    server.wait_until_gone();
    let (ran, report) = check(&cli, directory.path());
    assert_eq!((ran.code, &report["master_key"]["unreadable"]), (Some(0), &json!(0)));
    assert_eq!(report["master_key"]["file"], "which the key file beside the store holds");
    fs::remove_file(&file).unwrap();
    assert_eq!(check(&cli, directory.path()).1["master_key"]["file"], "no key file is beside the store");

    let server = Server::start_on_file(directory.path(), &["--replace-master-key"]);
    let warned = cli.run(&server, "doctor");
    assert_eq!(warned.code, Some(1), "{warned:?}");
    assert!(warned.stdout.contains("does not open the secrets of 1 webhook endpoints"), "{}", warned.stdout);
    assert_eq!(cli.run(&server, "master-key get --json").json()["unreadable_ids"], json!([hook]));
    server.signal("TERM");
    server.wait_until_gone();
    let (ran, report) = check(&cli, directory.path());
    assert_eq!((ran.code, &report["sound"]), (Some(0), &json!(true)), "a lost key is no damage: {report}");
    assert_eq!(report["master_key"]["unreadable"], 1);
    fs::write(&file, "ab".repeat(32)).unwrap();
    assert_eq!(
        check(&cli, directory.path()).1["master_key"]["file"],
        "which the key file beside the store does not hold"
    );
}

#[test]
fn a_restored_store_needs_the_key_of_its_backup() {
    let Some(cli) = Cli::find() else { return };
    let [first, second] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let (server, _) = with_an_endpoint(first.path(), &[]);
    let backup = second.path().join("backup").display().to_string();
    assert_eq!(cli.run(&server, &format!("store backup --to {backup}")).code, Some(0));
    let store = format!("redb:{}", second.path().join("store.redb").display());
    assert_eq!(cli.run(&server, &format!("store restore {backup} --to {store}")).code, Some(0));
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rental-server"));
        ended(command.args(["--listen", "127.0.0.1:0", "--store", &store]))
    };
    let refused = start();
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && told.contains("master-key is missing"), "{told}");
    // The key of before a rotation is kept in the file, so a backup of before can still be restored.
    assert_eq!(cli.run(&server, "master-key rotate").code, Some(0));
    rotated(&cli, &server);
    let [from, to] = [&first, &second].map(|directory| directory.path().join("store.redb.master-key"));
    fs::copy(from, to).unwrap();
    let restored = Server::start_on_file(second.path(), &[]);
    let key = cli.run(&restored, "master-key get --json").json();
    assert_eq!((&key["webhook_endpoints"], &key["unreadable"]), (&json!(1), &json!(0)));
    assert_ne!(key["fingerprint"], key["newest_fingerprint"]);
}
