//! From a running store to an archive to a new store: the same rows, or nothing under the name.

use crate::fleet::{CACHE, Still, create, dump, dump_file, fleet, row};
use rental_core::{
    check,
    resources::organization::Organization,
    store::{
        RestoreError, StoreError,
        archive::{ArchiveError, Reader, Writer},
        redb::{self, ClosedFile, Redb, SCHEMA_VERSION, Snapshot},
    },
    value::Timestamp,
};
use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

fn archive(snapshot: &Snapshot, version: u64) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), version, "test", Timestamp::default()).expect("memory takes it");
    for row in snapshot.rows().expect("it can be read") {
        writer.push(&row.expect("a whole row")).expect("memory takes it");
    }
    writer.finish().expect("memory takes it").0
}

fn restore(bytes: &[u8], to: &Path) -> Result<redb::Restored, RestoreError> {
    redb::restore(to, CACHE, &mut Reader::open(bytes).map_err(RestoreError::Archive)?, &mut |_| {})
}

/// Ends the load, also when the test fails.
struct Ends<'s>(&'s AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_backup_under_load_gives_the_rows_of_one_moment_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.redb");
    fleet(&path, 30);
    let store = Redb::open(&path, CACHE).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let (edge, system, mut made) = (Still::default(), Organization::system(), 0);
            edge.skip(5000);
            while !stop.load(Ordering::Relaxed) {
                create(&store, &edge, &system, row("vehicle"), r#"{"name":"Another"}"#);
                made += 1;
            }
            made
        });
        let ends = Ends(&stop);
        for round in 0..5 {
            let snapshot = store.snapshot();
            std::thread::sleep(std::time::Duration::from_millis(20));
            let expected: Vec<_> = snapshot.rows().unwrap().map(Result::unwrap).collect();
            let to = directory.path().join(format!("b{round}.redb"));
            let made = restore(&archive(&snapshot, SCHEMA_VERSION), &to).unwrap();
            assert!(dump_file(&to) == expected, "round {round}");
            assert_eq!(made.archive.rows, expected.len() as u64);
            // A busy machine may have kept the writer from its turn for a moment.
            let pause = std::time::Duration::from_millis(5);
            let grows = (0..2_000).any(|_| {
                std::thread::sleep(pause);
                dump(&store).len() != expected.len()
            });
            assert!(grows, "there was no load");
            let report = check::of_file(&ClosedFile::open(&to, CACHE).unwrap(), &mut |_| {});
            assert_eq!((report.problems, report.rows), (0, expected.len() as u64), "{:?}", report.listed);
        }
        drop(ends);
        assert!(writer.join().unwrap() > 5);
    });
}

#[test]
fn a_damaged_backup_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.redb");
    fleet(&path, 20);
    let store = Redb::open(&path, CACHE).unwrap();
    let whole = archive(&store.snapshot(), SCHEMA_VERSION);
    let to = directory.path().join("b.redb");
    for at in [whole.len() / 3, whole.len() - 20] {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        assert!(matches!(restore(&bytes, &to), Err(RestoreError::Archive(ArchiveError::Damaged { .. }))));
    }
    let cut = restore(&whole[..whole.len() - 1], &to);
    assert!(matches!(cut, Err(RestoreError::Archive(ArchiveError::Truncated { .. }))));
    let other = restore(&archive(&store.snapshot(), SCHEMA_VERSION + 1), &to);
    assert!(matches!(other, Err(RestoreError::Version(version)) if version == SCHEMA_VERSION + 1));
    assert_eq!(names(directory.path()), ["a.redb"]);
}

#[test]
fn a_restore_takes_no_name_that_is_taken_and_no_notice_of_what_an_interrupted_one_left() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.redb");
    fleet(&path, 3);
    let store = Redb::open(&path, CACHE).unwrap();
    let whole = archive(&store.snapshot(), SCHEMA_VERSION);
    store.close().unwrap();
    let before = fs::read(&path).unwrap();
    assert!(matches!(restore(&whole, &path), Err(RestoreError::Exists(..))));
    assert!(fs::read(&path).unwrap() == before);
    let to = directory.path().join("b.redb");
    let left = directory.path().join("b.redb.new");
    fs::write(&left, "half a store").unwrap();
    restore(&whole, &to).unwrap();
    assert_eq!(names(directory.path()), ["a.redb", "b.redb", "b.redb.new"]);
    assert_eq!(fs::read(&left).unwrap(), b"half a store");
}

/// Names in the directory are predictable, so another user of it could put a link where a new store begins.
#[cfg(unix)]
#[test]
fn a_new_store_follows_no_link_that_waits_for_it_and_only_its_owner_reads_it() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("victim"), "precious").unwrap();
    symlink(at("victim"), at("a.redb.new")).unwrap();
    Redb::open(&at("a.redb"), CACHE).unwrap().close().unwrap();
    assert_eq!(fs::read(at("victim")).unwrap(), b"precious");
    let made = fs::symlink_metadata(at("a.redb")).unwrap();
    assert!(made.is_file() && made.permissions().mode() & 0o777 == 0o600, "{made:?}");
    // A link from the usual place to a volume.
    symlink(at("volume.redb"), at("b.redb")).unwrap();
    Redb::open(&at("b.redb"), CACHE).unwrap().close().unwrap();
    assert!(fs::symlink_metadata(at("volume.redb")).unwrap().is_file());
    assert_eq!(names(directory.path()), ["a.redb", "a.redb.new", "b.redb", "victim", "volume.redb"]);
}

#[test]
fn of_processes_that_begin_a_store_at_once_none_empties_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.redb");
    for _ in 0..8 {
        std::thread::scope(|scope| {
            let open = || Redb::open(&path, CACHE);
            let opened: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            let opened: Vec<_> = opened.into_iter().map(|one| one.join().unwrap()).collect();
            assert_eq!(opened.iter().filter(|one| one.is_ok()).count(), 1, "one has the file, the others wait for it");
            opened.into_iter().filter_map(Result::err).for_each(|error| {
                assert!(matches!(error, StoreError::InUse(_)), "{error}");
            });
        });
        fs::remove_file(&path).unwrap();
    }
    assert!(names(directory.path()).is_empty());
}

#[test]
fn compacting_keeps_every_row_and_gives_space_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.redb");
    fleet(&path, 60);
    let before = dump_file(&path);
    let made = redb::compact(&path, CACHE).unwrap();
    assert!(made.after < made.before, "{made:?}");
    assert_eq!(fs::metadata(&path).unwrap().len(), made.after);
    assert!(dump_file(&path) == before);
    let open = Redb::open(&path, CACHE).unwrap();
    let refused = redb::compact(&path, CACHE).expect_err("it is open").to_string();
    assert!(refused.contains("in use by another process"), "{refused}");
    drop(open);
    assert!(redb::compact(&directory.path().join("none.redb"), CACHE).is_err());
    assert_eq!(names(directory.path()), ["a.redb"]);
}

#[test]
fn what_a_killed_restore_has_left_is_removed_and_other_files_stay() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.redb");
    let leave = || {
        for name in ["a.redb.Ab12Cd34Ef56.new", "a.redb.backup.new", "a.redb.Ab12Cd34Ef56", "b.redb.Ab12Cd34Ef56.new"] {
            fs::write(directory.path().join(name), "rows").unwrap();
        }
    };
    let others = ["a.redb", "a.redb.Ab12Cd34Ef56", "a.redb.backup.new", "b.redb.Ab12Cd34Ef56.new"];
    leave();
    Redb::open(&path, CACHE).unwrap().close().unwrap();
    assert_eq!(names(directory.path()), others, "a new store");
    leave();
    Redb::open(&path, CACHE).unwrap().close().unwrap();
    assert_eq!(names(directory.path()), others, "a store that was there");
    leave();
    let in_use = fs::File::open(directory.path().join("a.redb.Ab12Cd34Ef56.new")).unwrap();
    in_use.lock().unwrap();
    Redb::open(&path, CACHE).unwrap().close().unwrap();
    assert!(directory.path().join("a.redb.Ab12Cd34Ef56.new").exists(), "another process works on it");
}

#[test]
fn a_store_without_a_name_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = Redb::nameless(directory.path(), CACHE).unwrap();
    let (edge, system) = (Still::default(), Organization::system());
    create(&store, &edge, &system, row("vehicle"), r#"{"name":"One"}"#);
    assert!(store.snapshot().rows().unwrap().count() > 0);
    assert!(names(directory.path()).is_empty());
    store.close().unwrap();
}
