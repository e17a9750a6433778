//! A killed repair goes on, wherever it was killed.

use crate::{
    sound::{NOW, Waits, examples, repaired, rows, store},
    stores::{everything, same, wait},
};
use rental_core::{
    check::repair,
    resources::{Resource, organization, vehicle, vehicle::Vehicle},
    rows::{Row, key, recheck::Marked},
    store::{Answer, Batch, Commit, Key, Record, Scanned, Span, Store, StoreError, memory::Memory},
};
use std::sync::atomic::{AtomicI64, Ordering};

/// Rows of a batch, so that a small repair needs many.
const ROWS: usize = 3;

/// A store whose process is killed after some commits, before or after the last one.
struct Dying<'s>(&'s Memory, AtomicI64, bool);

impl Store for Dying<'_> {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        self.0.get(keys)
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        self.0.scan(span, limit)
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        if self.1.fetch_sub(1, Ordering::SeqCst) > 0 {
            return self.0.commit(batch);
        }
        Box::pin(async move {
            if self.2 {
                self.0.commit(batch).await?;
            }
            Err(StoreError::Unknown("killed".into()))
        })
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.0.ready()
    }
}

/// The row of the feed lies before the record of its vehicle: between the two a plan must not take it for lost.
#[test]
fn a_lost_vehicle_that_a_rental_names_keeps_its_feed_and_its_mark_wherever_the_repair_is_killed() {
    let feed = rows().keys().find(|key| matches!(Row::decode(key), Some(Row::VehicleFeed { .. }))).unwrap().clone();
    let Some(Row::VehicleFeed { organization, vehicle }) = Row::decode(&feed) else { panic!("no feed") };
    let (place, mark) = (Vehicle::key(organization, vehicle), key::recheck(organization, Marked::vehicle(vehicle)));
    let named = vehicle.to_string();
    let names = |(key, row): (&Key, &(u64, bytes::Bytes))| {
        matches!(Row::decode(key), Some(Row::Record { resource, .. }) if resource != vehicle::SPEC.tag)
            && String::from_utf8_lossy(&row.1).contains(&named)
    };
    assert!(rows().iter().any(names), "no record names the vehicle");
    for lost in [false, true] {
        let mut damaged = rows().clone();
        match lost {
            true => drop(damaged.remove(&place)),
            false => drop(damaged.insert(place.clone(), (1, "?".into()))),
        }
        let whole = store(&damaged);
        let made = repaired(&whole);
        let whole = wait(everything(&whole));
        for kept in [&feed, &mark] {
            assert_eq!(whole.get(kept).map(|row| &row.1), Some(&damaged[kept].1), "{}", repair::kind(kept));
        }
        assert!(whole[&place].1.starts_with(b"{") && !made.changes.is_empty());
        for (late, commits) in (0..made.changes.len() as i64).flat_map(|n| [(false, n), (true, n)]) {
            let store = store(&damaged);
            let dying = Dying(&store, AtomicI64::new(commits), late);
            let plan = repair::plan(&dying, &Waits, NOW, &mut |_| {}).unwrap();
            assert!(repair::apply_in_batches_of(1, &dying, &Waits, &plan).is_err());
            assert!(wait(everything(&store)).contains_key(&feed), "killed at commit {commits}, late: {late}");
            repaired(&store);
            same(&wait(everything(&store)), &whole, &format!("killed at commit {commits}, late: {late}"));
        }
    }
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
    let whole = store(&damaged);
    let made = repaired(&whole);
    let whole = wait(everything(&whole));
    let batches = made.changes.len().div_ceil(ROWS);
    assert!(batches > 10, "too few changes for this test: {}", made.changes.len());
    for late in [false, true] {
        for commits in 0..batches as i64 {
            let store = store(&damaged);
            let dying = Dying(&store, AtomicI64::new(commits), late);
            let plan = repair::plan(&dying, &Waits, NOW, &mut |_| {}).unwrap();
            assert_eq!(plan.changes, made.changes, "a plan depends on the rows alone");
            assert!(repair::apply_in_batches_of(ROWS, &dying, &Waits, &plan).is_err());
            repaired(&store);
            same(&wait(everything(&store)), &whole, &format!("killed at commit {commits}, late: {late}"));
        }
    }
}
