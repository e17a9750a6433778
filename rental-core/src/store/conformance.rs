//! The conformance suite of engines: random operations compared with the model, and races that must have one winner.
//!
//! An engine's test calls [`behaves_like_the_model`] and [`racing_commits_have_one_winner`] with a function that creates
//! an empty store, [`counts_what_commits_change`] in the same way, and [`a_snapshot_shows_one_moment`] with an empty store.

use crate::store::{
    Batch, Check, Commit, Engine, Key, Order, Prior, Record, Share, Snapshot, Span, Store, StoreError, Tally, Write,
    all_sound, memory::Memory,
};
use bytes::Bytes;
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestRunner},
};
use std::{collections::HashMap, sync::Arc};
use tokio::runtime::Runtime;
use uuid::Uuid;

/// One call on a store.
#[derive(Clone, Debug)]
enum Operation {
    Get(Vec<Key>),
    Scan(Span, usize),
    ScanEach(Vec<(Span, usize)>),
    Commit(Batch),
}

/// Runs `cases` random histories on a store from `empty` and on the model; every result must be the same.
///
/// # Panics
/// When the store and the model differ. The message contains the shrunk history.
pub fn behaves_like_the_model<S: Store>(runtime: &Runtime, cases: u32, empty: impl Fn() -> S) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&vec(operation(), 1..60), |history| {
        let (store, model) = (empty(), Memory::default());
        for step in history {
            match step.clone() {
                Operation::Get(keys) => {
                    let (found, expected) =
                        runtime.block_on(async { (store.get(&keys).await, model.get(&keys).await) });
                    prop_assert_eq!(found, expected, "{:?}", step);
                }
                Operation::Scan(span, limit) => {
                    let (found, expected) =
                        runtime.block_on(async { (store.scan(&span, limit).await, model.scan(&span, limit).await) });
                    prop_assert_eq!(found, expected, "{:?}", step);
                }
                Operation::ScanEach(scans) => {
                    let (found, expected) =
                        runtime.block_on(async { (store.scan_each(&scans).await, model.scan_each(&scans).await) });
                    prop_assert_eq!(found, expected, "{:?}", step);
                }
                Operation::Commit(batch) => {
                    let (outcome, expected) =
                        runtime.block_on(async { (store.commit(batch.clone()).await, model.commit(batch).await) });
                    prop_assert_eq!(outcome, expected, "{:?}", step);
                }
            }
        }
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// Commits `cases` random histories to a store from `empty`, and compares what it has counted with the sizes of its rows.
///
/// # Panics
/// When the store has counted something else, or fails.
pub fn counts_what_commits_change<S: Engine>(runtime: &Runtime, cases: u32, empty: impl Fn() -> S) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&vec(operation(), 1..60), |history| {
        let (store, tally) = (empty(), Arc::new(Tally::new(share_of)));
        store.count(Arc::clone(&tally));
        for step in history {
            if let Operation::Commit(batch) = step {
                let committed = runtime.block_on(store.commit(batch));
                prop_assert!(committed.is_ok(), "{:?}", committed);
            }
        }
        let rows = runtime.block_on(store.scan(&Span::everything(), usize::MAX)).and_then(all_sound);
        let mut expected: HashMap<Uuid, (i64, i64)> = HashMap::new();
        for row in rows.map_err(|error| TestCaseError::fail(error.to_string()))? {
            let Some(share) = share_of(row.key.as_bytes()) else { continue };
            let sum = expected.entry(share.owner).or_default();
            sum.0 += i64::from(share.is_object);
            sum.1 += i64::try_from(row.key.as_bytes().len() + row.value.len()).unwrap_or(i64::MAX);
        }
        let counted: HashMap<Uuid, (i64, i64)> =
            tally.take().into_iter().map(|(owner, change)| (owner, (change.objects, change.bytes))).collect();
        prop_assert!(
            expected.iter().all(|(owner, size)| counted.get(owner) == Some(size)),
            "{:?}",
            (&expected, &counted)
        );
        let gone = counted.iter().filter(|(owner, _)| !expected.contains_key(owner));
        prop_assert!(gone.clone().all(|(_, size)| *size == (0, 0)), "{:?}", (&expected, &counted));
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// Keys belong to one of two owners, or to nobody; those of odd length are objects.
fn share_of(key: &[u8]) -> Option<Share> {
    let last = key.last().map(|byte| byte % 3).filter(|owner| *owner > 0)?;
    Some(Share { owner: Uuid::from_u128(last.into()), is_object: key.len() % 2 == 1 })
}

/// Compares long reads of a snapshot with the rows of the moment at which it was taken, while later commits change them.
///
/// # Panics
/// When a row is missing, of a later moment, out of order or of another span, or when the store fails.
pub async fn a_snapshot_shows_one_moment(store: &dyn Engine) {
    let key = |n: u32| Key::from_bytes(format!("z{n:05}").as_bytes());
    let put = async |n: u32, value: &'static str| {
        let mut batch = Batch::default();
        batch.put(key(n), value.into(), Prior::Any);
        assert_eq!(store.commit(batch).await, Ok(Commit::Applied));
    };
    for n in 0..450 {
        put(n, "old").await;
    }
    let mut snapshot = store.snapshot().await.unwrap_or_else(|error| panic!("{error}"));
    for n in 0..500 {
        put(n, "new").await;
    }
    for (from, to, count) in [(0, 450, 450), (0, 500, 450), (100, 350, 250), (7, 8, 1), (450, 500, 0), (9, 3, 0)] {
        let span = Span { from: key(from), to: key(to), order: Order::Ascending, follow: None };
        let rows = rows_of(snapshot.as_mut(), span).await.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(rows.len(), count, "{from} to {to}");
        let expected = (from..).map(|n| Record { key: key(n), revision: 0, value: "old".into() });
        assert!(rows.into_iter().eq(expected.take(count)), "{from} to {to}");
    }
}

async fn rows_of(snapshot: &mut dyn Snapshot, mut rest: Span) -> Result<Vec<Record>, StoreError> {
    let mut rows = Vec::new();
    loop {
        let part = snapshot.next(&mut rest).await?;
        if part.is_empty() {
            return Ok(rows);
        }
        rows.extend(part);
    }
}

/// Runs 16 tasks that increment one counter by check and put at the same time. No increment may be lost.
///
/// # Panics
/// When the counter does not end at the number of successful commits, or no commit succeeds.
pub fn racing_commits_have_one_winner<S: Store + 'static>(runtime: &Runtime, empty: impl Fn() -> S) {
    const TASKS: u64 = 16;
    const ROUNDS: u64 = 20;
    let store = Arc::new(empty());
    let key = key_of(&[1]);
    runtime.block_on(async {
        let mut tasks = Vec::new();
        for _ in 0..TASKS {
            let (store, key) = (Arc::clone(&store), key.clone());
            tasks.push(tokio::spawn(async move {
                let mut applied = 0;
                for _ in 0..ROUNDS {
                    let keys = [key.clone()];
                    let seen = store.get(&keys).await.expect("a healthy store answers").remove(0);
                    let mut batch = Batch::default();
                    match seen {
                        Some(record) => batch.replace(key.clone(), record.revision, Bytes::from_static(b"n")),
                        None => batch.insert(key.clone(), Bytes::from_static(b"n")),
                    }
                    applied +=
                        u64::from(store.commit(batch).await.expect("a healthy store commits") == Commit::Applied);
                }
                applied
            }));
        }
        let mut applied = 0;
        for task in tasks {
            applied += task.await.expect("a task ends");
        }
        let keys = [key.clone()];
        let last: Option<Record> = store.get(&keys).await.expect("a healthy store answers").remove(0);
        let revision = last.map_or(0, |record| record.revision);
        assert!(applied >= ROUNDS, "at least one task wins each round");
        assert_eq!(revision, applied, "every applied increment counts, no refused one does");
    });
}

/// One of a few short keys, so that operations often use the same key.
fn key_of(tail: &[u8]) -> Key {
    Key::from_bytes(&[b"z".as_slice(), tail].concat())
}

fn any_key() -> impl Strategy<Value = Key> {
    vec(prop_oneof![0u8..4, Just(u8::MAX)], 1..4).prop_map(|tail| key_of(&tail))
}

fn any_check() -> impl Strategy<Value = Check> {
    prop_oneof![
        3 => (any_key(), 1u64..4).prop_map(|(key, revision)| Check::At(key, revision)),
        1 => any_key().prop_map(Check::Present),
        3 => any_key().prop_map(Check::Absent),
    ]
}

fn any_write() -> impl Strategy<Value = Write> {
    let value = vec(any::<u8>(), 0..600).prop_map(Bytes::from);
    prop_oneof![
        3 => (any_key(), 0u64..4, value.clone()).prop_map(|(key, revision, value)| Write::Put(key, revision, value, Prior::Any)),
        // Also when it is wrong: an engine must detect it.
        1 => (any_key(), 0u64..4, value).prop_map(|(key, revision, value)| Write::Put(key, revision, value, Prior::New)),
        1 => any_key().prop_map(Write::Delete),
    ]
}

fn any_span() -> impl Strategy<Value = Span> {
    let order = prop_oneof![Just(Order::Ascending), Just(Order::Descending)];
    (any_key(), any_key(), order).prop_map(|(from, to, order)| Span { from, to, order, follow: None })
}

/// The prefix of the records' keys. An engine gets it from the span only.
const TARGETS: &[u8] = b"target";

/// Which part of a record and its index entry a batch writes.
#[derive(Clone, Copy, Debug)]
enum Indexed {
    Both,
    /// A dangling entry, unless the record was written before.
    EntryAlone,
    /// A dangling entry, if there was one.
    RecordDeleted,
}

/// A batch that writes a record with its index entry, or only one of them.
fn any_indexed() -> impl Strategy<Value = Batch> {
    let kind = prop_oneof![4 => Just(Indexed::Both), 1 => Just(Indexed::EntryAlone), 1 => Just(Indexed::RecordDeleted)];
    (0u8..3, 0u8..3, 1u64..3, any::<bool>(), kind).prop_map(|(value, id, revision, absent, kind)| {
        let id = [[0_u8; 15].as_slice(), &[id]].concat();
        let record = Key::from_bytes(&[TARGETS, &id].concat());
        let entry = Key::from_bytes(&[b"entry".as_slice(), &[value], &id].concat());
        let mut batch = Batch::default();
        if absent {
            batch.checks.push(Check::Absent(record.clone()));
        }
        match kind {
            Indexed::Both => {
                batch.writes.push(Write::Put(record, revision, Bytes::from(vec![value; 40]), Prior::Any));
                batch.mark(entry, Prior::Any);
            }
            Indexed::EntryAlone => batch.mark(entry, Prior::New),
            Indexed::RecordDeleted => batch.delete(record),
        }
        batch
    })
}

/// A span of the entries of one value, or of rows whose keys are too short for an index entry.
fn index_span() -> impl Strategy<Value = Span> {
    let prefix =
        prop_oneof![4 => (0u8..3).prop_map(|value| [b"entry".as_slice(), &[value]].concat()), 1 => Just(b"z".to_vec())];
    (prefix, any::<bool>()).prop_map(|(prefix, rising)| {
        let span = Span::newest_first(&Key::from_bytes(&prefix)).following(Key::from_bytes(TARGETS));
        Span { order: if rising { Order::Ascending } else { span.order }, ..span }
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    let batch = (vec(any_check(), 0..2), vec(any_write(), 0..4)).prop_map(|(checks, writes)| Batch { checks, writes });
    prop_oneof![
        2 => vec(any_key(), 0..4).prop_map(Operation::Get),
        2 => (any_span(), 0usize..6).prop_map(|(span, limit)| Operation::Scan(span, limit)),
        1 => (index_span(), 0usize..6).prop_map(|(span, limit)| Operation::Scan(span, limit)),
        1 => vec((any_span(), 0usize..6), 0..5).prop_map(Operation::ScanEach),
        4 => batch.prop_map(Operation::Commit),
        2 => any_indexed().prop_map(Operation::Commit),
    ]
}
