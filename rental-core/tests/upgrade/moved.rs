//! Backups and exports of older versions come in as what the present program would have made of them.

use crate::stores::{CACHE, STORES, everything, fixture, upgrade, version_of, wait};
use rental_core::{
    imports::organization::{self, Importer, Lines},
    operations::edge::Edge,
    resources::{
        Resource,
        organization::{Organization, SYSTEM},
    },
    store::{
        Batch, Restore, RestoreError, SCHEMA_VERSION, Store, Upgrading, Versioned,
        archive::Reader,
        memory::Memory,
        redb::{self, Redb, Restored},
    },
    upgrade::state,
    value::{OrganizationId, Timestamp},
};
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    io::{Cursor, Read},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use uuid::Uuid;

fn restored(backup: &[u8], path: &Path, upgrade: &Upgrading<'_>) -> Result<Restored, RestoreError> {
    let mut archive = Reader::open(Box::new(Cursor::new(backup.to_vec())) as Box<dyn Read>).unwrap();
    let restore = Restore { archive: &mut archive, moves: |_| true, progress: &mut |_| {}, upgrade };
    wait(redb::restore_and_upgrade(path, CACHE, restore))
}

#[test]
fn a_backup_of_an_older_version_is_restored_as_the_present_one() {
    STORES.into_iter().for_each(restored_as_the_present_one);
}

fn restored_as_the_present_one(directory: &str) {
    let (backup, version) = (fixture(directory, "store.backup"), version_of(directory));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rental.redb");
    let mut archive = Reader::open(backup.as_slice()).unwrap();
    assert_eq!(archive.header().schema_version, version);
    let refused = redb::restore(&path, CACHE, &mut archive, &mut |_| {});
    assert!(matches!(refused, Err(RestoreError::Version(found)) if found == version) && !path.exists());
    let broken = restored(&backup, &path, &|_| Box::pin(async { Err("no upgrade".into()) }));
    assert!(broken.is_err() && !path.exists(), "nothing lies there until it is upgraded");
    let made = restored(&backup, &path, &|store| {
        Box::pin(async {
            upgrade(store).await;
            Ok(())
        })
    })
    .unwrap();
    let store = Redb::open(&path, CACHE).expect("it is of the present version");
    assert_eq!(wait(store.version()), Ok(SCHEMA_VERSION));
    // The same as the rows of the backup, upgraded in memory.
    let model = Memory::of_version(version);
    let mut archive = Reader::open(backup.as_slice()).unwrap();
    let mut rows = crate::stores::Rows::new();
    while let Some(frame) = archive.next_frame().unwrap() {
        rows.extend(frame.into_iter().map(|record| (record.key, (record.revision, record.value))));
    }
    assert_eq!(made.archive.rows, rows.len() as u64);
    wait(crate::stores::fill(&model, &rows));
    wait(upgrade(&model));
    crate::stores::same(&wait(everything(&store)), &wait(everything(&model)), "restored");
    assert!(matches!(wait(state(&store)), Ok(rental_core::upgrade::State::Current)));
}

/// Ids count from the year 2030 on: those of the export are older.
struct Later(AtomicU64);

impl Edge for Later {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_900_000_000_000)
    }

    fn new_id(&self) -> Uuid {
        let count = u128::from(self.0.fetch_add(1, Ordering::Relaxed));
        Uuid::from_u128((u128::from(self.now().millis()) << 80) | (0x7 << 76) | (0x2 << 62) | count)
    }
}

type Objects = BTreeMap<String, Map<String, Value>>;

/// Imports a file into a new organization; gives its objects by id.
fn imported(file: &[u8]) -> Objects {
    let edge = Later(AtomicU64::new(0));
    let mut target = Organization::system();
    target.id = OrganizationId::from_u128(9);
    let store = Arc::new(Memory::default());
    let (place, mut batch) = (Organization::key(SYSTEM, target.id), Batch::default());
    batch.insert(place.clone(), serde_json::to_vec(&target).unwrap().into());
    wait(store.commit(batch)).unwrap();
    let found = organization::inspect(file, &target).expect("it is whole");
    let arrivals = wait(Importer::new(Arc::clone(&store) as Arc<dyn Store>, None, &edge, &target, found.source));
    let mut arrivals = arrivals.unwrap().of_version(&found);
    for line in Lines::new(file).skip(organization::HEAD_LINES).take(usize::try_from(found.objects).unwrap()) {
        let (row, line) = line.unwrap();
        wait(arrivals.line(row, &line)).unwrap();
    }
    wait(arrivals.finish()).unwrap();
    assert_eq!((arrivals.counts.created, arrivals.counts.invalid), (found.objects, 0), "{:?}", arrivals.counts);
    let all = wait(everything(store.as_ref()));
    let records = all.iter().filter(|(key, _)| key.as_bytes().first() == Some(&b'r') && **key != place);
    let object = |value: &[u8]| -> Map<String, Value> { serde_json::from_slice(value).unwrap() };
    records.map(|(_, row)| object(&row.1)).map(|object| (object["id"].as_str().unwrap().to_owned(), object)).collect()
}

#[test]
fn an_export_of_an_older_version_is_imported_whole() {
    for directory in STORES {
        let file = fixture(directory, "export.jsonl");
        let text = String::from_utf8(file.clone()).unwrap();
        let objects = imported(&file);
        let rental = objects.values().find(|object| object["object"] == "rental").unwrap();
        assert_eq!(rental["time_zone"], "America/New_York");
        let lines = text.lines().skip(organization::HEAD_LINES);
        for line in lines.filter(|line| !line.contains("\"export_end\"")) {
            let before: Map<String, Value> = serde_json::from_str(line).unwrap();
            let now = &objects[before["id"].as_str().unwrap()];
            for (name, member) in before.iter().filter(|(name, _)| *name != "organization_id") {
                assert_eq!(now[name], *member, "{name} of {line}");
            }
        }
    }
}

#[test]
fn an_export_tells_its_version() {
    assert_eq!(organization::first_line(), format!("{{\"object\":\"export\",\"schema_version\":{SCHEMA_VERSION}}}\n"));
}
