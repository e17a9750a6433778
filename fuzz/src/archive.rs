//! Backups and exports: any bytes are refused or become something whole, and never half of a store.

use crate::{
    Pieces,
    fixtures::{FIXTURES, Fixture},
    upgrade::now,
};
use rental_core::{
    check::Audit,
    imports::organization::{HEAD_LINES, Importer, Lines, inspect},
    operations::Edge,
    resources::{
        Resource,
        organization::{Organization, SYSTEM},
    },
    rows::key,
    store::{
        Absent, Batch, Environment, Key, Opening, Record, Restore, SCHEMA_VERSION, Span, Store, StoreError,
        archive::{Reader, Writer},
        memory::Memory,
        place,
        redb::Redb,
    },
    upgrade::{Step, Upgrade},
    value::{OrganizationId, Timestamp},
};
use std::{
    ffi::OsString,
    io::{Cursor, Read},
    path::Path,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use uuid::Uuid;

const CACHE: usize = 1 << 20;

/// Whole backups of the fixtures.
static BACKUPS: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| FIXTURES.iter().map(|Fixture { version, rows }| backup(*version, rows)).collect());

/// The first byte chooses what the rest is: a backup, changes of a whole backup, rows of a backup, or an export.
pub fn check(data: &[u8]) {
    let mut pieces = Pieces(data);
    let first = pieces.byte();
    let which = usize::from(first / 4) % FIXTURES.len();
    match first % 4 {
        0 => drop(restore(pieces.0.to_vec())),
        1 => {
            let mut bytes = BACKUPS[which].clone();
            for _ in 0..16 {
                if pieces.is_empty() {
                    break;
                }
                let at = u32::from_be_bytes(pieces.array()) as usize % bytes.len();
                match pieces.byte() {
                    0 => bytes.truncate(at.max(1)),
                    flip => bytes[at] ^= flip,
                }
            }
            let same = bytes == BACKUPS[which];
            assert_eq!(restore(bytes).is_some(), same, "a backup has a checksum over all of it");
        }
        2 => rows(first, pieces),
        _ => import(pieces.0),
    }
}

/// Rows that no program wrote, in a backup whose checksums are correct.
fn rows(first: u8, mut pieces: Pieces<'_>) {
    let version = 2 + u64::from(first / 4) % (SCHEMA_VERSION - 1);
    let mut rows = Vec::new();
    while !pieces.is_empty() && rows.len() < 64 {
        let [key, value] = pieces.array::<2>();
        let mut take = |most: u8| (0..most % 64).map(|_| pieces.byte()).collect::<Vec<u8>>();
        let (key, value) = (Key::from(take(key)), take(value));
        let revision = u64::from(value.len() as u8);
        rows.push(Record { key, revision, value: value.into() });
    }
    rows.sort_by(|one, other| one.key.cmp(&other.key));
    rows.dedup_by(|one, other| one.key == other.key);
    let kept: Vec<&Record> = rows.iter().filter(|row| !key::is_of_servers(&row.key)).collect();
    let Some(found) = restore(backup(version, &rows)) else {
        assert_ne!(version, SCHEMA_VERSION, "rows of this version are taken as they are");
        return;
    };
    if version == SCHEMA_VERSION && !found.is_empty() {
        assert_eq!(found.iter().collect::<Vec<_>>(), kept);
    }
}

fn backup(version: u64, rows: &[Record]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), version, "fuzz", Timestamp::default()).expect("memory takes it");
    for row in rows {
        writer.push(row).expect("a row in order");
    }
    writer.finish().expect("memory takes it").0
}

/// Restores a backup as `store restore` does. The directory has a store afterwards, or nothing; its rows.
fn restore(bytes: Vec<u8>) -> Option<Vec<Record>> {
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let directory = directory.expect("a directory");
    let path = directory.path().join("a.redb");
    let restored = restore_to(&path, bytes);
    let names: Vec<OsString> =
        std::fs::read_dir(directory.path()).expect("names").map(|entry| entry.expect("a name").file_name()).collect();
    if !restored {
        assert!(names.is_empty(), "a failed restore left {names:?}");
        return None;
    }
    assert_eq!(names, ["a.redb"]);
    match Redb::open(&path, CACHE) {
        Ok(store) => {
            let rows = store.snapshot().rows().expect("rows").map(|row| row.expect("a sound row")).collect();
            store.close().expect("it closes");
            Some(rows)
        }
        // The backup has the mark of an upgrade.
        Err(StoreError::NeedsUpgrade(_)) => Some(Vec::new()),
        Err(error) => panic!("a restored store does not open: {error}"),
    }
}

fn restore_to(path: &Path, bytes: Vec<u8>) -> bool {
    struct Nothing;
    impl Environment for Nothing {
        fn variable(&self, _: &str) -> Option<OsString> {
            None
        }

        fn file(&self, _: &Path) -> Result<Vec<u8>, String> {
            Err("there is none".into())
        }
    }
    let Ok(mut archive) = Reader::open(Box::new(Cursor::new(bytes)) as Box<dyn Read>) else { return false };
    let opening = Opening {
        cache_bytes: CACHE,
        writer: Uuid::from_u128(1),
        patience: Duration::from_secs(1),
        environment: &Nothing,
        absent: Absent::Create,
    };
    let restore = Restore {
        archive: &mut archive,
        moves: |key| !key::is_of_servers(key),
        progress: &mut |_| {},
        upgrade: &|store| {
            Box::pin(async move {
                let upgrade = Upgrade::begin(store).await.map_err(|error| error.to_string())?;
                let Some(mut upgrade) = upgrade else { return Ok(()) };
                while upgrade.step().await.map_err(|error| error.to_string())? != Step::Done {}
                Ok(())
            })
        },
    };
    let to = place(&format!("redb:{}", path.display())).expect("a place");
    now(to.restore(&opening, restore)).is_ok()
}

/// A clock that stands, and ids that count.
struct Fixed(AtomicU64);

impl Edge for Fixed {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_795_288_412_007)
    }

    fn new_id(&self) -> Uuid {
        let n = self.0.fetch_add(1, Ordering::Relaxed);
        Uuid::from_u128(1_795_288_412_007 << 80 | 7 << 76 | 2 << 62 | u128::from(n))
    }
}

/// An export is imported into an empty organization. What is taken fits together.
fn import(bytes: &[u8]) {
    let target = Organization { id: OrganizationId::from_u128(9), ..Organization::system() };
    let Ok(inspection) = inspect(bytes, &target) else { return };
    let store = Arc::new(Memory::default());
    let mut batch = Batch::default();
    batch.insert(Organization::key(SYSTEM, target.id), serde_json::to_vec(&target).expect("JSON").into());
    now(store.commit(batch)).expect("it is committed");
    let edge = Fixed(AtomicU64::new(0));
    let importer = now(Importer::new(Arc::clone(&store) as _, None, &edge, &target, inspection.source));
    let mut importer = importer.expect("an empty store").of_version(&inspection);
    let objects = usize::try_from(inspection.objects).expect("a count of lines");
    for line in Lines::new(bytes).skip(HEAD_LINES).take(objects) {
        let (row, line) = line.expect("the inspection read it");
        now(importer.line(row, &line)).expect("the store is available");
    }
    now(importer.finish()).expect("the store is available");
    drop(importer);
    let get = |key: &Key| now(store.get(std::slice::from_ref(key))).map(|mut found| found.pop().flatten());
    let mut audit = Audit::new(&get);
    for row in now(store.scan(&Span::everything(), usize::MAX)).expect("rows") {
        audit.row(&row.expect("a sound row"));
    }
    let report = audit.finish();
    assert_eq!(report.problems, 0, "{:#?}", report.listed);
}
