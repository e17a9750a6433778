//! The stores of older versions, and what the tests do with them.

use bytes::Bytes;
use rental_core::store::{Batch, Commit, Prior};
use rental_core::{
    store::{Key, Order, Record, Revision, Span, Store, Versioned, Write, memory::Memory, redb::Redb},
    upgrade::{Marker, Step, Upgrade},
};
use std::{
    collections::BTreeMap,
    future::Future,
    path::{Path, PathBuf},
};

/// The fixtures.
pub(crate) const STORES: [&str; 1] = ["v12"];
pub(crate) const CACHE: usize = 8 << 20;

pub(crate) type Rows = BTreeMap<Key, (Revision, Bytes)>;

pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts").block_on(future)
}

/// A file of a fixture, unpacked.
pub(crate) fn fixture(directory: &str, name: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/stores").join(directory);
    match name {
        "store.backup" | "master-key" | "admin-token" | "rows.json" => std::fs::read(root.join(name)).unwrap(),
        _ => {
            let packed = std::fs::read(root.join(format!("{name}.lz4"))).unwrap();
            lz4_flex::block::decompress_size_prepended(&packed).unwrap()
        }
    }
}

#[test]
fn the_command_in_the_readme_unpacks_a_fixture() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        assert!(std::env::var_os("RENTAL_REQUIRE_ALL").is_none(), "python3 is not installed");
        return eprintln!("skipped: python3 is not installed");
    }
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/stores");
    let readme = std::fs::read_to_string(directory.join("README.md")).unwrap();
    let command = readme.lines().find(|line| line.starts_with("python3 ")).expect("a command");
    let (command, to) = command.split_once(" > ").expect("it writes a file");
    assert_eq!(to, "store.redb");
    let ran = std::process::Command::new("sh").args(["-c", command]).current_dir(directory).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(ran.stdout == fixture("v12", "store.redb"), "{} bytes", ran.stdout.len());
}

/// The redb file of a fixture, in a directory that is gone at the end.
pub(crate) fn file(directory: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rental.redb");
    std::fs::write(&path, fixture(directory, "store.redb")).unwrap();
    (folder, path)
}

/// All rows of a fixture.
pub(crate) fn rows_of(directory: &str) -> Rows {
    let (_folder, path) = file(directory);
    wait(everything(&Redb::open_any_version(&path, CACHE).unwrap()))
}

/// The rows of a fixture without its index entries and holds, so that an upgrade has many rows to write.
pub(crate) fn without_derived_rows(directory: &str) -> Rows {
    let mut rows = rows_of(directory);
    rows.retain(|key, _| !matches!(key.as_bytes()[0], b'i' | b'h'));
    rows
}

/// Removes the index entries and holds of a store.
pub(crate) async fn strip(store: &dyn Store) {
    let derived = everything(store).await.into_keys().filter(|key| matches!(key.as_bytes()[0], b'i' | b'h'));
    let batch = Batch { checks: Vec::new(), writes: derived.map(Write::Delete).collect() };
    assert_eq!(store.commit(batch).await, Ok(Commit::Applied));
}

/// The schema version of a fixture.
pub(crate) fn version_of(directory: &str) -> u64 {
    let digits: String = directory.chars().skip(1).take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// Rows of a fixture in memory.
pub(crate) fn memory(directory: &str, rows: &Rows) -> Memory {
    let store = Memory::of_version(version_of(directory));
    wait(fill(&store, rows));
    store
}

/// Writes rows as they are.
pub(crate) async fn fill(store: &dyn Store, rows: &Rows) {
    let mut batch = Batch::default();
    for (key, (revision, value)) in rows {
        batch.writes.push(Write::Put(key.clone(), *revision, value.clone(), Prior::Any));
    }
    assert_eq!(store.commit(batch).await, Ok(Commit::Applied));
}

/// All rows of a store.
pub(crate) async fn everything(store: &dyn Store) -> Rows {
    let mut span =
        Span { from: Key::from_bytes(&[]), to: Key::from_bytes(&[255; 64]), order: Order::Ascending, follow: None };
    let mut rows = Rows::new();
    loop {
        let page = store.scan(&span, 1000).await.unwrap();
        let Some(last) = page.last() else { return rows };
        span.from = Key::from_bytes(&[rental_core::store::key_of(last).as_bytes(), &[0]].concat());
        for Record { key, revision, value } in page.into_iter().flatten() {
            rows.insert(key, (revision, value));
        }
    }
}

/// Upgrades a store to the end, and gives what was counted.
pub(crate) async fn upgrade(store: &dyn Versioned) -> Option<Marker> {
    let mut upgrade = Upgrade::begin(store).await.unwrap()?;
    while upgrade.step().await.unwrap() != Step::Done {}
    Some(upgrade.progress().clone())
}

/// Compares two whole stores, row by row.
#[track_caller]
pub(crate) fn same(found: &Rows, expected: &Rows, what: &str) {
    let differs = |key: &&Key| found.get(key) != expected.get(key);
    let all = found.keys().chain(expected.keys()).filter(differs);
    let listed: Vec<String> = all
        .map(|key| {
            format!(
                "{}: {:?}, not {:?}",
                rental_core::resources::row_words::in_words(key),
                found.get(key),
                expected.get(key)
            )
        })
        .collect();
    assert!(listed.is_empty(), "{what}: {} rows differ: {:#?}", listed.len(), &listed[..listed.len().min(5)]);
}
