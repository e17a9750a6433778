//! `store repair`: what it lists, asks, saves, removes and refuses.

use crate::{
    fake_server::{Ran, cli},
    terminal,
};
use rental_core::{
    rows::key,
    store::{Batch, Key, Prior, Record, SCHEMA_VERSION, Store, Write, redb::Redb},
    value::OrganizationId,
};
use serde_json::Value;
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

const CACHE: usize = 1 << 20;
/// Rows of the store. The value of each consists of its number.
const ROWS: u8 = 100;
const DAMAGED: u8 = 77;

fn counter(n: u8) -> Key {
    key::counter(OrganizationId::nil(), &format!("{n:04}"))
}

/// A key of no known kind, which takes several lines in hex.
fn unknown() -> Key {
    Key::from_bytes(&[b'z'; 90])
}

/// A store with a row whose bytes are damaged, and with one of no known kind.
fn damaged(directory: &Path) -> PathBuf {
    let path = directory.join("rental.redb");
    let store = Redb::open(&path, CACHE).unwrap();
    let put = |n: u8| Write::Put(counter(n), 1, vec![n; 600].into(), Prior::Any);
    let mut writes: Vec<Write> = (0..ROWS).map(put).collect();
    writes.push(Write::Put(unknown(), 5, "?".into(), Prior::Any));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.commit(Batch { checks: Vec::new(), writes })).unwrap();
    store.close().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(200).position(|part| part == [DAMAGED; 200]).unwrap() + 100;
    // One flipped bit would be corrected.
    bytes[at] ^= 3;
    fs::write(&path, bytes).unwrap();
    path
}

fn rows(path: &Path) -> Vec<Record> {
    let store = Redb::open_unchanged(path, CACHE).unwrap();
    let rows = store.snapshot().rows().unwrap().filter_map(Result::ok).collect();
    store.close().unwrap();
    rows
}

/// The command, in the directory of the store.
fn command(path: &Path, flags: &[&str]) -> Command {
    let url = format!("redb:{}", path.display());
    let mut command = cli(&[&["store", "repair", &url], flags].concat());
    command.current_dir(path.parent().unwrap());
    command
}

fn repair(path: &Path, flags: &[&str]) -> Ran {
    Ran::of(&mut command(path, flags))
}

fn checked(path: &Path) -> Option<i32> {
    Ran::of(&mut cli(&["store", "check", &format!("redb:{}", path.display())])).code
}

/// The files beside the store.
fn saved(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|entry| entry != path).collect()
}

#[test]
fn a_dry_run_lists_the_rows_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = damaged(directory.path());
    let before = fs::read(&path).unwrap();
    let ran = repair(&path, &["--dry-run"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("removes 1: counter\n") && ran.stdout.contains("removes 1: row of no known kind\n"));
    assert!(ran.stdout.contains("remove the counter 0077 of organization"), "{ran:?}");
    assert!(ran.stdout.contains("\n  the checksum does not match\n"), "{ran:?}");
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 100), "{ran:?}");
    let json: Value = serde_json::from_str(&repair(&path, &["--dry-run", "--json"]).stdout).unwrap();
    assert_eq!((&json["dry_run"], &json["sound"], &json["left"]), (&true.into(), &false.into(), &0.into()), "{json}");
    assert_eq!(json["listed"].as_array().map(Vec::len), Some(2), "{json}");
    assert!(fs::read(&path).unwrap() == before && saved(&path).is_empty());
}

#[test]
fn without_a_terminal_it_needs_yes() {
    let directory = tempfile::tempdir().unwrap();
    let path = damaged(directory.path());
    let ran = repair(&path, &[]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("add --yes") && ran.stderr.contains("with the 101 of 101 rows"), "{ran:?}");
    assert_eq!((rows(&path).len(), saved(&path).len()), (usize::from(ROWS), 0));
}

#[test]
fn removed_rows_are_saved_first_and_all_others_stay() {
    let directory = tempfile::tempdir().unwrap();
    let path = damaged(directory.path());
    let sound: Vec<Record> = rows(&path).into_iter().filter(|row| row.key != unknown()).collect();
    let ran = repair(&path, &["--yes", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let done: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&done["sound"], &done["removed"]["counter"]), (&true.into(), &1.into()), "{done}");
    assert_eq!(rows(&path), sound);
    assert_eq!(checked(&path), Some(0), "also the pages are sound");
    assert_eq!((&done["salvaged"]["rows"], &done["salvaged"]["lost"]), (&101.into(), &0.into()), "{done}");
    let files: Vec<PathBuf> = saved(&path).into_iter().filter(|file| !file.ends_with("rental.redb.damaged")).collect();
    assert_eq!((files.len(), saved(&path).len()), (1, 2), "{files:?}");
    let name = files[0].file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("rental-repair-2") && name.ends_with("Z.jsonl"), "{name}");
    assert_eq!(fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&files[0]).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(lines[0]["key"], hex(counter(DAMAGED).as_bytes()));
    let stored = lines[0]["stored"].as_str().unwrap();
    let around = [&[DAMAGED; 100][..], &[DAMAGED ^ 3], &[DAMAGED; 499]].concat();
    assert!(stored.ends_with(&hex(&around)), "the damaged bytes as they were: {stored}");
    assert_eq!((&lines[1]["key"], &lines[1]["revision"]), (&hex(unknown().as_bytes()).into(), &5.into()));
    let again = repair(&path, &[]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.stderr.contains("nothing to do") && saved(&path).len() == 2, "{again:?}");
}

#[test]
fn a_file_that_exists_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let path = damaged(directory.path());
    let file = directory.path().join("kept.jsonl");
    fs::write(&file, "mine").unwrap();
    let ran = repair(&path, &["--yes", "--save", file.to_str().unwrap()]);
    assert_eq!(ran.code, Some(6), "{ran:?}");
    assert_eq!((fs::read_to_string(&file).unwrap().as_str(), rows(&path).len()), ("mine", usize::from(ROWS)));
    let link = directory.path().join("link.jsonl");
    std::os::unix::fs::symlink(directory.path().join("nowhere"), &link).unwrap();
    let ran = repair(&path, &["--yes", "--save", link.to_str().unwrap()]);
    assert!(ran.code == Some(6) && ran.stderr.contains("choose another name with --save"), "{ran:?}");
    assert_eq!(rows(&path).len(), usize::from(ROWS));
}

/// A branch page of redb begins with a 2. Whichever bit of it is flipped, its parent has the checksum that corrects it.
#[test]
fn a_flipped_bit_in_a_page_that_leads_to_others_is_listed_and_a_repair_ends_and_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = damaged(directory.path());
    assert_eq!(repair(&path, &["--yes"]).code, Some(0));
    let (sound, before) = (fs::read(&path).unwrap(), rows(&path));
    let kept = directory.path().join("rental.redb.damaged");
    let check = || Ran::of(&mut cli(&["store", "check", &format!("redb:{}", path.display())]));
    let branches = (0..sound.len()).step_by(0x1000).filter(|at| sound[*at] == 2);
    let mut mended = 0;
    // Its kind, its number of keys, a checksum, a child, the end of a key, and a key.
    for (at, bit) in branches.flat_map(|at| [0, 2, 9, 26, 40, 60, 90, 130].map(|byte| (at + byte, byte % 8))) {
        let _ = fs::remove_file(&kept);
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << bit;
        fs::write(&path, bytes).unwrap();
        let found = check();
        // It is a page of no use.
        if found.code == Some(0) {
            continue;
        }
        let page = format!("the page at byte {}\n", at / 0x1000 * 0x1000);
        assert!(found.stdout.contains(&page) && found.stdout.contains("corrects it by the checksum"), "{found:?}");
        assert!(found.stderr.contains("`rental-cli store repair`"), "{found:?}");
        let trial = repair(&path, &["--dry-run"]);
        assert!(trial.code == Some(1) && trial.stderr.contains("99 of 99 rows of"), "{trial:?}");
        let repaired = repair(&path, &["--yes"]);
        assert!(
            repaired.code == Some(0) && repaired.stderr.contains("no other row was lost"),
            "byte {at}: {repaired:?}"
        );
        assert_eq!((check().code, rows(&path)), (Some(0), before.clone()), "byte {at}");
        mended += 1;
    }
    assert!(mended >= 8, "{mended}");
}

#[test]
fn a_file_without_a_row_that_can_be_read_is_not_replaced_and_one_with_few_is_named_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = damaged(directory.path());
    let sound = fs::read(&path).unwrap();
    let spoil = |is_spoilt: &dyn Fn(usize, &[u8]) -> bool| {
        let mut bytes = sound.clone();
        for (at, page) in bytes.chunks_mut(0x1000).enumerate() {
            if is_spoilt(at, page) {
                page[..200].fill(0xA7);
            }
        }
        fs::write(&path, &bytes).unwrap();
        bytes
    };
    let bytes = spoil(&|_, page| page[0] == 2);
    for flags in [&["--dry-run"][..], &["--yes"]] {
        let ran = repair(&path, flags);
        assert!(ran.code == Some(1) && ran.stderr.contains("0 of 101 rows of"), "{ran:?}");
        assert!(ran.stderr.contains("restore the last good backup"), "{ran:?}");
        assert!(fs::read(&path).unwrap() == bytes && saved(&path).is_empty(), "nothing was changed");
    }
    // Leaves with many of the rows.
    spoil(&|_, page| page[0] == 1 && page.windows(99).any(|part| part == [part[0]; 99] && (10..70).contains(&part[0])));
    let ran = repair(&path, &[]);
    let asks = ran.stderr.contains("Only ") && ran.stderr.contains(" are lost unless a backup has them");
    assert!(ran.code == Some(2) && asks, "{ran:?}");
    let ran = repair(&path, &["--yes"]);
    assert_eq!((ran.code, checked(&path)), (Some(0), Some(0)), "{ran:?}");
}

#[test]
fn a_person_sees_the_rows_before_the_question() {
    let directory = tempfile::tempdir().unwrap();
    let path = damaged(directory.path());
    let (code, shown) = terminal::answering(&mut command(&path, &[]), 140, "n\n");
    assert!(code == Some(1) && shown.contains("nothing was done"), "{shown}");
    assert_eq!((rows(&path).len(), saved(&path).len()), (usize::from(ROWS), 0));
    // The file is replaced first, and then the rows are shown.
    let (code, shown) = terminal::answering(&mut command(&path, &[]), 140, "y\nn\n");
    assert_eq!(code, Some(1), "{shown}");
    let listed = shown.find("remove the counter 0077").expect("the list");
    assert!(listed < shown.rfind("[y/N]").expect("the question"), "{shown}");
    assert!(shown.contains("so it was replaced: 101 rows were written to a new file"), "{shown}");
    assert_eq!((rows(&path).len(), saved(&path).len()), (usize::from(ROWS), 1));
    let (code, shown) = terminal::answering(&mut command(&path, &[]), 140, "y\n");
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!((rows(&path).len(), saved(&path).len(), checked(&path)), (usize::from(ROWS) - 1, 2, Some(0)));
}

/// A file that was not closed, with a damaged row: the engine does not open it, and all other rows can be read.
fn crashed(path: &Path) {
    let made = tempfile::tempdir().unwrap();
    let other = made.path().join("other.redb");
    let store = Redb::open(&other, CACHE).unwrap();
    let put = |n: u8| Write::Put(counter(n), 1, vec![n; 600].into(), Prior::Any);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.commit(Batch { checks: Vec::new(), writes: (0..ROWS).map(put).collect() })).unwrap();
    // Before the engine saves what makes a recovery short.
    let mut bytes = fs::read(&other).unwrap();
    drop(store);
    let at = bytes.windows(200).position(|part| part == [DAMAGED; 200]).unwrap() + 100;
    bytes[at] ^= 3;
    fs::write(path, bytes).unwrap();
}

#[test]
fn whoever_may_not_replace_a_damaged_file_is_told_who_may() {
    use std::os::unix::{
        fs::{MetadataExt as _, chown},
        process::CommandExt as _,
    };
    let (programs, directory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (program, path) = (programs.path().join("rental-cli"), directory.path().join("rental.redb"));
    fs::copy(env!("CARGO_BIN_EXE_rental-cli"), &program).unwrap();
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    set(programs.path(), 0o755);
    crashed(&path);
    if fs::metadata(&path).unwrap().uid() != 0 {
        println!("skipped: another user needs root");
        return;
    }
    let as_nobody = || {
        let mut command = Command::new(&program);
        let url = format!("redb:{}", path.display());
        command.env_clear().current_dir("/").uid(65534).gid(65534).args(["store", "repair", &url, "--yes"]);
        Ran::of(&mut command)
    };
    let before = fs::read(&path).unwrap();
    // Its own file, in a directory that it may not read.
    chown(&path, Some(65534), Some(65534)).unwrap();
    set(directory.path(), 0o311);
    let ran = as_nobody();
    let place = format!("cannot read the directory {}: Permission denied", directory.path().display());
    assert!(ran.code == Some(1) && ran.stderr.contains(&place) && ran.stderr.contains("as root"), "{ran:?}");
    // Another one's file, in a directory that it may write.
    chown(&path, Some(0), Some(0)).unwrap();
    set(&path, 0o666);
    set(directory.path(), 0o777);
    let ran = as_nobody();
    let place = format!("cannot give the new file the owner and the mode of {}", path.display());
    assert!(ran.code == Some(1) && ran.stderr.contains(&place) && ran.stderr.contains("as root"), "{ran:?}");
    assert!(fs::read(&path).unwrap() == before && saved(&path).is_empty());
    let ran = repair(&path, &["--yes"]);
    assert_eq!((ran.code, checked(&path)), (Some(0), Some(0)), "{ran:?}");
}

#[test]
fn a_file_of_which_nothing_can_be_read_is_not_said_to_be_repairable() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rental.redb");
    crashed(&path);
    let mut bytes = fs::read(&path).unwrap();
    bytes[64..320].fill(7);
    fs::write(&path, &bytes).unwrap();
    for flags in [&["--dry-run"][..], &["--yes"]] {
        let ran = repair(&path, flags);
        assert!(ran.code == Some(1) && ran.stderr.contains("restore the last good backup"), "{ran:?}");
        assert!(!ran.stderr.contains("store repair"), "{ran:?}");
        assert!(fs::read(&path).unwrap() == bytes);
    }
}

#[test]
fn a_dry_run_tells_how_much_of_a_file_that_does_not_open_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rental.redb");
    crashed(&path);
    let ran = repair(&path, &["--dry-run"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("100 of 100 rows of"), "{ran:?}");
    assert!(saved(&path).is_empty());
}

#[test]
fn a_stated_schema_version_is_that_of_this_program() {
    let directory = tempfile::tempdir().unwrap();
    let path = damaged(directory.path());
    let present = SCHEMA_VERSION.to_string();
    let stated = |how: &'static str| [how, "--schema-version", present.as_str()];
    let ran = repair(&path, &["--dry-run", "--schema-version", "7"]);
    assert!(ran.code == Some(2) && ran.stderr.contains(&format!("must be {present}")), "{ran:?}");
    lose_the_version(&path);
    let bytes = fs::read(&path).unwrap();
    let ran = repair(&path, &stated("--dry-run"));
    assert!(ran.code == Some(1) && ran.stderr.contains("101 of 101 rows of"), "{ran:?}");
    assert!(fs::read(&path).unwrap() == bytes);
    let ran = repair(&path, &stated("--yes"));
    assert_eq!((ran.code, rows(&path).len()), (Some(0), usize::from(ROWS) - 1), "{ran:?}");

    // Rows of no known kind: another version may have made them.
    let path = directory.path().join("other.redb");
    let store = Redb::open(&path, CACHE).unwrap();
    let put = |n: u8| Write::Put(Key::from_bytes(&[b'z', n]), 1, "?".into(), Prior::Any);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.commit(Batch { checks: Vec::new(), writes: (0..ROWS).map(put).collect() })).unwrap();
    store.close().unwrap();
    lose_the_version(&path);
    let bytes = fs::read(&path).unwrap();
    let ran = repair(&path, &["--yes"]);
    assert!(ran.code == Some(1) && ran.stderr.contains(&format!("--schema-version {present}")), "{ran:?}");
    let ran = repair(&path, &stated("--yes"));
    assert!(
        ran.code == Some(1) && ran.stderr.contains(&format!("are not as schema version {present} has them")),
        "{ran:?}"
    );
    assert!(fs::read(&path).unwrap() == bytes, "it was not changed");
}

#[test]
fn a_lost_record_of_an_organization_does_not_make_a_right_schema_version_a_wrong_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rental.redb");
    let store = Redb::open(&path, CACHE).unwrap();
    let lost = OrganizationId::from_u128(7);
    let put = |n: u8| Write::Put(key::counter(lost, &format!("{n:04}")), 1, vec![n; 600].into(), Prior::Any);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.commit(Batch { checks: Vec::new(), writes: (0..ROWS).map(put).collect() })).unwrap();
    store.close().unwrap();
    lose_the_version(&path);
    let ran = repair(&path, &["--yes", "--schema-version", &SCHEMA_VERSION.to_string()]);
    assert!(!ran.stderr.contains("are not as schema version"), "{ran:?}");
    assert!(ran.stdout.contains("not repairable: the counter 0000 of organization"), "{ran:?}");
    assert_eq!(rows(&path).len(), usize::from(ROWS));
}

/// Damages each page that has the schema version.
fn lose_the_version(path: &Path) {
    let name = b"schema_version".as_slice();
    let mut bytes = fs::read(path).unwrap();
    let pages = (0..bytes.len()).step_by(0x1000).skip(1);
    let its = pages.filter(|at| bytes[*at..][..0x1000].windows(name.len()).any(|part| part == name));
    its.collect::<Vec<_>>().into_iter().for_each(|at| bytes[at..at + 200].fill(0xA7));
    fs::write(path, &bytes).unwrap();
}
