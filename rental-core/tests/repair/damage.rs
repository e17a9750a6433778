//! One row of each kind is damaged: its bytes in a file, or its content in any store.

use crate::{
    cluster::Cluster,
    sound::{examples, plan, repaired, rows, store},
    stores::{CACHE, Rows, everything, fill, same, wait},
};
use bytes::Bytes;
use redb::{Database, ReadableTable, TableDefinition};
use rental_core::{
    check::{
        self,
        repair::{Action, Found, Plan, kind},
    },
    resources::{
        assignment, credit_note, customer, invoice, operator, organization, rental, row_words::in_words, toll, vehicle,
        violation,
    },
    rows::{Class, Marker, Row, Tag, key, recheck::Marked},
    store::{
        Engine, Key, Store,
        postgres::{Address, Postgres, Settings},
        redb::{ClosedFile, Redb},
    },
    value::OrganizationId,
};
use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use uuid::Uuid;

const ROWS: TableDefinition<'static, &'static [u8], &'static [u8]> = TableDefinition::new("rows");

/// Flips a bit of stored rows, or adds a byte to an empty one.
pub(crate) fn rot(path: &Path, keys: &[Key]) {
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

/// Whether problems remain after the repair of this row, and why no repair can avoid it.
fn remains(key: &Key) -> Option<&'static str> {
    match Row::decode(key)? {
        Row::Record { resource, .. } if resource == organization::SPEC.tag => Some("no organization is removed"),
        Row::Record { resource, .. } if [invoice::SPEC.tag, credit_note::SPEC.tag].contains(&resource) => {
            Some("its number is missing")
        }
        Row::Record { resource, .. } if [rental::SPEC.tag, toll::SPEC.tag, violation::SPEC.tag].contains(&resource) => {
            Some("an invoice bills it")
        }
        Row::Record { resource, .. } if resource == operator::SPEC.tag => None,
        // The root operator creates a new token.
        Row::Access { .. } => Some("an operator has no token"),
        _ => None,
    }
}

/// Whether the row follows from other rows, so that the repair writes it again as it was.
fn follows(key: &Key) -> bool {
    let row = Row::decode(key).unwrap();
    // What counts the changes of a transponder or plate begins anew.
    if matches!(row, Row::Counter { name, .. } if name.starts_with("number-")) {
        return false;
    }
    row.class() == Class::Derived && !matches!(row, Row::Calendar { .. })
        || matches!(
            row,
            Row::Due { .. }
                | Row::Outbox { .. }
                | Row::Counter { .. }
                | Row::Recheck { .. }
                | Row::Erased { .. }
                | Row::IdempotencyExpiry { .. }
        )
}

/// What every repair of one damaged row must show.
#[track_caller]
fn judge(damaged: &Key, made: &Plan, after: &Rows) {
    let what = in_words(damaged);
    let left = &made.left;
    if made.left.problems > 0 {
        assert!(remains(damaged).is_some(), "{what}: {:#?}", left.listed);
    }
    // Every row that differs is in the plan, and the plan has nothing else.
    let mut expected = rows().clone();
    for (key, change) in &made.changes {
        match &change.action {
            Action::Remove => drop(expected.remove(key)),
            Action::Put(revision, value) => drop(expected.insert(key.clone(), (*revision, value.clone()))),
        }
    }
    if matches!(Row::decode(damaged), Some(Row::Record { resource, .. }) if resource == organization::SPEC.tag) {
        assert!(made.changes.is_empty(), "{what}: {:#?}", made.changes);
        assert!(left.problems > 0);
        return;
    }
    same(after, &expected, &what);
    if is_ground(damaged) {
        let organization = Row::decode(damaged).and_then(|row| row.organization()).expect("an owner");
        for row in after.keys().filter_map(Row::decode) {
            if let Row::Record { organization: owner, resource, id } = row
                && (owner, resource) == (organization, vehicle::SPEC.tag)
            {
                let mark = key::recheck(organization, Marked::vehicle(rental_core::value::Id::from_uuid(id)));
                assert!(after.contains_key(&mark), "{what}: vehicle {id} is not marked");
            }
        }
    }
    assert!(made.changes.contains_key(damaged), "{what}: {:#?}", made.changes);
    // A repair of a row of another class than a record changes at most one row beside it.
    // The attachments that rest on it are derived again.
    let is_mark = |key: &Key| is_ground(damaged) && matches!(Row::decode(key), Some(Row::Recheck { .. }));
    let own = |key: &&Key| key == &damaged || is_about(key, damaged) || is_mark(key);
    let others: Vec<String> = made.changes.keys().filter(|key| !own(key)).map(in_words).collect();
    assert!(others.is_empty(), "{what}: {others:#?}");
    if follows(damaged) {
        let (revision, value) = &rows()[damaged];
        let found = after.get(damaged).unwrap_or_else(|| panic!("{what} is not written again"));
        assert_eq!((&found.1, found.0.min(1)), (value, (*revision).min(1)), "{what}");
    } else if !matches!(
        Row::decode(damaged),
        Some(Row::Identity { .. } | Row::Secrets { .. } | Row::Calendar { .. } | Row::CalendarFeed { .. })
    ) {
        let is_stood_in = matches!(Row::decode(damaged), Some(Row::Record { resource, .. }) if [customer::SPEC.tag, vehicle::SPEC.tag].contains(&resource));
        let is_stand_in = |row: &(u64, Bytes)| is_stood_in && String::from_utf8_lossy(&row.1).contains("Lost record");
        assert!(after.get(damaged).is_none_or(is_stand_in), "{what} is still there");
    }
}

/// Whether attachments rest on a row.
fn is_ground(key: &Key) -> bool {
    let Some(Row::Record { resource, .. }) = Row::decode(key) else { return false };
    let grounds = [&rental::SPEC, &assignment::SPEC, &vehicle::SPEC, &customer::SPEC, &toll::SPEC].map(|spec| spec.tag);
    grounds.contains(&resource)
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
        let made = repaired(&store);
        if let Some(change) = made.changes.get(damaged) {
            assert_eq!(change.found, Found::Damaged);
            let stored = wait(Engine::stored(&store, &rows().keys().next().unwrap().clone())).unwrap();
            assert!(stored.is_some() || made.changes.contains_key(rows().keys().next().unwrap()));
        }
        let after = wait(everything(&store));
        store.close().unwrap();
        judge(damaged, &made, &after);
        let checked = check::of_file(&ClosedFile::open(&copy, CACHE).unwrap(), &mut |_| {});
        assert_eq!(checked.problems, made.left.problems, "{}: {:#?}", kind(damaged), checked.listed);
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
        let made = repaired(&store);
        if says_nothing && made.changes.is_empty() {
            continue;
        }
        judge(damaged, &made, &wait(everything(&store)));
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
        let made = repaired(&store);
        assert_eq!(made.left.listed, []);
        if !matches!(row, Row::Subscribed { .. } | Row::Calendar { .. }) || !made.changes.is_empty() {
            assert!(made.changes.values().all(|change| change.found == Found::Nothing), "{:#?}", made.changes);
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
            Row::IndexEntry { .. }
                | Row::Hold { .. }
                | Row::Due { .. }
                | Row::Outbox { .. }
                | Row::Secrets { .. }
                | Row::Calendar { .. }
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
    let made = repaired(&store);
    assert_eq!(made.left.listed, []);
    assert_eq!(made.changes.keys().cloned().collect::<Vec<_>>(), {
        added.sort();
        added.dedup();
        added
    });
    same(&wait(everything(&store)), rows(), "the rest");
}

#[test]
fn rows_of_no_known_kind_are_removed_and_half_a_copy_is_not_taken_for_a_store() {
    let mut with = rows().clone();
    let unknown = Key::from_bytes(b"zzz");
    with.insert(unknown.clone(), (1, "?".into()));
    with.insert(rental_core::store::marks::loading(), (1, "".into()));
    let made = repaired(&store(&with));
    assert_eq!(made.changes.keys().collect::<Vec<_>>(), [&unknown]);
    assert_eq!(made.left.problems, 1, "{:#?}", made.left.listed);
}

#[test]
fn without_its_organization_nothing_of_an_organization_is_removed() {
    let record = rows().keys().find(
        |key| matches!(Row::decode(key), Some(Row::Record { resource, .. }) if resource == organization::SPEC.tag),
    );
    let mut without = rows().clone();
    without.remove(record.unwrap());
    let made = repaired(&store(&without));
    assert!(made.left.problems > 10, "{:#?}", made.left.listed);
    let removed: Vec<String> = made.changes.keys().map(in_words).collect();
    let own = |words: &String| words.starts_with("an index entry of organization");
    assert!(removed.iter().all(own), "{removed:#?}");
    let lost = Row::decode(record.unwrap()).and_then(|row| match row {
        Row::Record { id, .. } => Some(OrganizationId::from_uuid(id)),
        _ => None,
    });
    let of_it =
        |key: &&Key| matches!(Row::decode(key), Some(Row::Record { organization, .. }) if Some(organization) == lost);
    let objects = without.keys().filter(of_it).count() as u64;
    assert!(objects > 10 && made.left.lost_organizations == [(lost.unwrap(), objects)].into());
    let told = &made.left.listed[0];
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
    let of_file = repaired(&file);
    let url = cluster.database();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    struct On<'r>(&'r tokio::runtime::Runtime);
    impl check::repair::Waiter for On<'_> {
        fn wait<T>(&self, answer: rental_core::store::Answer<'_, T>) -> Result<T, rental_core::store::StoreError> {
            self.0.block_on(answer)
        }
    }
    let store = runtime.block_on(Postgres::open(&Address::parse(&url).unwrap(), None, settings())).unwrap();
    runtime.block_on(fill(&store, &rows));
    let made = check::repair::plan(&store, &On(&runtime), crate::sound::NOW, &mut |_| {}).unwrap();
    assert_eq!((&made.changes, &made.left), (&of_file.changes, &of_file.left));
    check::repair::apply(&store, &On(&runtime), &made).unwrap();
    same(&runtime.block_on(everything(&store)), &wait(everything(&file)), "the database");
    runtime.block_on(store.close());
}

#[test]
fn a_row_that_another_program_changed_since_is_not_overwritten() {
    let damaged =
        examples().into_iter().find(|key| matches!(Row::decode(key), Some(Row::IdempotencyRecord { .. }))).unwrap();
    let store = store(&junk(std::slice::from_ref(&damaged)));
    let made = plan(&store);
    let mut batch = rental_core::store::Batch::default();
    batch.replace(damaged.clone(), 1, "!".into());
    wait(Store::commit(&store, batch)).unwrap();
    let refused = check::repair::apply(&store, &crate::sound::Waits, &made);
    assert!(matches!(&refused, Err(check::repair::RepairError::Changed(key)) if *key == damaged), "{refused:?}");
    assert_eq!(wait(everything(&store))[&damaged].1, "!");
    let _ = key::tasks();
}
