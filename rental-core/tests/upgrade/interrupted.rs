//! A killed upgrade goes on, wherever it was killed.

use crate::stores::{CACHE, STORES, everything, file, memory, same, strip, upgrade, wait, without_derived_rows};
use rental_core::{
    store::{
        Answer, Batch, Commit, Key, Record, SCHEMA_VERSION, Scanned, Span, Store, StoreError, Versioned,
        memory::Memory, redb::Redb,
    },
    upgrade::{State, Step, Upgrade, UpgradeError, state},
};
use std::sync::atomic::{AtomicI64, Ordering};

/// Rows of a batch, so that the small stores of the tests need many.
const ROWS: usize = 20;

/// A store whose process is killed around one of its commits.
struct Dying<'s> {
    store: &'s Memory,
    /// Commits until then.
    left: AtomicI64,
    /// Whether the last commit still happens.
    late: bool,
}

impl Dying<'_> {
    fn dies(&self) -> bool {
        self.left.fetch_sub(1, Ordering::SeqCst) <= 0
    }

    async fn last<T>(&self, write: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        if self.late {
            write.await?;
        }
        Err(StoreError::Unknown("killed".into()))
    }
}

impl Store for Dying<'_> {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        self.store.get(keys)
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        self.store.scan(span, limit)
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        match self.dies() {
            true => Box::pin(self.last(self.store.commit(batch))),
            false => self.store.commit(batch),
        }
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.store.ready()
    }
}

impl Versioned for Dying<'_> {
    fn version(&self) -> Answer<'_, u64> {
        self.store.version()
    }

    fn change_version(&self, from: u64, to: u64, batch: Batch) -> Answer<'_, bool> {
        match self.dies() {
            true => Box::pin(self.last(self.store.change_version(from, to, batch))),
            false => self.store.change_version(from, to, batch),
        }
    }
}

async fn until_it_dies(store: &dyn Versioned) -> Result<(), UpgradeError> {
    if let Some(upgrade) = Upgrade::begin(store).await? {
        let mut upgrade = upgrade.in_batches_of(ROWS);
        while upgrade.step().await? != Step::Done {}
    }
    Ok(())
}

#[test]
fn killed_at_each_commit_equals_not_killed() {
    for directory in STORES {
        let before = without_derived_rows(directory);
        let whole = memory(directory, &before);
        wait(upgrade(&whole));
        let whole = wait(everything(&whole));
        for late in [false, true] {
            for commits in 0.. {
                let store = memory(directory, &before);
                let dying = Dying { store: &store, left: AtomicI64::new(commits), late };
                let ended = wait(until_it_dies(&dying));
                assert!(commits < 10_000);
                wait(upgrade(&store));
                same(
                    &wait(everything(&store)),
                    &whole,
                    &format!("{directory}, killed at commit {commits}, late: {late}"),
                );
                if ended.is_ok() {
                    assert!(commits >= 2, "too few commits for this test: {commits}");
                    break;
                }
            }
        }
    }
}

/// Several servers begin at once, on one store.
#[test]
fn two_that_upgrade_at_once_equal_one() {
    let before = without_derived_rows("v12");
    let whole = memory("v12", &before);
    wait(upgrade(&whole));
    let store = memory("v12", &before);
    let begin = || wait(Upgrade::begin(&store)).unwrap().unwrap().in_batches_of(ROWS);
    let (mut first, mut second) = (begin(), begin());
    let mut overtaken = 0;
    loop {
        let steps = [wait(first.step()).unwrap(), wait(second.step()).unwrap()];
        overtaken += steps.iter().filter(|step| **step == Step::Overtaken).count();
        if steps == [Step::Done; 2] {
            break;
        }
    }
    assert!(overtaken > 0);
    same(&wait(everything(&store)), &wait(everything(&whole)), "both");
}

#[test]
fn half_an_upgrade_is_no_store() {
    let (_folder, path) = file("v12");
    let store = Redb::open_any_version(&path, CACHE).unwrap();
    wait(strip(&store));
    let mut upgrade = wait(Upgrade::begin(&store)).unwrap().unwrap().in_batches_of(ROWS);
    assert_eq!(wait(upgrade.step()), Ok(Step::Continue));
    drop(upgrade);
    store.close().unwrap();
    let refused = Redb::open(&path, CACHE).err().expect("it is refused").to_string();
    assert!(refused.contains("did not come to its end"), "{refused}");
    let store = Redb::open_any_version(&path, CACHE).unwrap();
    assert!(matches!(wait(state(&store)), Ok(State::Unfinished(marker)) if marker.from == 12 && marker.seen > 0));
}

#[test]
fn an_upgrade_of_another_program_is_not_continued() {
    let store = memory("v12", &without_derived_rows("v12"));
    drop(wait(Upgrade::begin(&store)).unwrap());
    let mut rows = wait(everything(&store));
    let marker = rows.iter_mut().find(|(key, _)| key.as_bytes() == b"!upgrade").unwrap();
    let mut other: serde_json::Value = serde_json::from_slice(&marker.1.1).unwrap();
    other["steps"] = "0123456789abcdef".into();
    marker.1.1 = other.to_string().into();
    wait(crate::stores::fill(&store, &rows));
    assert!(matches!(wait(state(&store)), Err(UpgradeError::Refused(why)) if why.contains("another program")));
}

#[test]
fn other_versions_are_refused_with_the_next_step() {
    let newer = "run the program that wrote it or a newer one";
    for (version, words) in [(11, "from version 12 on"), (SCHEMA_VERSION + 1, newer)] {
        let store = Memory::of_version(version);
        assert!(matches!(wait(state(&store)), Err(UpgradeError::Refused(why)) if why.contains(words)), "{version}");
    }
}
