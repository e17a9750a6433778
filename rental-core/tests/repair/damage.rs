//! One row of each kind is damaged: its bytes in a file, or its content in any store.

use crate::{
    cluster::Cluster,
    sound::{checked, examples, find, repair, repaired, rows, store},
    stores::{CACHE, Rows, everything, fill, same, wait},
};
use redb::{Database, ReadableTable, TableDefinition};
use rental_core::{
    check::{self, Remedy, Report, repair::kind},
    resources::{organization, row_words::in_words},
    rows::{Class, Marker, Row, Tag},
    store::{
        Commit, Key, Store,
        postgres::{Address, Postgres, Settings},
        redb::{ClosedFile, Redb},
    },
    upgrade::Upgrade,
    value::OrganizationId,
};
use std::{
    collections::BTreeSet,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use uuid::Uuid;

const ROWS: TableDefinition<'static, &'static [u8], &'static [u8]> = TableDefinition::new("rows");

/// Flips a bit of stored rows, or adds a byte to an empty one.
fn rot(path: &Path, keys: &[Key]) {
    let db = Database::open(path).unwrap();
    let transaction = db.begin_write().unwrap();
    {
        let mut rows = transaction.open_table(ROWS).unwrap();
        for key in keys {
            let mut stored = rows.get(key.as_bytes()).unwrap().unwrap().value().to_vec();
            match stored.last_mut() {
                Some(last) => *last ^= 1,
                None => stored.push(7),
            }
            rows.insert(key.as_bytes(), stored.as_slice()).unwrap();
        }
    }
    transaction.commit().unwrap();
}

/// Whether the row follows from other rows, so that the repair writes it again as it was.
fn follows(key: &Key) -> bool {
    let row = Row::decode(key).unwrap();
    match row {
        // What counts the changes of a transponder or plate begins anew.
        Row::Counter { name, .. } => !name.starts_with("number-"),
        Row::Subscribed { .. } | Row::Due { .. } | Row::Recheck { .. } | Row::IdempotencyExpiry { .. } => true,
        _ => row.class() == Class::Derived && !matches!(row, Row::Calendar { .. }),
    }
}

/// What every repair of one damaged row must show.
#[track_caller]
fn judge(damaged: &Key, report: &Report, after: &Rows) {
    let what = in_words(damaged);
    if matches!(Row::decode(damaged), Some(Row::Record { resource, .. }) if resource == organization::SPEC.tag) {
        return;
    }
    let left = |remedy| report.remedies.get(&remedy).copied().unwrap_or_default();
    // Without a token, the root operator makes a new one.
    let is_way = matches!(Row::decode(damaged), Some(Row::Access { .. }));
    assert_eq!(
        (left(Remedy::Decision), left(Remedy::Backup)),
        (u64::from(is_way && left(Remedy::Decision) > 0), 0),
        "{what}: {:#?}",
        report.listed
    );
    let all: BTreeSet<&Key> = rows().keys().chain(after.keys()).collect();
    let changed: Vec<String> = all
        .into_iter()
        .filter(|key| rows().get(*key) != after.get(*key) && *key != damaged && !is_about(key, damaged))
        .map(in_words)
        .collect();
    assert!(changed.is_empty(), "{what} changes {changed:#?}");
    if follows(damaged) {
        let (revision, value) = &rows()[damaged];
        let found = after.get(damaged).unwrap_or_else(|| panic!("{what} is not written again"));
        assert_eq!((&found.1, found.0.min(1)), (value, (*revision).min(1)), "{what}");
    } else if let Some(Row::Erased { organization, id, .. }) = Row::decode(damaged) {
        // Without the mark, a restored backup would bring the person back.
        let mark = String::from_utf8(after[damaged].1.to_vec()).unwrap();
        let says = mark.contains(&organization.to_string()) && mark.contains(&id.to_string());
        assert!(says || rows()[damaged].1.is_empty(), "{what}: {mark}");
    } else if !matches!(
        Row::decode(damaged),
        Some(Row::Identity { .. } | Row::Secrets { .. } | Row::Calendar { .. } | Row::CalendarFeed { .. })
    ) {
        assert!(!after.contains_key(damaged), "{what} is still there");
    }
}

/// Whether a row is about the object of a damaged row: its key or its value contains an id in the damaged key or value.
fn is_about(key: &Key, damaged: &Key) -> bool {
    let (_, value) = &rows()[damaged];
    let ids = |bytes: &[u8]| bytes.windows(16).map(<[u8]>::to_vec).collect::<std::collections::HashSet<_>>();
    let own = ids(&key.as_bytes()[1..]);
    let text = String::from_utf8_lossy(value);
    let named = |id: &[u8]| Uuid::from_slice(id).is_ok_and(|id| text.contains(&id.to_string()));
    let theirs = rows().get(key).map(|row| row.1.clone()).unwrap_or_default();
    let id = damaged.id();
    id.is_some_and(|id| own.contains(id.as_bytes().as_slice()) || theirs.windows(16).any(|part| part == id.as_bytes()))
        || own.iter().any(|id| named(id))
        || value.windows(16).any(|part| own.contains(part))
        || matches!((Row::decode(key), Row::decode(damaged)), (Some(Row::IdempotencyExpiry { name, .. }), Some(Row::IdempotencyRecord { name: other, .. })) if name == other)
}

#[test]
fn a_row_of_every_kind_whose_bytes_are_damaged_is_removed_or_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sound.redb");
    let sound = Redb::open(&path, CACHE).unwrap();
    wait(fill(&sound, rows()));
    sound.close().unwrap();
    let examples = examples();
    assert!(examples.len() > Tag::ALL.len());
    for damaged in &examples {
        let copy = directory.path().join("damaged.redb");
        std::fs::copy(&path, &copy).unwrap();
        rot(&copy, std::slice::from_ref(damaged));
        let store = Redb::open(&copy, CACHE);
        if matches!(Row::decode(damaged), Some(Row::Marker(Marker::Upgrade))) {
            continue;
        }
        let store = store.unwrap();
        let (found, report) = match Row::decode(damaged) {
            Some(Row::Record { resource, .. }) if resource == organization::SPEC.tag => {
                let found = wait(repair(&store, 4000)).unwrap();
                assert!(found.changes.is_empty() && found.left.problems > 0, "{:#?}", found.changes);
                continue;
            }
            _ => repaired(&store),
        };
        assert_eq!(found.changes[damaged].revision, None);
        let after = wait(everything(&store));
        store.close().unwrap();
        judge(damaged, &report, &after);
        let checked = check::of_file(&ClosedFile::open(&copy, CACHE).unwrap(), &mut |_| {});
        assert_eq!(checked.problems, report.problems, "{}: {:#?}", kind(damaged), checked.listed);
    }
}

/// Content that no program writes, with a correct checksum.
fn junk(keys: &[Key]) -> Rows {
    let mut rows = rows().clone();
    for key in keys {
        rows.insert(key.clone(), (1, "?".into()));
    }
    rows
}

#[test]
fn a_row_of_every_kind_that_does_not_parse_is_removed_or_written_again() {
    for damaged in &examples() {
        let store = store(&junk(std::slice::from_ref(damaged)));
        // The value of these rows says nothing, so that no content is wrong.
        let says_nothing = matches!(
            Row::decode(damaged),
            Some(
                Row::Subscribed { .. }
                    | Row::Erased { .. }
                    | Row::Counter { .. }
                    | Row::Heartbeat { .. }
                    | Row::Owner { .. }
                    | Row::Bell { .. }
            )
        );
        let (found, report) = repaired(&store);
        if says_nothing && found.changes.is_empty() {
            continue;
        }
        judge(damaged, &report, &wait(everything(&store)));
    }
}

#[test]
fn a_derived_row_of_every_kind_that_is_missing_is_written_again() {
    for missing in examples() {
        let row = Row::decode(&missing).unwrap();
        let derived = row.class() == Class::Derived || matches!(row, Row::IdempotencyExpiry { .. });
        if !derived {
            continue;
        }
        let mut without = rows().clone();
        without.remove(&missing);
        let store = store(&without);
        assert_eq!(repaired(&store).1.listed, []);
        // An organization of the fixture has no webhook endpoints any more, and vehicles can hold nothing.
        if !matches!(row, Row::Subscribed { .. } | Row::Calendar { .. }) {
            let found = &wait(everything(&store))[&missing];
            assert_eq!(found.1, rows()[&missing].1, "{}", in_words(&missing));
        }
    }
}

#[test]
fn what_refers_to_nothing_is_removed_and_the_rest_stays() {
    let mut with = rows().clone();
    let mut added = Vec::new();
    for key in examples() {
        let row = Row::decode(&key).unwrap();
        // Another id at the end: the same row of an object that does not exist.
        let refers = matches!(
            row,
            Row::IndexEntry { .. } | Row::Hold { .. } | Row::Due { .. } | Row::Outbox { .. } | Row::Secrets { .. }
        );
        if refers {
            let mut bytes = key.as_bytes().to_vec();
            *bytes.last_mut().unwrap() ^= 0x80;
            let (key, row) = (Key::from_bytes(&bytes), rows()[&key].clone());
            added.push(key.clone());
            with.insert(key, row);
        }
    }
    assert!(added.len() > 6);
    let store = store(&with);
    let (found, report) = repaired(&store);
    assert_eq!(report.listed, []);
    assert!(found.changes.keys().all(|key| added.contains(key)), "{:#?}", found.changes);
    same(&wait(everything(&store)), rows(), "the rest");
}

#[test]
fn rows_of_no_known_kind_are_removed_and_half_a_copy_is_not_taken_for_a_store() {
    let mut with = rows().clone();
    let unknown = Key::from_bytes(b"zzz");
    with.insert(unknown.clone(), (1, "?".into()));
    with.insert(rental_core::store::marks::loading(), (1, "".into()));
    let store = store(&with);
    let found = wait(repair(&store, 4000)).unwrap();
    assert_eq!(found.changes.keys().collect::<Vec<_>>(), [&unknown]);
    assert_eq!(checked(&wait(everything(&store))).problems, 1);
}

#[test]
fn without_its_organization_nothing_of_an_organization_is_removed() {
    let record = rows().keys().find(
        |key| matches!(Row::decode(key), Some(Row::Record { resource, .. }) if resource == organization::SPEC.tag),
    );
    let mut without = rows().clone();
    without.remove(record.unwrap());
    let store = store(&without);
    let found = wait(repair(&store, 4000)).unwrap();
    assert!(found.changes.is_empty(), "{:#?}", found.changes);
    let after = wait(everything(&store));
    let lost = Row::decode(record.unwrap()).and_then(|row| match row {
        Row::Record { id, .. } => Some(OrganizationId::from_uuid(id)),
        _ => None,
    });
    let of_it = |key: &&Key| Row::decode(key).and_then(|row| row.organization()) == lost;
    assert_eq!(after.keys().filter(of_it).collect::<Vec<_>>(), without.keys().filter(of_it).collect::<Vec<_>>());
    let is_object = |key: &&Key| of_it(key) && key.as_bytes()[0] == Tag::Record as u8;
    let objects = without.keys().filter(is_object).count() as u64;
    let report = checked(&after);
    assert!(objects > 10 && report.lost_organizations == [(lost.unwrap(), objects)].into());
    let told = &report.listed[0];
    assert_eq!(told.place, format!("organization {}", lost.unwrap()));
    assert!(told.what.starts_with(&format!("its record is lost, and {objects} objects of it are there")), "{told:?}");
}

fn settings() -> Settings {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let writer = Uuid::from_u128(NEXT.fetch_add(1, Ordering::Relaxed).into());
    Settings { writer, patience: Duration::from_secs(10) }
}

#[test]
fn a_database_is_repaired_as_a_file_is() {
    let Some(cluster) = Cluster::shared() else { return };
    // One of each kind, except those after which much of the rest would differ.
    let damaged: Vec<Key> = examples()
        .into_iter()
        .filter(
            |key| !matches!(Row::decode(key), Some(Row::Record { resource, .. }) if resource == organization::SPEC.tag),
        )
        .step_by(2)
        .collect();
    let rows = junk(&damaged);
    let directory = tempfile::tempdir().unwrap();
    let file = Redb::open(&directory.path().join("a.redb"), CACHE).unwrap();
    wait(fill(&file, &rows));
    let (of_file, _) = repaired(&file);
    let url = cluster.database();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = runtime.block_on(Postgres::open(&Address::parse(&url).unwrap(), None, settings())).unwrap();
    runtime.block_on(fill(&store, &rows));
    let found = runtime.block_on(repair(&store, 4000)).unwrap();
    assert_eq!((&found.changes, &found.left), (&of_file.changes, &of_file.left));
    same(&runtime.block_on(everything(&store)), &wait(everything(&file)), "the database");
    runtime.block_on(store.close());
}

#[test]
fn a_row_that_another_program_changed_since_is_not_overwritten() {
    let damaged =
        examples().into_iter().find(|key| matches!(Row::decode(key), Some(Row::IdempotencyRecord { .. }))).unwrap();
    let store = store(&junk(std::slice::from_ref(&damaged)));
    let found = find(&store);
    wait(Upgrade::again(&store)).unwrap();
    let mut batch = rental_core::store::Batch::default();
    batch.replace(damaged.clone(), 1, "!".into());
    wait(Store::commit(&store, batch)).unwrap();
    assert_eq!(wait(check::repair::apply(&store, &found)), Ok(Commit::Stale(damaged.clone())));
    assert_eq!(wait(everything(&store))[&damaged].1, "!");
}
