//! `store upgrade`, on a store that the last program of version 12 wrote.

use crate::{
    fake_server::{Ran, cli},
    store_repair::rot,
};
use rental_core::{
    rows::Row,
    store::{
        Batch, Prior, Record, Store, Versioned, Write,
        redb::{Redb, SCHEMA_VERSION},
    },
    upgrade::{Step, Upgrade},
};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const CACHE: usize = 8 << 20;

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Puts the store of version 12 into `directory`.
fn whole(directory: &Path) -> PathBuf {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rental-core/tests/fixtures/stores/v12/store.redb.lz4");
    let path = directory.join("rental.redb");
    fs::write(&path, lz4_flex::block::decompress_size_prepended(&fs::read(packed).unwrap()).unwrap()).unwrap();
    path
}

/// The same without index entries and holds, which the upgrade writes.
fn older(directory: &Path) -> PathBuf {
    let path = whole(directory);
    let store = Redb::open_any_version(&path, CACHE).unwrap();
    let rows = store.snapshot().rows().unwrap().map(|row| row.unwrap());
    let derived = rows.filter(|row| matches!(row.key.as_bytes()[0], b'h' | b'i'));
    let writes = derived.map(|row| Write::Delete(row.key)).collect();
    wait(store.commit(Batch { checks: Vec::new(), writes })).unwrap();
    store.close().unwrap();
    path
}

/// Its version and all of its rows.
fn everything(path: &Path) -> (u64, Vec<Record>) {
    let store = Redb::open_any_version(path, CACHE).unwrap();
    let rows = store.snapshot().rows().unwrap().map(|row| row.unwrap()).collect();
    (wait(store.version()).unwrap(), rows)
}

fn upgrade(path: &Path, flags: &[&str]) -> Ran {
    let url = format!("redb:{}", path.display());
    Ran::of(&mut cli(&[&["store", "upgrade", &url], flags].concat()))
}

#[track_caller]
fn json(ran: &Ran) -> Value {
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_dry_run_counts_what_the_upgrade_writes_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = older(directory.path());
    let before = everything(&path);
    let bytes = fs::read(&path).unwrap();
    let tried = json(&upgrade(&path, &["--dry-run", "--json"]));
    assert!(fs::read(&path).unwrap() == bytes, "a dry run changes no byte");
    assert_eq!(everything(&path), before);
    assert_eq!(before.0, 12);
    let done = json(&upgrade(&path, &["--json"]));
    assert_eq!((&tried["dry_run"], &done["dry_run"]), (&true.into(), &false.into()));
    assert_eq!((&done["from"], &done["to"]), (&12.into(), &SCHEMA_VERSION.into()));
    for count in ["from", "to", "records", "rows_written", "rows_removed", "rows_damaged"] {
        assert_eq!(tried[count], done[count], "{count}: {tried} {done}");
    }
    assert!(done["rows_written"].as_u64() > Some(0), "{done}");
    assert_eq!(everything(&path).0, SCHEMA_VERSION);
}

#[test]
fn a_command_that_refuses_an_older_store_changes_no_byte_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = older(directory.path());
    let bytes = fs::read(&path).unwrap();
    let (url, other) = (format!("redb:{}", path.display()), format!("redb:{}/copy.redb", directory.path().display()));
    for words in [
        &["copy", "--from", &url, "--to", &other][..],
        &["compact", &url],
        &["check", &url],
        &["repair", &url, "--yes"],
        &["repair", &url, "--dry-run"],
    ] {
        let ran = Ran::of(&mut cli(&[&["store"], words].concat()));
        assert!(ran.code == Some(1) && ran.stderr.contains("schema version 12"), "{ran:?}");
        assert!(fs::read(&path).unwrap() == bytes, "{words:?} changed the file");
    }
}

#[test]
fn an_upgraded_store_is_sound_and_needs_no_second_upgrade() {
    let directory = tempfile::tempdir().unwrap();
    let path = older(directory.path());
    let done = upgrade(&path, &[]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(!done.stderr.contains("nothing to do"), "{done:?}");
    let check = Ran::of(&mut cli(&["store", "check", &format!("redb:{}", path.display()), "--json"]));
    let report = json(&check);
    assert_eq!((&report["sound"], report["listed"].as_array().map(Vec::len)), (&true.into(), Some(0)), "{report}");
    let whole = everything(&path);
    let again = upgrade(&path, &[]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.stderr.contains("nothing to do"), "{again:?}");
    let again = json(&upgrade(&path, &["--json"]));
    assert_eq!((&again["from"], &again["rows_written"]), (&SCHEMA_VERSION.into(), &0.into()), "{again}");
    assert_eq!(everything(&path), whole);
}

#[test]
fn a_store_of_a_newer_version_is_refused_in_one_clear_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rental.redb");
    let store = Redb::open(&path, CACHE).unwrap();
    assert_eq!(wait(store.change_version(SCHEMA_VERSION, SCHEMA_VERSION + 1, Batch::default())), Ok(true));
    store.close().unwrap();
    for flags in [&["--dry-run"][..], &[], &["--keep-damaged"]] {
        let ran = upgrade(&path, flags);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
        let problem = ran.stderr.lines().next().unwrap();
        let versions = format!("schema version {}, this program knows 12 to {SCHEMA_VERSION}", SCHEMA_VERSION + 1);
        assert!(problem.contains(&versions), "{ran:?}");
        assert!(problem.contains("run the program that wrote it or a newer one"), "{ran:?}");
    }
}

/// A small disk in memory, for as long as it is in scope.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None` without the right to mount; with `RENTAL_REQUIRE_ALL` there has to be one.
    fn mount(size: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(directory.path());
        if mount.output().is_ok_and(|ran| ran.status.success()) {
            return Some(Self(directory));
        }
        assert!(std::env::var_os("RENTAL_REQUIRE_ALL").is_none(), "a tmpfs cannot be mounted");
        println!("skipped: a tmpfs cannot be mounted");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn a_disk_too_small_for_the_upgrade_is_noticed_before_it_begins() {
    let Some(disk) = SmallDisk::mount("12m") else { return };
    let path = older(disk.0.path());
    let before = everything(&path);
    let ran = upgrade(&path, &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.stderr.starts_with("error[disk_full]: ") && ran.stderr.contains("nothing was changed"), "{ran:?}");
    assert_eq!(everything(&path), before);
    json(&upgrade(&path, &["--dry-run", "--json"]));
}

/// The store, closed by a program, and then with a wrong byte in the key of an index entry.
fn damaged(directory: &Path) -> PathBuf {
    let path = whole(directory);
    let store = Redb::open_any_version(&path, CACHE).unwrap();
    let entries = store.snapshot().rows().unwrap().map(|row| row.unwrap()).filter(|row| row.key.as_bytes()[0] == b'i');
    let entries: Vec<Record> = entries.collect();
    store.close().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let key = entries[entries.len() / 2].key.as_bytes();
    let places: Vec<usize> = (0..bytes.len() - key.len()).filter(|at| bytes[*at..].starts_with(key)).collect();
    places.iter().for_each(|at| bytes[at + 18] ^= 0x5f);
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn damaged_pages_are_noticed_before_an_upgrade_begins() {
    let directory = tempfile::tempdir().unwrap();
    let path = damaged(directory.path());
    let before = fs::read(&path).unwrap();
    for flags in [&["--dry-run"][..], &[]] {
        let ran = upgrade(&path, flags);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
        assert!(ran.stderr.starts_with("error[damaged]: ") && ran.stderr.contains("restore the last good"), "{ran:?}");
    }
    assert!(fs::read(&path).unwrap() == before, "nothing was changed");
}

#[test]
fn damaged_rows_are_kept_when_somebody_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = older(directory.path());
    let rental = everything(&path).1.into_iter().filter(is_rental).last().unwrap();
    rot(&path, &rental, rental.value.len() / 2);
    let refused = upgrade(&path, &[]);
    assert!(refused.code == Some(1) && refused.stderr.contains("nothing was changed"), "{refused:?}");
    let done = json(&upgrade(&path, &["--keep-damaged", "--json"]));
    // Events contain the rental, too.
    assert!(done["from"] == 12 && done["rows_damaged"].as_u64() > Some(0), "{done}");
}

fn is_rental(row: &Record) -> bool {
    matches!(Row::decode(&row.key), Some(Row::Record { resource: 3, .. }))
}

/// An upgrade by an older program did not check the free space for the new rows of this one.
#[test]
fn the_free_space_is_checked_when_an_older_program_began_the_upgrade() {
    let Some(disk) = SmallDisk::mount("12m") else { return };
    let path = older(disk.0.path());
    begin_upgrade(&path, SCHEMA_VERSION - 1);
    let ran = upgrade(&path, &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.stderr.starts_with("error[disk_full]: "), "{ran:?}");
    let directory = tempfile::tempdir().unwrap();
    let path = older(directory.path());
    begin_upgrade(&path, SCHEMA_VERSION - 1);
    assert_eq!(json(&upgrade(&path, &["--json"]))["from"], 12);
}

/// Leaves an upgrade as a program of version `to` does that is killed after some batches.
fn begin_upgrade(path: &Path, to: u64) {
    let store = Redb::open_any_version(path, CACHE).unwrap();
    let mut begun = wait(Upgrade::begin(&store)).unwrap().unwrap().in_batches_of(30);
    assert_eq!(wait(begun.step()), Ok(Step::Continue));
    drop(begun);
    let key = rental_core::store::marks::upgrade();
    let row = wait(store.get(std::slice::from_ref(&key))).unwrap().remove(0).unwrap();
    let mut marker: Value = serde_json::from_slice(&row.value).unwrap();
    marker["to"] = to.into();
    let mut batch = Batch::default();
    batch.writes.push(Write::Put(key, row.revision, marker.to_string().into(), Prior::Any));
    assert_eq!(wait(store.change_version(SCHEMA_VERSION, to, batch)), Ok(true));
    store.close().unwrap();
}

#[test]
fn a_second_run_that_finds_damage_does_not_say_that_nothing_was_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = older(directory.path());
    begin_upgrade(&path, SCHEMA_VERSION);
    let store = Redb::open_any_version(&path, CACHE).unwrap();
    let record = store.snapshot().rows().unwrap().map(|row| row.unwrap()).filter(is_rental).last().unwrap();
    let mut batch = Batch::default();
    batch.writes.push(Write::Put(record.key, record.revision, "{".into(), Prior::Any));
    wait(store.commit(batch)).unwrap();
    store.close().unwrap();
    let ran = upgrade(&path, &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.stderr.starts_with("error[damaged]: 1 rows are damaged"), "{ran:?}");
    assert!(ran.stderr.contains("an earlier run of the upgrade changed rows"), "{ran:?}");
    assert!(!ran.stderr.contains("nothing was changed"), "{ran:?}");
}
