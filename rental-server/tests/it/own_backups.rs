//! Backups that the server makes by itself: `--backup-to`.

use crate::{
    backup::rows,
    support::{Cluster, Server, SmallDisk, ended, flip},
    webhooks::{metric, wait_for},
};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

const SUCCESS: &str = "rental_backup_last_success_timestamp_seconds";
const FAILURES: &str = "rental_backup_failures_total";

/// A folder for backups.
fn folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("text").to_owned();
    (folder, path)
}

/// The names of the files in it but the lock, by rising times.
fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.retain(|name| name != "rental-backups.lock");
    names.sort();
    names
}

fn is_good(name: &str) -> bool {
    name.starts_with("rental-2") && name.ends_with("Z.backup")
}

fn until(what: &str, server: &Server, mut test: impl FnMut() -> bool) {
    wait_for(what, || test().then_some(()), || server.log());
}

#[test]
fn a_server_makes_backups_and_a_restart_makes_none_before_its_time() {
    let (place, (backups, path)) = (tempfile::tempdir().expect("a folder"), folder());
    let foreign = ["notes.txt", "rental-2020-01-01.backup"];
    foreign.iter().for_each(|name| fs::write(backups.path().join(name), "mine").expect("written"));
    fs::write(backups.path().join("rental-20200101T000000000Z.backup.partial"), "killed").expect("written");
    let flags = ["--backup-to", &path, "--backup-every", "1s", "--backup-keep", "2"];
    let mut server = Server::start_on_file(place.path(), &flags);
    let made = server.organization().one_of_each();
    let first = || files(backups.path()).into_iter().find(|name| is_good(name));
    until("the first backup", &server, || first().is_some());
    let oldest = first().expect("a backup");
    until("an old backup that goes", &server, || !backups.path().join(&oldest).exists());
    let names = files(backups.path());
    assert!(names.iter().filter(|name| is_good(name)).count() <= 3, "two, and one that was just made: {names:?}");
    assert!(
        !names.iter().any(|name| name.starts_with("rental-2020010")),
        "what a killed server left is gone: {names:?}"
    );
    assert!(foreign.iter().all(|name| names.iter().any(|other| other == name)), "{names:?}");
    let newest = backups.path().join(names.iter().rfind(|name| is_good(name)).expect("a backup"));
    assert_eq!(fs::metadata(&newest).expect("a file").permissions().mode() & 0o777, 0o600);
    let found = rows(&fs::read(&newest).expect("a backup"));
    for (plural, id) in made {
        assert!(found.iter().any(|row| row.key.id().is_some_and(|key| key.to_string() == id)), "{plural}");
    }
    assert!(metric(&server, SUCCESS) > 1.7e9, "{}", metric(&server, SUCCESS));
    assert_eq!(metric(&server, FAILURES), 0.0);
    let told = &server.admin("GET", "/admin/v1/status", &Value::Null).ok()["backups"];
    assert!(told["every_seconds"] == 1 && told["last_success_at"].is_string(), "{told}");
    assert!(!server.log().contains("makes no backups"), "{}", server.log());
    server.signal("TERM");
    assert_eq!(server.exit_code(), Some(0));

    let before = files(backups.path());
    let server = Server::start_on_file(place.path(), &["--backup-to", &path]);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(files(backups.path()), before, "the newest is less than an hour old");
    assert!(metric(&server, SUCCESS) > 1.7e9, "the folder tells it");
}

#[test]
fn a_backup_that_lacks_a_damaged_row_is_kept_apart_alarms_and_removes_none() {
    let (place, (backups, path)) = (tempfile::tempdir().expect("a folder"), folder());
    let mut server = Server::start_on_file(place.path(), &["--backup-to", &path]);
    let organization = server.organization();
    organization.vehicle(json!({"color": "the-color-that-rots"}));
    let sound = organization.vehicle(json!({}));
    drop(organization);
    until("the first backup", &server, || !files(backups.path()).is_empty());
    server.signal("TERM");
    assert_eq!(server.exit_code(), Some(0));
    // So old that a good backup would remove it.
    let good = files(backups.path()).remove(0);
    let names = ["rental-20200101T000000000Z.backup", "rental-20200101T010000000Z.backup"];
    fs::rename(backups.path().join(&good), backups.path().join(names[0])).expect("renamed");
    fs::copy(backups.path().join(names[0]), backups.path().join(names[1])).expect("copied");
    flip(&place.path().join("store.redb"), "the-color-that-rots");

    let flags = ["--backup-to", &path, "--backup-every", "1s", "--backup-keep", "1"];
    let server = Server::start_on_file(place.path(), &flags).expecting_errors("damaged");
    until("two bad backups", &server, || metric(&server, FAILURES) >= 2.0);
    let kept = files(backups.path());
    assert_eq!(kept[..2], names, "{kept:?}");
    assert!(kept[2..].iter().all(|name| name.ends_with("Z.failed.backup")) && kept.len() > 2, "{kept:?}");
    // What it has can be restored.
    let found = rows(&fs::read(backups.path().join(&kept[2])).expect("a file"));
    assert!(found.iter().any(|row| row.key.id().is_some_and(|key| key.to_string() == sound)));
    assert!(server.log().contains("a backup by itself failed"), "{}", server.log());
    assert_eq!(metric(&server, SUCCESS), 1_577_840_400.0, "the newest good one");
    assert_eq!(server.admin("GET", "/readyz", &Value::Null).status, 200);
}

#[test]
fn a_full_disk_of_the_backups_is_told_and_removes_none() {
    let Some(disk) = SmallDisk::mount("64k") else { return };
    let old = disk.path().join("rental-20200101T000000000Z.backup");
    fs::write(&old, "an older one").expect("written");
    let path = disk.path().to_str().expect("text");
    let server = Server::start(&["--backup-to", path, "--backup-every", "1s", "--backup-keep", "1"])
        .expecting_errors("a backup by itself failed");
    let organization = server.organization();
    for n in 0..40 {
        let noise: String = (0..4000_u32)
            .map(|at| char::from(33 + (((at + n * 4000).wrapping_mul(2_654_435_761) >> 13) % 90) as u8))
            .collect();
        organization.post("/v1/customers", &json!({"full_name": "Noise", "notes": noise})).ok();
    }
    until("a backup that failed", &server, || metric(&server, FAILURES) >= 1.0);
    assert!(server.log().contains("No space left"), "{}", server.log());
    assert!(
        old.exists() && !files(disk.path()).iter().any(|name| name.ends_with(".partial")),
        "{:?}",
        files(disk.path())
    );
    organization.vehicle(json!({}));
}

fn refusal(store: &Path, backups: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rental-server"));
    command.args(["--listen", "127.0.0.1:0", "--backup-to", backups]).current_dir(store);
    let output = ended(&mut command);
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_folder_that_is_not_there_or_of_another_store_is_refused_in_one_line() {
    let (store, (backups, path)) = (tempfile::tempdir().expect("a folder"), folder());
    let missing: PathBuf = backups.path().join("missing");
    let said = refusal(store.path(), missing.to_str().expect("text"));
    assert!(said.lines().count() == 1 && said.contains("--backup-to names no folder"), "{said}");
    let other = tempfile::tempdir().expect("a folder");
    let _first = Server::start_on_file(other.path(), &["--backup-to", &path]);
    let said = refusal(store.path(), &path);
    assert!(said.lines().count() == 1 && said.contains("another server makes its backups in"), "{said}");
}

#[test]
fn of_two_servers_on_a_database_one_makes_the_backups_and_the_other_takes_over() {
    let (Some(database), (backups, path)) = (Cluster::shared().map(Cluster::database), folder()) else { return };
    let flags = ["--backup-to", &path, "--backup-every", "1s"];
    let (first, second) = (Server::start_on(&database, &flags), Server::start_on(&database, &flags));
    let made = |server: &Server| server.log().contains("a backup was made");
    until("backups", &first, || files(backups.path()).len() >= 2);
    assert!(made(&first) && !made(&second), "{}", second.log());
    until("the time of the other's backups", &second, || metric(&second, SUCCESS) > 1.7e9);
    first.signal("KILL");
    until("the other one", &second, || made(&second));
}

#[test]
fn without_the_flag_the_start_says_so() {
    let directory = tempfile::tempdir().expect("a folder");
    let server = Server::start_on_file(directory.path(), &[]);
    let told = &server.admin("GET", "/admin/v1/status", &Value::Null).ok()["backups"];
    assert_eq!(told, &json!({"every_seconds": null, "last_success_at": null}));
    assert_eq!(server.log().lines().filter(|line| line.contains("--backup-to DIR")).count(), 1, "{}", server.log());
}
