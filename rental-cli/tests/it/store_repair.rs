//! `store repair`: what it lists, asks, saves, removes and refuses.

use crate::{
    fake_server::{Ran, cli},
    terminal,
};
use rental_core::{
    rows::key,
    store::{Batch, Key, Prior, Record, Store, Write, redb::Redb},
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
    let row = rows(&path).into_iter().find(|row| row.key == counter(DAMAGED)).unwrap();
    rot(&path, &row, 100);
    path
}

/// Damages a byte of a row, as a fault of the memory does before the row is written: the checksums of its pages are right, because all
/// other rows are written again beside it.
pub(crate) fn rot(path: &Path, row: &Record, byte: usize) {
    let mut bytes = fs::read(path).unwrap();
    let places: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&row.value)).collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|at| bytes[at + byte] ^= 3);
    fs::write(path, bytes).unwrap();
    let store = Redb::open_any_version(path, CACHE).unwrap();
    let sound = store.snapshot().rows().unwrap().filter_map(Result::ok);
    let again = sound.map(|row| Write::Put(row.key, row.revision, row.value, Prior::Any));
    let batch = Batch { checks: Vec::new(), writes: again.collect() };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.commit(batch)).unwrap();
    store.close().unwrap();
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
    assert!(ran.stderr.contains("add --yes"), "{ran:?}");
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
    let files = saved(&path);
    assert_eq!(files.len(), 1, "{files:?}");
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
    assert!(again.stderr.contains("nothing to do") && saved(&path).len() == 1, "{again:?}");
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

#[test]
fn a_person_sees_the_rows_before_the_question() {
    let directory = tempfile::tempdir().unwrap();
    let path = damaged(directory.path());
    let (code, shown) = terminal::answering(&mut command(&path, &[]), 140, "n\n");
    assert!(code == Some(1) && shown.contains("nothing was done"), "{shown}");
    assert_eq!((rows(&path).len(), saved(&path).len()), (usize::from(ROWS), 0));
    let listed = shown.find("remove the counter 0077").expect("the list");
    assert!(listed < shown.rfind("[y/N]").expect("the question"), "{shown}");
    let (code, shown) = terminal::answering(&mut command(&path, &[]), 140, "y\n");
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!((rows(&path).len(), saved(&path).len(), checked(&path)), (usize::from(ROWS) - 1, 1, Some(0)));
}

/// A file that was not closed, with a damaged row: the engine does not open it.
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
fn a_file_that_the_engine_calls_damaged_is_not_said_to_be_repairable() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rental.redb");
    crashed(&path);
    let bytes = fs::read(&path).unwrap();
    for flags in [&["--dry-run"][..], &["--yes"]] {
        let ran = repair(&path, flags);
        assert!(ran.code == Some(1) && ran.stderr.contains("restore the last good backup"), "{ran:?}");
        assert!(!ran.stderr.contains("store repair"), "{ran:?}");
        assert!(fs::read(&path).unwrap() == bytes);
    }
}
