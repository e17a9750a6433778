//! A killed repair goes on, wherever it was killed.

use crate::{
    sound::{examples, repair, repaired, rows, store},
    stores::{Rows, everything, same, upgrade, wait},
};
use rental_core::{
    resources::organization,
    rows::Row,
    store::{Answer, Batch, Commit, Key, Record, Scanned, Span, Store, StoreError, Versioned, memory::Memory},
};
use std::sync::atomic::{AtomicI64, Ordering};

/// Rows of a batch, so that a small repair needs many.
const ROWS: usize = 3;

/// A store whose process is killed after some commits, before or after the last one.
struct Dying<'s>(&'s Memory, AtomicI64, bool);

impl Dying<'_> {
    async fn until_it_dies<'a, T>(&self, write: impl FnOnce() -> Answer<'a, T>) -> Result<T, StoreError> {
        if self.1.fetch_sub(1, Ordering::SeqCst) > 0 {
            return write().await;
        }
        if self.2 {
            write().await?;
        }
        Err(StoreError::Unknown("killed".into()))
    }
}

impl Store for Dying<'_> {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        self.0.get(keys)
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        self.0.scan(span, limit)
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        Box::pin(async move { self.until_it_dies(|| self.0.commit(batch)).await })
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.0.ready()
    }
}

impl Versioned for Dying<'_> {
    fn version(&self) -> Answer<'_, u64> {
        self.0.version()
    }

    fn change_version(&self, from: u64, to: u64, batch: Batch) -> Answer<'_, bool> {
        Box::pin(async move { self.until_it_dies(|| self.0.change_version(from, to, batch)).await })
    }
}

/// The rows of a store. How often a calendar was changed says nothing.
fn of(store: &Memory) -> Rows {
    let mut rows = wait(everything(store));
    for (_, row) in rows.iter_mut().filter(|(key, _)| matches!(Row::decode(key), Some(Row::Calendar { .. }))) {
        row.0 = 1;
    }
    rows
}

#[test]
fn killed_at_each_commit_equals_not_killed() {
    let mut damaged = rows().clone();
    for (n, key) in examples().into_iter().enumerate() {
        let is_organization =
            matches!(Row::decode(&key), Some(Row::Record { resource, .. }) if resource == organization::SPEC.tag);
        match n % 3 {
            _ if is_organization => {}
            0 => drop(damaged.insert(key, (1, "?".into()))),
            1 => drop(damaged.remove(&key)),
            _ => {}
        }
    }
    // A walk writes the derived rows in many batches.
    damaged
        .retain(|key, _| !matches!(Row::decode(key), Some(Row::IndexEntry { id, .. }) if id.as_bytes()[15] % 8 == 0));
    let whole = store(&damaged);
    repaired(&whole);
    let whole = of(&whole);
    for late in [false, true] {
        for commits in 0.. {
            let store = store(&damaged);
            let dying = Dying(&store, AtomicI64::new(commits), late);
            let ended = wait(repair(&dying, ROWS));
            let what = format!("killed at commit {commits}, late: {late}");
            // A server that starts ends the walk.
            if commits % 2 == 0 {
                wait(upgrade(&store));
            }
            repaired(&store);
            same(&of(&store), &whole, &what);
            if ended.is_ok() {
                assert!(commits > 10, "too few commits for this test: {commits}");
                break;
            }
        }
    }
}
