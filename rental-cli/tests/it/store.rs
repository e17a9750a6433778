//! `store`: what needs no server, and what a server that answers oddly cannot do to a file.

use crate::fake_server::{FakeServer, Ran, Reply, cli, error, ok};
use rental_core::{
    rows::key,
    store::{
        Batch, Prior, Store, Write,
        archive::Writer,
        redb::{Redb, SCHEMA_VERSION},
    },
    value::{OrganizationId, Timestamp},
};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

const CACHE: usize = 1 << 20;

/// A store with this many counters, which stand for themselves.
fn store(path: &Path, rows: u32) {
    let store = Redb::open(path, CACHE).unwrap();
    let put = |n: u32| {
        let key = key::counter(OrganizationId::nil(), &format!("{n:08}"));
        Write::Put(key, 1, vec![n as u8; 600].into(), Prior::Any)
    };
    let batch = Batch { checks: Vec::new(), writes: (0..rows).map(put).collect() };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.commit(batch)).unwrap();
    store.close().unwrap();
}

fn archive(path: &Path) -> Vec<u8> {
    let store = Redb::open(path, CACHE).unwrap();
    let mut writer = Writer::new(Vec::new(), SCHEMA_VERSION, "test", Timestamp::default()).unwrap();
    for row in store.snapshot().rows().unwrap() {
        writer.push(&row.unwrap()).unwrap();
    }
    writer.finish().unwrap().0
}

fn run(args: &[&str]) -> Ran {
    Ran::of(&mut cli(args))
}

fn url(path: &Path) -> String {
    format!("redb:{}", path.display())
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A directory with the store `a.redb`.
fn place(rows: u32) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.redb");
    store(&path, rows);
    (directory, path)
}

#[test]
fn a_sound_store_is_0_and_a_damaged_one_is_1_with_what_to_do_next() {
    let (_directory, path) = place(400);
    let sound = run(&["store", "check", &url(&path), "--json"]);
    assert_eq!((sound.code, sound.stderr.as_str()), (Some(0), ""), "{sound:?}");
    let report: serde_json::Value = serde_json::from_str(&sound.stdout).unwrap();
    assert_eq!((&report["sound"], &report["rows"]), (&true.into(), &400.into()));
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(200).position(|part| part == [77; 200]).unwrap() + 100;
    bytes[at] ^= 3;
    fs::write(&path, bytes).unwrap();
    let damaged = run(&["store", "check", &url(&path), "--json"]);
    let report: serde_json::Value = serde_json::from_str(&damaged.stdout).unwrap();
    assert_eq!((damaged.code, &report["sound"]), (Some(1), &false.into()));
    let listed = report["listed"].to_string();
    assert!(listed.contains("the checksum does not match") && listed.contains("the file"), "{listed}");
    assert!(!damaged.stderr.contains(" 1 problems"), "{damaged:?}");
    let error: serde_json::Value = serde_json::from_str(&damaged.stderr).unwrap();
    assert!(error["error"]["code"] == "damaged" && error["error"]["hint"].is_string(), "{damaged:?}");
    let text = run(&["store", "check", &url(&path)]);
    assert!(text.stderr.starts_with("error[damaged]: ") && text.stderr.contains("\nhint: "), "{text:?}");
    assert!(
        text.stdout.contains("the counter ") && text.stdout.contains("\n  the checksum does not match\n"),
        "{text:?}"
    );
}

#[test]
fn what_is_no_store_is_damaged_and_what_is_not_there_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.redb");
    for verb in ["check", "compact", "upgrade", "repair"] {
        let ran = run(&["store", verb, &url(&path)]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("No such file"), "{}", ran.stderr);
        for junk in [&b""[..], b"hello", &[0; 70_000]] {
            let other = directory.path().join("b.redb");
            fs::write(&other, junk).unwrap();
            let ran = run(&["store", verb, &url(&other)]);
            assert_eq!(ran.code, Some(1), "{verb} {junk:?}: {ran:?}");
            assert!(ran.stderr.starts_with("error[") && !ran.stderr.contains("panic"), "{ran:?}");
            let name = other.to_str().unwrap();
            assert!(!ran.stderr.contains("1 problems"), "{ran:?}");
            assert!(ran.stdout.lines().all(|line| line.matches(name).count() < 2), "{verb}: {ran:?}");
            assert_eq!(fs::read(&other).unwrap(), junk, "{verb} wrote to it");
        }
    }
    assert_eq!(names(directory.path()), ["b.redb"]);
}

#[test]
fn a_store_that_a_server_has_open_is_one_clear_line() {
    let (_directory, path) = place(1);
    let open = Redb::open(&path, CACHE).unwrap();
    for verb in ["check", "compact", "repair"] {
        let ran = run(&["store", verb, &url(&path)]);
        assert_eq!(ran.code, Some(1));
        let is_in_use = format!("error[in_use]: {} is in use by another process", path.display());
        // Linux tells which one.
        let who = format!(", process {}", std::process::id());
        assert!(ran.stderr.starts_with(&is_in_use), "{ran:?}");
        assert!(ran.stderr.contains(&who) || !cfg!(target_os = "linux"), "{ran:?}");
        let hint = "\nhint: stop the server, or use `rental-cli store backup`, which works while it runs\n";
        assert!(ran.stdout.is_empty() && ran.stderr.ends_with(hint), "{ran:?}");
    }
    drop(open);
}

#[test]
fn a_database_checks_and_compacts_itself() {
    for verb in ["check", "compact"] {
        let ran = run(&["store", verb, "postgres://localhost/rental"]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("VACUUM"), "{}", ran.stderr);
    }
}

#[test]
fn compacting_says_the_bytes_before_and_after() {
    let (_directory, path) = place(2000);
    let before = fs::metadata(&path).unwrap().len();
    let ran = run(&["store", "compact", &url(&path), "--json"]);
    let made: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(made["bytes_before"], before);
    assert_eq!(made["bytes_after"], fs::metadata(&path).unwrap().len());
    assert!(fs::metadata(&path).unwrap().len() < before);
}

/// Pages that are written again get checksums that are right, and a row that is missing there would be taken for one that never was.
#[test]
fn a_file_with_a_damaged_page_is_neither_compacted_nor_repaired_nor_upgraded() {
    let (_directory, path) = place(400);
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(200).position(|part| part == [77; 200]).unwrap() + 100;
    bytes[at] ^= 1;
    fs::write(&path, &bytes).unwrap();
    for flags in [&["compact"][..], &["repair", "--yes"], &["repair", "--dry-run"], &["upgrade"]] {
        let refused = run(&[&["store", flags[0], &url(&path)], &flags[1..]].concat());
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("restore the last good backup"), "{refused:?}");
        assert!(fs::read(&path).unwrap() == bytes && names(path.parent().unwrap()) == ["a.redb"]);
    }
}

#[test]
fn what_is_shown_of_a_store_has_the_columns_that_were_chosen() {
    let (directory, path) = place(400);
    let checked = run(&["store", "check", &url(&path), "--columns", "rows,sound,problems"]);
    assert_eq!((checked.code, checked.stdout.as_str()), (Some(0), "rows\t400\nsound\ttrue\nproblems\t0\n"));
    let upgraded = run(&["store", "upgrade", &url(&path), "--columns", "rows_written,to"]);
    assert_eq!(upgraded.stdout, format!("rows_written\t0\nto\t{SCHEMA_VERSION}\n"));
    let copied = run(&[
        "store",
        "copy",
        "--from",
        &url(&path),
        "--to",
        &url(&directory.path().join("b.redb")),
        "--columns",
        "rows",
    ]);
    assert_eq!(copied.stdout, "rows\t400\n", "{copied:?}");
    let refused = run(&["store", "check", &url(&path), "--columns", "records"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("problems"), "{refused:?}");
}

#[test]
fn a_backup_is_received_checked_and_restored() {
    let (directory, path) = place(3000);
    let bytes = archive(&path);
    let server = FakeServer::new(vec![Reply::Bytes(bytes.clone())]);
    let (file, to) = (directory.path().join("b.backup"), directory.path().join("b.redb"));
    let file_name = file.to_str().unwrap();
    let ran = server.run(&["store", "backup", "--to", file_name, "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!(server.asked()[0].line, "GET /admin/v1/backup?pace=gentle");
    assert_eq!(server.asked()[0].header("authorization"), Some("Bearer admin-token-of-the-test"));
    assert!(fs::read(&file).unwrap() == bytes);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let told: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&told["object"], &told["rows"]), (&"backup".into(), &3000.into()));
    let refused = server.run(&["store", "backup", "--to", file_name]);
    assert_eq!(refused.code, Some(6));
    assert!(
        refused
            .stderr
            .contains("exists; nothing was written\nhint: choose another name, or use --force to replace the file")
    );
    assert_eq!(server.run(&["store", "backup", "--to", file_name, "--force", "--pace", "full"]).code, Some(0));
    let made = run(&["store", "restore", file_name, "--to", &url(&to), "--json"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(archive(&to) == archive(&path), "the restored store has other rows");
    assert_eq!(run(&["store", "check", &url(&to)]).code, Some(0));
    let again = run(&["store", "restore", file_name, "--to", &url(&to)]);
    assert_eq!(again.code, Some(6), "{again:?}");
    assert_eq!(names(directory.path()), ["a.redb", "b.backup", "b.redb"]);
}

#[test]
fn a_backup_without_a_place_to_write_to_does_not_reach_the_server() {
    let server = FakeServer::new(vec![ok("{}")]);
    let ran = server.run(&["store", "backup", "--to", "/no/such/directory/b.backup"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("/no/such/directory"), "{ran:?}");
    assert!(server.asked().is_empty(), "{:?}", server.asked());
}

#[test]
fn what_is_not_a_whole_backup_gets_no_name() {
    let (directory, path) = place(3000);
    let bytes = archive(&path);
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 1;
    let file = directory.path().join("b.backup");
    let cases = [
        (Reply::Bytes(bytes[..bytes.len() - 1].to_vec()), 7, "the backup is incomplete"),
        (Reply::Bytes(flipped.clone()), 1, "damaged in frame"),
        (Reply::BreakOff, 1, "not a backup"),
        (Reply::HangUp, 7, "cannot reach"),
        (ok("<html>"), 1, "not a backup"),
        (error(409, "", "invalid_request_error", "state_conflict"), 6, "No, because."),
        (error(401, "", "authentication_error", "api_key_invalid"), 4, "RENTAL_ADMIN_TOKEN"),
    ];
    for (reply, code, words) in cases {
        let ran = FakeServer::new(vec![reply]).run(&["store", "backup", "--to", file.to_str().unwrap()]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{words}: {ran:?}");
        assert!(ran.stderr.contains(words), "{words}: {ran:?}");
        assert_eq!(names(directory.path()), ["a.redb"], "{words}");
    }
    fs::write(&file, flipped).unwrap();
    let to = directory.path().join("b.redb");
    let ran = run(&["store", "restore", file.to_str().unwrap(), "--to", &url(&to)]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("is damaged in frame"), "{ran:?}");
    assert_eq!(names(directory.path()), ["a.redb", "b.backup"]);
}

/// Kills it after each of these pauses; nothing may be under the final name unless it is whole.
#[track_caller]
fn killed(command: impl Fn() -> Command, result: &Path, whole: impl Fn(&Path) -> bool) {
    let mut interrupted = 0;
    for millis in [5, 15, 30, 60, 90, 120, 180, 240] {
        let mut child = command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        child.kill().unwrap();
        child.wait().unwrap();
        if result.exists() {
            assert!(whole(result), "{} is there and not whole", result.display());
            fs::remove_file(result).unwrap();
        } else {
            interrupted += 1;
        }
    }
    assert!(interrupted > 0, "nothing was interrupted");
    assert_eq!(Ran::of(&mut command()).code, Some(0), "what was left is in the way");
    assert!(whole(result));
}

#[test]
fn a_killed_restore_leaves_nothing_under_the_name_of_the_store() {
    let (directory, path) = place(20_000);
    let (file, to) = (directory.path().join("b.backup"), directory.path().join("b.redb"));
    let bytes = archive(&path);
    fs::write(&file, &bytes).unwrap();
    let command = || cli(&["store", "restore", file.to_str().unwrap(), "--to", &url(&to)]);
    killed(command, &to, |made| archive(made) == bytes);
}

#[test]
fn a_killed_backup_leaves_nothing_under_the_name_of_the_file() {
    let (directory, path) = place(20_000);
    let bytes = archive(&path);
    let server = FakeServer::new(vec![Reply::Slowly(bytes.clone())]);
    let file = directory.path().join("b.backup");
    let command = || server.command(&["store", "backup", "--to", file.to_str().unwrap()]);
    killed(command, &file, |made| fs::read(made).unwrap() == bytes);
}

/// The server runs as a user of its own, and root restores.
#[test]
fn root_gives_a_restored_store_to_the_owner_of_its_directory() {
    use std::os::unix::fs::{MetadataExt as _, chown};
    let directory = tempfile::tempdir().unwrap();
    if directory.path().metadata().unwrap().uid() != 0 {
        println!("skipped: only root can give files away");
        return;
    }
    let (of_root, of_server) = (directory.path().join("root"), directory.path().join("server"));
    fs::create_dir(&of_root).unwrap();
    fs::create_dir(&of_server).unwrap();
    chown(&of_server, Some(12345), Some(12346)).unwrap();
    let (path, file) = (directory.path().join("a.redb"), directory.path().join("a.backup"));
    store(&path, 3);
    fs::write(&file, archive(&path)).unwrap();
    let from = url(&path);
    for (place, owner) in [(&of_root, (0, 0)), (&of_server, (12345, 12346))] {
        for (name, args) in [
            ("restored.redb", &["store", "restore", file.to_str().unwrap()][..]),
            ("copied.redb", &["store", "copy", "--from", &from]),
        ] {
            let made = place.join(name);
            let ran = run(&[args, &["--to", &url(&made)]].concat());
            assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
            let found = made.metadata().unwrap();
            assert_eq!((found.uid(), found.gid()), owner, "{name} in {}", place.display());
        }
    }
    // A name without a directory is in the current one.
    let ran =
        Ran::of(cli(&["store", "restore", file.to_str().unwrap(), "--to", "redb:here.redb"]).current_dir(&of_server));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(of_server.join("here.redb").metadata().unwrap().uid(), 12345);
}
