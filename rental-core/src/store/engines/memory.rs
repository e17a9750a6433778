//! The model: a sorted map behind a lock. The conformance suite compares every other engine with it.

use crate::store::{
    Answer, Batch, Check, Commit, DamagedRow, Key, Order, Record, Revision, SCHEMA_VERSION, Scanned, Span, Store,
    StoreError, Versioned, Write,
};
use bytes::Bytes;
use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

/// A store in memory: its data is lost when it is dropped. For tests, and the model of the conformance suite.
#[derive(Debug)]
pub struct Memory {
    rows: Mutex<BTreeMap<Key, (Revision, Bytes)>>,
    version: AtomicU64,
}

impl Default for Memory {
    fn default() -> Self {
        Self::of_version(SCHEMA_VERSION)
    }
}

type Rows = BTreeMap<Key, (Revision, Bytes)>;

impl Memory {
    /// An empty store of a schema version, for tests of upgrades.
    #[must_use]
    pub fn of_version(version: u64) -> Self {
        Self { rows: Mutex::default(), version: AtomicU64::new(version) }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Rows) -> T) -> Result<T, StoreError> {
        let mut rows =
            self.rows.lock().map_err(|_| StoreError::Unavailable("a thread panicked while it held the rows".into()))?;
        Ok(act(&mut rows))
    }
}

fn record(key: &Key, row: &(Revision, Bytes)) -> Record {
    Record { key: key.clone(), revision: row.0, value: row.1.clone() }
}

/// Repeats the rule of `Check::holds` on purpose: the conformance suite compares the engines with this copy.
fn holds(rows: &Rows, check: &Check) -> bool {
    match check {
        Check::At(key, revision) => rows.get(key).is_some_and(|row| row.0 == *revision),
        Check::Present(key) => rows.contains_key(key),
        Check::Absent(key) => !rows.contains_key(key),
    }
}

fn apply(rows: &mut Rows, batch: Batch) -> Commit {
    if let Some(failed) = batch.checks.iter().find(|check| !holds(rows, check)) {
        return Commit::Stale(failed.key().clone());
    }
    for write in batch.writes {
        match write {
            Write::Put(key, revision, value, _) => drop(rows.insert(key, (revision, value))),
            Write::Delete(key) => drop(rows.remove(&key)),
        }
    }
    Commit::Applied
}

fn scan(rows: &Rows, span: &Span, limit: usize) -> Vec<Scanned> {
    if span.is_empty() {
        return Vec::new();
    }
    let follow = |(key, row): (&Key, &(Revision, Bytes))| {
        let Some(follow) = &span.follow else { return Ok(record(key, row)) };
        let target = follow.target(key.as_bytes()).ok_or_else(|| DamagedRow::points_nowhere(key.clone()))?;
        rows.get(&target).map(|row| record(&target, row)).ok_or_else(|| DamagedRow::dangling(key.clone()))
    };
    let range = rows.range(span.from.clone()..span.to.clone());
    match span.order {
        Order::Ascending => range.take(limit).map(follow).collect(),
        Order::Descending => range.rev().take(limit).map(follow).collect(),
    }
}

impl Store for Memory {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        let found = self.with(|rows| keys.iter().map(|key| rows.get(key).map(|row| record(key, row))).collect());
        Box::pin(std::future::ready(found))
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        Box::pin(std::future::ready(self.with(|rows| scan(rows, span, limit))))
    }

    fn scan_each<'a>(&'a self, scans: &'a [(Span, usize)]) -> Answer<'a, Vec<Vec<Scanned>>> {
        debug_assert!(scans.iter().all(|(span, _)| span.follow.is_none()), "a database follows no entries here");
        let found = self.with(|rows| scans.iter().map(|(span, limit)| scan(rows, span, *limit)).collect());
        Box::pin(std::future::ready(found))
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        Box::pin(std::future::ready(self.with(|rows| apply(rows, batch))))
    }

    fn ready(&self) -> Answer<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Versioned for Memory {
    fn version(&self) -> Answer<'_, u64> {
        Box::pin(std::future::ready(Ok(self.version.load(Ordering::SeqCst))))
    }

    fn change_version(&self, from: u64, to: u64, batch: Batch) -> Answer<'_, bool> {
        let changed = self.with(|rows| {
            let is_from = self.version.load(Ordering::SeqCst) == from;
            let applied = is_from && apply(rows, batch) == Commit::Applied;
            if applied {
                self.version.store(to, Ordering::SeqCst);
            }
            applied
        });
        Box::pin(std::future::ready(changed))
    }
}
