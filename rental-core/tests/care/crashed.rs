//! A file that was not closed: what redb opens of it, and what it refuses.

use crate::fleet::{CACHE, dump, dump_file, fleet, wait};
use rental_core::store::{
    Batch, Commit, Record, Store, StoreError,
    redb::{ClosedFile, Redb, compact},
};
use std::{fs, path::PathBuf, process::Command};

/// A store that a crash left behind.
struct Crashed {
    _directory: tempfile::TempDir,
    path: PathBuf,
    bytes: Vec<u8>,
    rows: Vec<Record>,
}

impl Crashed {
    fn of(rentals: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (path, crashed) = (directory.path().join("a.redb"), directory.path().join("b/b.redb"));
        fs::create_dir(crashed.parent().unwrap()).unwrap();
        fleet(&path, rentals);
        // Little of the file is out of use then.
        compact(&path, CACHE).unwrap();
        let rows = dump_file(&path);
        let store = Redb::open(&path, CACHE).unwrap();
        let with_value: Vec<&Record> = rows.iter().filter(|row| row.value.len() > 40).collect();
        for row in with_value.iter().take(1) {
            let there = wait(store.get(std::slice::from_ref(&row.key))).unwrap().remove(0).unwrap();
            let mut batch = Batch::default();
            batch.replace(row.key.clone(), there.revision, there.value);
            assert_eq!(wait(store.commit(batch)), Ok(Commit::Applied));
        }
        // Before the writer has time to save what makes a recovery short.
        let bytes = fs::read(&path).unwrap();
        Self { _directory: directory, path: crashed, bytes, rows: { dump(&store) } }
    }

    /// Makes the file anew, with these changes.
    fn damaged(&self, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
        for file in self.beside() {
            fs::remove_file(file).unwrap();
        }
        let mut bytes = self.bytes.clone();
        change(&mut bytes);
        fs::write(&self.path, &bytes).unwrap();
        bytes
    }

    /// All files of the directory.
    fn beside(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.path.parent().unwrap()).unwrap();
        let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        files
    }
}

/// After a crash redb checks every page, and takes none of a file in which one is damaged.
#[test]
fn a_crashed_store_with_a_damaged_page_is_refused_with_the_way_out_and_left_as_it_is() {
    let crashed = Crashed::of(30);
    for row in crashed.rows.iter().filter(|row| row.value.len() > 100).step_by(101).take(8) {
        let bytes = crashed.damaged(|bytes| {
            let places: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&row.value)).collect();
            assert!(!places.is_empty());
            places.into_iter().for_each(|at| bytes[at + 50] ^= 6);
        });
        let opened = [
            Redb::open(&crashed.path, CACHE).map(drop),
            Redb::open_unchanged(&crashed.path, CACHE).map(drop),
            ClosedFile::open(&crashed.path, CACHE).map(drop),
        ];
        for refused in opened {
            let Err(StoreError::DamagedStore(why)) = refused else { panic!("{refused:?}") };
            assert!(why.contains("restore it from a backup"), "{why}");
        }
        assert!(fs::read(&crashed.path).unwrap() == bytes, "nothing of that changes it");
        assert_eq!(crashed.beside(), std::slice::from_ref(&crashed.path));
    }
    crashed.damaged(|_| {});
    assert!(dump_file(&crashed.path) == crashed.rows, "without damage it is recovered");
}

#[test]
fn a_file_without_its_first_pages_is_no_store() {
    let crashed = Crashed::of(5);
    let refuses = |change: &dyn Fn(&mut [u8])| {
        let bytes = crashed.damaged(change);
        let refused = Redb::open(&crashed.path, CACHE).map(drop).unwrap_err();
        assert!(
            matches!(&refused, StoreError::DamagedStore(why) if why.contains("restore it from a backup")),
            "{refused:?}"
        );
        assert!(fs::read(&crashed.path).unwrap() == bytes);
        assert_eq!(crashed.beside(), std::slice::from_ref(&crashed.path));
    };
    refuses(&|bytes| bytes[0] ^= 1);
    // Both commit slots.
    refuses(&|bytes| bytes[64..320].fill(7));
    fs::write(&crashed.path, b"").unwrap();
    assert!(Redb::open(&crashed.path, CACHE).is_err(), "an empty file is no new store");
}

/// After a failure of the disk, what the system has cached of the file need not be on it.
#[test]
fn after_a_failure_of_the_disk_the_next_start_checks_every_page_once() {
    let crashed = Crashed::of(30);
    let unchecked = crashed.path.with_file_name("b.redb.unchecked");
    let row = crashed.rows.iter().rfind(|row| row.value.len() > 100).unwrap();
    crashed.damaged(|bytes| {
        let places: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&row.value)).collect();
        places.into_iter().for_each(|at| bytes[at + 50] ^= 6);
    });
    fs::write(&unchecked, b"").unwrap();
    let refused = Redb::open(&crashed.path, CACHE).map(drop).unwrap_err();
    assert!(matches!(refused, StoreError::DamagedStore(_)), "{refused:?}");
    assert!(unchecked.exists(), "it is checked again until it is sound");
    crashed.damaged(|_| {});
    fs::write(&unchecked, b"").unwrap();
    Redb::open(&crashed.path, CACHE).unwrap().close().unwrap();
    assert!(!unchecked.exists());
}

#[test]
fn what_is_no_regular_file_is_refused_and_nobody_waits() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe.redb");
    if !Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()) {
        println!("skipped: mkfifo is not installed");
        return;
    }
    let refused = |opened: Result<(), StoreError>| {
        let why = opened.unwrap_err().to_string();
        assert!(why.contains("pipe.redb is a named pipe, and a store is a regular file; check the path"), "{why}");
    };
    refused(Redb::open(&pipe, CACHE).map(drop));
    refused(Redb::open_any_version(&pipe, CACHE).map(drop));
    refused(Redb::open_unchanged(&pipe, CACHE).map(drop));
    refused(ClosedFile::open(&pipe, CACHE).map(drop));
    refused(compact(&pipe, CACHE).map(drop));
    let link = directory.path().join("link-to-pipe.redb");
    std::os::unix::fs::symlink(&pipe, &link).unwrap();
    refused(Redb::open(&link, CACHE).map(drop));
}
