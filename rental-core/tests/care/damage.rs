//! Bytes that rot: found by a check, never served.

use crate::fleet::{CACHE, dump, dump_file, fleet, get, wait};
use redb::{Database, ReadableTable, TableDefinition};
use rental_core::{
    check::{self, Report},
    operations::idempotency::{self, IdempotencyKey},
    resources::{
        rental,
        row_words::{damage_in_words, in_words},
        vehicle,
    },
    rows::{Row, key},
    store::{
        Batch, Check, Commit, DamagedRow, Finding, Inspection as _, Key, Prior, Record, Span, Store, StoreError, Write,
        get_each, marks,
        redb::{ClosedFile, Redb},
    },
    tasks::Task,
    value::{Id, OrganizationId, TaskId, Timestamp},
};
use std::{collections::BTreeSet, fs, path::Path};

const ROWS: TableDefinition<'static, &'static [u8], &'static [u8]> = TableDefinition::new("rows");

fn report(path: &Path) -> Result<Report, StoreError> {
    ClosedFile::open(path, CACHE).map(|closed| check::of_file(&closed, &mut |_| {}))
}

/// Changes a row behind the engine's back.
fn tamper(path: &Path, key: &Key, change: impl FnOnce(&mut Vec<u8>)) {
    let db = Database::open(path).unwrap();
    let transaction = db.begin_write().unwrap();
    {
        let mut rows = transaction.open_table(ROWS).unwrap();
        let mut stored = rows.get(key.as_bytes()).unwrap().map(|row| row.value().to_vec()).unwrap_or_default();
        change(&mut stored);
        rows.insert(key.as_bytes(), stored.as_slice()).unwrap();
    }
    transaction.commit().unwrap();
}

fn of_tag(rows: &[Record], tag: u8) -> impl Iterator<Item = &Record> {
    rows.iter().filter(move |row| row.key.as_bytes()[0] == tag)
}

/// The organization of the first rental.
pub(crate) fn organization_of(rows: &[Record]) -> OrganizationId {
    match Row::decode(&record_of(rows, rental::SPEC.tag).key) {
        Some(Row::Record { organization, .. }) => organization,
        other => panic!("no record: {other:?}"),
    }
}

/// The rental whose index entry this is.
fn record_at(entry: &Key) -> Key {
    let organization = OrganizationId::from_slice(&entry.as_bytes()[1..17]).unwrap();
    key::record(organization, &rental::SPEC, entry.id().unwrap())
}

pub(crate) fn record_of(rows: &[Record], tag: u8) -> &Record {
    of_tag(rows, b'r').find(|row| row.key.as_bytes()[17] == tag).unwrap()
}

#[test]
fn a_rotten_row_is_told_to_who_reads_it_and_to_nobody_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.redb");
    fleet(&path, 10);
    let rows = dump_file(&path);
    let (rotten, sound) = (record_of(&rows, rental::SPEC.tag), record_of(&rows, vehicle::SPEC.tag));
    tamper(&path, &rotten.key, |stored| stored[40] ^= 1);
    let store = Redb::open(&path, CACHE).unwrap();
    let Err(StoreError::Damaged(row)) = get(&store, &rotten.key) else { panic!("rot was served") };
    let told = damage_in_words(&row);
    let id = rotten.key.id().unwrap().to_string();
    assert!(told.starts_with(&format!("rental {id} of organization ")), "{told}");
    assert!(told.contains(&hex::encode(rotten.key.as_bytes())), "{told}");
    // A batch that depends on it is refused; the one beside it in the same commit, and all later ones, are applied.
    let at = |record: &Record| Batch {
        checks: vec![Check::At(record.key.clone(), record.revision)],
        writes: vec![Write::Put(record.key.clone(), record.revision + 1, record.value.clone(), Prior::Any)],
    };
    let (one, other) = wait(async { tokio::join!(store.commit(at(rotten)), store.commit(at(sound))) });
    assert!(matches!(one, Err(StoreError::Damaged(_))), "{one:?}");
    assert_eq!(other, Ok(Commit::Applied));
    assert_eq!(get(&store, &sound.key).unwrap().unwrap().revision, sound.revision + 1);
    assert_eq!(wait(store.ready()), Ok(()));
}

#[test]
fn a_scan_gives_every_sound_row_around_a_rotten_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.redb");
    fleet(&path, 10);
    let rows = dump_file(&path);
    let rotten = record_of(&rows, rental::SPEC.tag).key.clone();
    let entries: Vec<Key> = of_tag(&rows, b'i').map(|row| row.key.clone()).collect();
    let of_rentals = |entry: &&Key| entry.as_bytes()[17] == rental::SPEC.tag;
    let dangling = entries.iter().filter(of_rentals).find(|entry| entry.id() != rotten.id()).unwrap();
    commit(&path, vec![Write::Delete(record_at(dangling))]);
    tamper(&path, &rotten, |stored| stored[40] ^= 1);
    let store = Redb::open(&path, CACHE).unwrap();
    let records = Key::from_bytes(&rotten.as_bytes()[..18]);
    let all = wait(store.scan(&Span::newest_first(&records), 100)).unwrap();
    assert_eq!((all.len(), all.iter().filter(|row| row.is_ok()).count()), (9, 8));
    let damaged = all.iter().find_map(|row| row.as_ref().err()).unwrap();
    assert_eq!((&damaged.key, damaged.reason.as_str()), (&rotten, "the checksum does not match"));
    // The same through an index: the rotten record in its place, and the entry whose record is gone.
    let of = |entry: &Key| Key::from_bytes(&entry.as_bytes()[..entry.as_bytes().len() - 16]);
    let to_rotten = entries.iter().filter(of_rentals).find(|entry| entry.id() == rotten.id()).unwrap();
    for (prefix, key, reason) in
        [(of(to_rotten), &rotten, "the checksum does not match"), (of(dangling), dangling, "its record is not there")]
    {
        let found = wait(store.scan(&Span::newest_first(&prefix).following(records.clone()), 100)).unwrap();
        let there = found.iter().filter_map(|row| row.as_ref().err()).find(|row| row.key == *key).unwrap();
        assert_eq!(there.reason, reason);
        assert_eq!(found.len(), entries.iter().filter(|entry| entry.as_bytes().starts_with(prefix.as_bytes())).count());
    }
    // Of several keys each that is sound is answered.
    let keys = [rows[0].key.clone(), rotten.clone(), Key::from_bytes(b"none")];
    let each = wait(get_each(&store, &keys)).unwrap();
    assert_eq!(each[0].as_ref().unwrap().as_ref(), Some(&rows[0]));
    assert_eq!((each[1].as_ref().unwrap_err().key.clone(), &each[2]), (rotten, &Ok(None)));
}

#[test]
fn a_sweep_goes_on_behind_damaged_idempotency_records() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.redb");
    let (organization, then) = (OrganizationId::from_u128(7), Timestamp::from_millis(1_000_000));
    let store = Redb::open(&path, CACHE).unwrap();
    let names: Vec<String> = (0..40).map(|n| format!("key-{n:02}")).collect();
    for name in &names {
        let idempotency_key = IdempotencyKey::new(name.as_bytes(), "POST", "/v1/leads", b"{}").unwrap();
        let mut batch = Batch::default();
        idempotency::remember(&mut batch, organization, &idempotency_key, None, (200, None, &"{}".into()), then);
        assert_eq!(wait(store.commit(batch)), Ok(Commit::Applied));
    }
    store.close().unwrap();
    let expires = then.plus_millis(idempotency::KEPT_MILLIS);
    // A rotten record, one that is no longer JSON, and a rotten expiry entry: the first, so that each step begins with it.
    let stored = |n: usize| key::idempotency_record(organization, &names[n]);
    tamper(&path, &stored(5), |stored| stored[30] ^= 1);
    commit(&path, vec![Write::Put(stored(6), 1, "{".into(), Prior::Any)]);
    let expiry = key::idempotency_expiry(expires.millis(), organization, &names[0]);
    tamper(&path, &expiry, |stored| stored.push(9));
    let store = Redb::open(&path, CACHE).unwrap();
    let now = expires.plus_millis(1);
    let mut damaged = Vec::new();
    let mut note = |row: Box<DamagedRow>| {
        damaged.push(row.key);
        assert!(damaged.len() < 100, "the sweep does not end");
    };
    wait(idempotency::remove_expired(&store, now, 3, &mut note)).unwrap();
    assert_eq!(damaged, [expiry, stored(5), stored(6)]);
    let keys: Vec<Key> = (0..names.len()).map(stored).collect();
    let left: Vec<usize> = wait(get_each(&store, &keys))
        .unwrap()
        .iter()
        .enumerate()
        .filter(|(_, row)| **row != Ok(None))
        .map(|(n, _)| n)
        .collect();
    assert_eq!(left, [0, 5, 6], "every sound record went, no damaged one");
}

#[test]
fn a_sound_store_has_no_problems_and_looking_does_not_change_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.redb");
    fleet(&path, 60);
    let before = fs::read(&path).unwrap();
    let report = report(&path).unwrap();
    assert_eq!((report.problems, &report.listed), (0, &Vec::new()));
    assert_eq!((report.records["rental"], report.records["invoice"]), (60, 12));
    assert!(fs::read(&path).unwrap() == before, "the check wrote to the file");
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o400)).unwrap();
    assert!(ClosedFile::open(&path, CACHE).is_ok(), "a file that can be read alone can be checked");
}

#[test]
fn a_store_in_use_is_not_checked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.redb");
    fleet(&path, 1);
    let open = Redb::open(&path, CACHE).unwrap();
    let refused = report(&path).expect_err("it is open").to_string();
    assert!(refused.contains("in use by another process"), "{refused}");
    drop(open);
    let looking = ClosedFile::open(&path, CACHE).unwrap();
    assert!(Redb::open(&path, CACHE).is_err(), "nobody writes while it is looked at");
    drop(looking);
    assert!(Redb::open(&path, CACHE).is_ok());
}

#[test]
fn a_store_that_was_not_closed_is_checked_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("a.redb"), directory.path().join("b.redb"));
    fleet(&path, 5);
    let store = Redb::open(&path, CACHE).unwrap();
    let rows = dump(&store);
    let mut batch = Batch::default();
    batch.replace(rows[0].key.clone(), rows[0].revision, rows[0].value.clone());
    wait(store.commit(batch)).unwrap();
    // As a crash leaves it.
    fs::copy(&path, &copy).unwrap();
    let found = report(&copy).unwrap();
    assert_eq!((found.rows, found.problems), (rows.len() as u64, 0), "{:?}", found.listed);
}

/// One thing is put wrong; the report names it, and only what follows from it.
#[track_caller]
pub(crate) fn one_wrong(wrong: impl FnOnce(&Path, &[Record]) -> Key, words: &str) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.redb");
    fleet(&path, 12);
    let key = wrong(&path, &dump_file(&path));
    let report = report(&path).unwrap();
    let told = report.listed.iter().find(|problem| problem.place == in_words(&key));
    let told = told.unwrap_or_else(|| panic!("{} is not listed: {:#?}", in_words(&key), report.listed));
    assert!(told.what.contains(words), "{told:?}");
    assert!(report.problems < 40, "{:#?}", report.listed);
}

/// Puts and deletes rows as a buggy program would: well formed, but wrong.
pub(crate) fn commit(path: &Path, writes: Vec<Write>) {
    let store = Redb::open(path, CACHE).unwrap();
    assert_eq!(wait(store.commit(Batch { checks: Vec::new(), writes })), Ok(Commit::Applied));
    store.close().unwrap();
}

#[test]
fn the_check_knows_every_kind_of_row() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.redb");
    fleet(&path, 12);
    let rows = dump_file(&path);
    let (organization, id) = (organization_of(&rows), uuid::Uuid::from_u128(9));
    let state = |key: Key, value: &'static str| Write::Put(key, 1, value.into(), Prior::Any);
    let task = serde_json::to_vec(&Task::endpoint_deletion(Id::from_uuid(id), Timestamp::default())).unwrap();
    commit(
        &path,
        vec![
            Write::Put(key::task(Id::from_uuid(id)), 1, task.into(), Prior::Any),
            state(key::erased(organization, &rental::SPEC, id), ""),
            state(key::heartbeat(Id::from_uuid(id)), ""),
            state(key::owner(Id::from_uuid(id)), "?"),
            state(key::bell(Id::from_uuid(id), Id::from_uuid(id)), ""),
        ],
    );
    let report = report(&path).unwrap();
    assert_eq!((report.rows, report.problems), (rows.len() as u64 + 5, 0), "{:#?}", report.listed);
}

#[test]
fn a_store_whose_upgrade_was_interrupted_is_not_checked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.redb");
    fleet(&path, 2);
    commit(&path, vec![Write::Put(marks::upgrade(), 1, "{}".into(), Prior::Any)]);
    let refused = report(&path).unwrap_err();
    assert!(refused.to_string().contains("rental-cli store upgrade"), "{refused}");
}

#[test]
fn a_thousand_problems_are_listed_and_all_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.redb");
    fleet(&path, 10);
    let row = |n: u16| Write::Put(Key::from_bytes(&[b"k", &n.to_be_bytes()[..]].concat()), 1, "".into(), Prior::Any);
    commit(&path, (0..1_100).map(row).collect());
    let report = report(&path).unwrap();
    assert_eq!((report.problems, report.listed.len()), (1_100, 1_000));
}

#[test]
fn rows_that_say_nothing_are_reported() {
    let wrong: [(Key, &str, &str); 4] = [
        (marks::loading(), "", "a copy into this store was broken off"),
        (key::task(TaskId::from_u128(9)), "?", "it does not parse"),
        (Key::from_bytes(b"!other"), "", "no program that knows this store makes such a row"),
        (Key::from_bytes(b"k"), "", "no program that knows this store makes such a row"),
    ];
    for (key, value, words) in wrong {
        let put = key.clone();
        one_wrong(
            |path, _| {
                commit(path, vec![Write::Put(put, 1, value.into(), Prior::Any)]);
                key
            },
            words,
        );
    }
    one_wrong(
        |path, _| {
            let key = key::erased(OrganizationId::from_u128(77), &rental::SPEC, uuid::Uuid::from_u128(9));
            commit(path, vec![Write::Put(key.clone(), 1, "".into(), Prior::Any)]);
            key
        },
        "is not there",
    );
}

#[test]
fn a_flipped_bit_in_a_value_is_reported() {
    one_wrong(
        |path, rows| {
            let key = record_of(rows, rental::SPEC.tag).key.clone();
            tamper(path, &key, |stored| stored[60] ^= 8);
            key
        },
        "the checksum does not match",
    );
}

#[test]
fn a_record_without_its_index_entry_is_reported() {
    one_wrong(
        |path, rows| {
            let entry = of_tag(rows, b'i').find(|row| row.key.as_bytes()[17] == rental::SPEC.tag).unwrap().key.clone();
            commit(path, vec![Write::Delete(entry.clone())]);
            record_at(&entry)
        },
        "is not there",
    );
}

#[test]
fn an_index_entry_without_its_record_or_with_other_values_is_reported() {
    let strange = |rows: &[Record], at: usize| {
        let mut bytes =
            of_tag(rows, b'i').find(|row| row.key.as_bytes()[17] == rental::SPEC.tag).unwrap().key.as_bytes().to_vec();
        bytes[at] ^= 1;
        Key::from_bytes(&bytes)
    };
    let put = |path: &Path, key: Key| {
        commit(path, vec![Write::Put(key.clone(), 0, Vec::new().into(), Prior::Any)]);
        key
    };
    let last =
        |rows: &[Record]| of_tag(rows, b'i').find(|row| row.key.as_bytes()[17] == 3).unwrap().key.as_bytes().len() - 2;
    one_wrong(|path, rows| put(path, strange(rows, last(rows))), "its record is not there");
    one_wrong(|path, rows| put(path, strange(rows, 22)), "its record has other values");
}

#[test]
fn a_hold_without_its_rental_and_a_rental_without_its_hold_are_reported() {
    one_wrong(
        |path, rows| {
            let mut bytes = of_tag(rows, b'h').next().unwrap().key.as_bytes().to_vec();
            *bytes.last_mut().unwrap() ^= 0x80;
            let key = Key::from_bytes(&bytes);
            commit(path, vec![Write::Put(key.clone(), 0, vec![0, 0, 0, 9].into(), Prior::Any)]);
            key
        },
        "its rental is not there",
    );
    one_wrong(
        |path, rows| {
            let hold = of_tag(rows, b'h').next().unwrap().key.clone();
            commit(path, vec![Write::Delete(hold.clone())]);
            let organization = OrganizationId::from_slice(&hold.as_bytes()[1..17]).unwrap();
            key::record(organization, &rental::SPEC, hold.id().unwrap())
        },
        "a hold of vehicle",
    );
}

#[test]
fn a_record_of_another_id_or_shape_is_reported() {
    one_wrong(
        |path, rows| {
            let record = record_of(rows, rental::SPEC.tag);
            let mut bytes = record.key.as_bytes().to_vec();
            *bytes.last_mut().unwrap() ^= 0x80;
            let key = Key::from_bytes(&bytes);
            commit(path, vec![Write::Put(key.clone(), 1, record.value.clone(), Prior::Any)]);
            key
        },
        "it says that it is rental",
    );
    one_wrong(
        |path, rows| {
            let record = record_of(rows, rental::SPEC.tag);
            let text = String::from_utf8(record.value.to_vec()).unwrap().replace("\"status\"", "\"state\"");
            commit(path, vec![Write::Put(record.key.clone(), 1, text.into(), Prior::Any)]);
            record.key.clone()
        },
        "missing field `status`",
    );
}

#[test]
fn a_counter_behind_its_invoices_is_reported() {
    one_wrong(
        |path, rows| {
            let counter = of_tag(rows, b'n').next().unwrap();
            commit(path, vec![Write::Put(counter.key.clone(), counter.revision - 1, Vec::new().into(), Prior::Any)]);
            of_tag(rows, b'r').filter(|row| row.key.as_bytes()[17] == 4).last().unwrap().key.clone()
        },
        "but the counter stands at 2",
    );
}

#[test]
fn rows_of_no_kind_and_pointers_to_nothing_are_reported() {
    let put = |key: Vec<u8>, value: Vec<u8>| {
        move |path: &Path, _: &[Record]| {
            let key = Key::from_bytes(&key);
            commit(path, vec![Write::Put(key.clone(), 1, value.into(), Prior::Any)]);
            key
        }
    };
    one_wrong(put(b"zzz".to_vec(), b"?".to_vec()), "no program");
    one_wrong(put([b"o".as_slice(), &[7; 32]].concat(), [&[7; 16][..], b"rental.created"].concat()), "event");
    one_wrong(put([b"d".as_slice(), &[7; 41]].concat(), vec![7; 16]), "is not there");
    one_wrong(put([b"s".as_slice(), &[7; 16]].concat(), b"[]".to_vec()), "webhook_endpoint");
    one_wrong(put([b"m".as_slice(), &[0; 16], b"k"].concat(), b"{}".to_vec()), "does not parse");
    one_wrong(put([b"c".as_slice(), &[7; 32]].concat(), vec![0; 4]), "vehicle");
}

/// What rots is told, or lies in a page that is not in use: then every row is as it was.
#[test]
fn flipped_bits_in_the_file_are_found_or_change_nothing() {
    let flips = std::env::var("RENTAL_BIT_ROT").ok().and_then(|flips| flips.parse().ok()).unwrap_or(100);
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("a.redb"), directory.path().join("b.redb"));
    fleet(&path, 60);
    // Little of the file is out of use then.
    rental_core::store::redb::compact(&path, CACHE).unwrap();
    let rows = dump_file(&path);
    let whole = fs::read(&path).unwrap();
    let used: Vec<usize> = whole
        .chunks(512)
        .enumerate()
        .filter(|(_, block)| block.iter().any(|byte| *byte != 0))
        .map(|(at, _)| at)
        .collect();
    let mut state = 4711u64;
    let mut roll = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut found, mut harmless, mut closed_off, mut readable) = (0, 0, 0, BTreeSet::new());
    for flip in 0..flips {
        let mut bytes = whole.clone();
        let (at, bit) = (used[roll(used.len())] * 512 + roll(512), roll(8));
        bytes[at] ^= 1 << bit;
        fs::write(&copy, &bytes).unwrap();
        let Ok(closed) = ClosedFile::open(&copy, CACHE) else {
            closed_off += 1;
            continue;
        };
        let report = check::of_file(&closed, &mut |_| {});
        let mut left = Vec::new();
        closed.walk(&mut |step| {
            if let Finding::Row(record) = step {
                left.push(record);
            }
            true
        });
        drop(closed);
        assert!(fs::read(&copy).unwrap() == bytes, "flip {flip}: the check wrote to the file");
        if report.problems > 0 {
            found += 1;
            readable.insert(left.len() * 100 / rows.len());
        } else {
            assert!(left == rows, "flip {flip} of bit {bit} of byte {at} was not found");
            harmless += 1;
        }
    }
    println!(
        "{flips} flips: {found} found, {closed_off} left nothing to read, {harmless} hit nothing; readable %: {readable:?}"
    );
    assert!(found * 4 > flips, "{found} of {flips} found, {harmless} harmless, {closed_off} closed off");
}
