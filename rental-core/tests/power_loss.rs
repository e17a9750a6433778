//! The embedded engine on a disk that loses power and on one that fails.
//!
//! [`Disk`] records every operation between two syncs as pending: a crash may keep any part of it. From one recorded
//! history thousands of crash images are built; each must open and hold a state that existed: at least every
//! acknowledged batch, at most those asked for, none of them by halves. `RENTAL_POWER_LOSS=100` runs a hundred
//! histories instead of one.
//!
//! Here batches are plain data. In `power_loss/under_load.rs` they come from real requests, and `power_loss/judge.rs` knows
//! what the requests mean. `power_loss/broken.rs` has the negative controls. `rental-server/tests/it/documents/promises.md` has the figures.
//!
//! Seen failing in a scratch copy: with `Durability::None` ("acknowledged, and lost"), and with the failure of a commit
//! not remembered ("still ready").

#[path = "power_loss/accounts.rs"]
mod accounts;
#[path = "power_loss/background.rs"]
mod background;
#[path = "power_loss/beginning.rs"]
mod beginning;
#[path = "power_loss/broken.rs"]
mod broken;
#[path = "power_loss/coverage.rs"]
mod coverage;
#[path = "power_loss/disk.rs"]
mod disk;
#[path = "power_loss/flipped_bits.rs"]
mod flipped_bits;
#[path = "power_loss/history.rs"]
mod history;
#[path = "power_loss/images.rs"]
mod images;
#[path = "power_loss/judge.rs"]
mod judge;
#[path = "power_loss/load.rs"]
mod load;
#[path = "power_loss/no_room.rs"]
mod no_room;
#[path = "power_loss/requests.rs"]
mod requests;
#[path = "power_loss/under_load.rs"]
mod under_load;

use disk::{Dice, Disk, Entry, Fault, Kept, crash};
use images::{Pace, crash_everywhere};
use rental_core::store::{
    Batch, Commit, Key, Order, Prior, Span, Store, StoreError, Write, all_sound,
    redb::{Redb, SCHEMA_VERSION},
};
use std::{
    collections::BTreeMap,
    future::Future,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

type Rows = BTreeMap<Vec<u8>, (u64, Vec<u8>)>;

/// Batches, and the rows after each of them; a counter's revision tells how many were applied.
struct Plan {
    batches: Vec<Batch>,
    states: Vec<Rows>,
}

const COUNTER: &[u8] = b"z";

impl Plan {
    fn new(seed: u64, batches: usize) -> Self {
        let mut dice = Dice(seed);
        let mut plan = Self { batches: Vec::new(), states: vec![Rows::new()] };
        for n in 1..=batches as u64 {
            let mut batch = Batch::default();
            let counter = Key::from_bytes(COUNTER);
            match n {
                1 => batch.insert(counter, n.to_be_bytes().to_vec().into()),
                _ => batch.replace(counter, n - 1, n.to_be_bytes().to_vec().into()),
            }
            for _ in 0..dice.roll(5) {
                let key = Key::from_bytes(&[b'z', dice.roll(40) as u8]);
                let length = if dice.roll(6) == 0 { dice.roll(40_000) } else { dice.roll(600) };
                match dice.roll(4) {
                    0 => batch.delete(key),
                    _ => batch.writes.push(Write::Put(key, n, vec![n as u8; length].into(), Prior::Any)),
                }
            }
            let mut rows = plan.states[plan.states.len() - 1].clone();
            for write in &batch.writes {
                match write {
                    Write::Put(key, revision, value, _) => {
                        drop(rows.insert(key.as_bytes().to_vec(), (*revision, value.to_vec())))
                    }
                    Write::Delete(key) => drop(rows.remove(key.as_bytes())),
                }
            }
            plan.batches.push(batch);
            plan.states.push(rows);
        }
        plan
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime starts");
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), future).await.expect("an answer comes") })
}

fn rows(store: &Redb) -> Rows {
    let span =
        Span { from: Key::from_bytes(COUNTER), to: Key::from_bytes(b"{"), order: Order::Ascending, follow: None };
    let found =
        all_sound(wait(store.scan(&span, 10_000)).expect("a healthy store answers")).expect("no row is damaged");
    found.into_iter().map(|record| (record.key.as_bytes().to_vec(), (record.revision, record.value.to_vec()))).collect()
}

/// Commits in groups of up to six; stops at the first error, after which nothing may be acknowledged.
fn run(store: &Redb, disk: &Disk, plan: &Plan, seed: u64) -> bool {
    let mut dice = Dice(seed);
    let (mut at, mut failed) = (0, false);
    while at < plan.batches.len() {
        let group = at..(at + 1 + dice.roll(6)).min(plan.batches.len());
        let asked: Vec<_> = group
            .clone()
            .map(|n| {
                disk.note(Entry::Asked(n + 1));
                store.commit(plan.batches[n].clone())
            })
            .collect();
        for (n, answer) in group.clone().zip(asked) {
            match wait(answer) {
                Ok(Commit::Applied) => {
                    assert!(!failed, "acknowledged after an error");
                    disk.note(Entry::Acknowledged(n + 1));
                }
                Ok(stale) => panic!("batch {n}: {stale:?}"),
                Err(_) => failed = true,
            }
        }
        at = group.end;
    }
    failed
}

/// Opens an image: it must hold a state between what was acknowledged and what was asked for. Gives the disk's log.
///
/// Where nothing was asked for yet, a store that was half made may be refused, as long as it is refused in order.
fn check(image: Vec<u8>, plan: &Plan, (acknowledged, asked): (usize, usize), place: &str) -> Vec<Entry> {
    let disk = Disk::holding(image);
    let store = match Redb::on_backend(disk.clone()) {
        Ok(store) => store,
        Err(StoreError::DamagedStore(_)) if asked == 0 => return Vec::new(),
        Err(error) => panic!("{place}: it does not open: {error}"),
    };
    let found = rows(&store);
    let applied = found.get(COUNTER).map_or(0, |(revision, _)| *revision as usize);
    assert!(
        applied >= acknowledged,
        "{place}: batch {acknowledged} was acknowledged, and lost: only {applied} are there"
    );
    assert!(applied <= asked, "{place}: {applied} of {asked}");
    assert!(found == plan.states[applied], "{place}: the rows are not those after batch {applied}");
    wait(store.ready()).expect("it can serve");
    store.close().expect("it closes");
    disk.log()
}

/// Builds images along a recorded history of a plan, and checks each.
fn crash_a_plan(base: &[u8], log: &[Entry], plan: &Plan, again: usize, dice: &mut Dice) -> usize {
    let pace = Pace { syncs: 1, others: if again > 0 { 12 } else { 4 }, losses: 4, again };
    let images = crash_everywhere(base, log, (0, 0), pace, dice, &mut |image, promised, place| {
        Ok(check(image, plan, promised, place))
    });
    images.expect("a check panics")
}

fn histories() -> u64 {
    std::env::var("RENTAL_POWER_LOSS").map_or(1, |count| count.parse().expect("a number"))
}

#[test]
fn a_power_cut_at_any_moment_loses_nothing_acknowledged() {
    for seed in 0..histories() {
        let plan = Plan::new(seed, 40);
        let disk = Disk::default();
        let store = Redb::on_backend(disk.clone()).expect("an empty disk takes a store");
        let creation = disk.log().len();
        assert!(!run(&store, &disk, &plan, seed));
        // The writer saves the allocator state once it is idle: a commit of another kind.
        std::thread::sleep(Duration::from_millis(400));
        store.close().expect("it closes");
        let log = disk.log();
        let durable = crash(&[], &log[..creation], Kept::Everything, &mut Dice(seed));
        assert!(matches!(log[creation - 1], Entry::Sync | Entry::Write(..)), "creation ends before the first batch");
        let images = crash_a_plan(&durable, &log[creation..], &plan, 1, &mut Dice(seed));
        assert!(images > 300, "only {images} images");
    }
}

#[test]
fn a_power_cut_while_the_store_is_made_leaves_an_empty_store_or_none() {
    let disk = Disk::default();
    Redb::on_backend(disk.clone()).expect("an empty disk takes a store").close().expect("it closes");
    let plan = Plan::new(0, 1);
    crash_a_plan(&[], &disk.log(), &plan, 0, &mut Dice(1));
}

/// Panics of the writer thread, which the engine would turn into a failure of its own.
static WRITER_PANICS: AtomicUsize = AtomicUsize::new(0);

fn count_writer_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().name() == Some("store-writer") {
            WRITER_PANICS.fetch_add(1, Ordering::SeqCst);
        }
        usual(panic);
    }));
}

/// One run on a disk whose operation `at` fails; gives whether the run got that far.
fn fail_once(plan: &Plan, at: u64, fault: Fault) -> bool {
    let disk = Disk::failing_at(at, fault);
    if let Ok(store) = Redb::on_backend(disk.clone()) {
        if run(&store, &disk, plan, at) {
            assert!(wait(store.ready()).is_err(), "operation {at} failed ({fault:?}), and the store is still ready");
            assert!(!wait(store.failed()).is_empty());
            assert!(wait(store.commit(plan.batches[0].clone())).is_err(), "nothing is taken any more");
        }
        // Closing may fail: what was acknowledged is durable without it.
        let _ = store.close();
    }
    let log = disk.log();
    let last = |wanted: fn(&Entry) -> Option<usize>| log.iter().filter_map(wanted).max().unwrap_or(0);
    let promised = (
        last(|entry| if let Entry::Acknowledged(n) = entry { Some(*n) } else { None }),
        last(|entry| if let Entry::Asked(n) = entry { Some(*n) } else { None }),
    );
    let synced = log.iter().rposition(|entry| matches!(entry, Entry::Sync)).unwrap_or(0);
    let durable = crash(&[], &log[..synced], Kept::Everything, &mut Dice(at));
    for kept in [Kept::Nothing, Kept::Everything, Kept::Blocks(512)] {
        let image = crash(&durable, &log[synced..], kept, &mut Dice(at));
        check(image, plan, promised, &format!("operation {at} failed ({fault:?}), then a power cut ({kept:?})"));
    }
    disk.with(|state| state.struck)
}

#[test]
fn whichever_operation_fails_nothing_acknowledged_is_lost_and_the_store_stops() {
    count_writer_panics();
    let plan = Plan::new(7, 16);
    let faults = [Fault::Io, Fault::Full, Fault::Torn];
    let mut at = 1;
    loop {
        let chosen = if histories() > 1 { &faults[..] } else { &faults[at as usize % 3..=at as usize % 3] };
        if chosen.iter().filter(|fault| fail_once(&plan, at, **fault)).count() == 0 {
            break;
        }
        at += 1;
    }
    assert!(at > 60, "only {at} operations");
    assert_eq!(WRITER_PANICS.load(Ordering::SeqCst), 0);
}

#[test]
fn a_failure_while_idle_stops_the_store_too() {
    let disk = Disk::default();
    let store = Redb::on_backend(disk.clone()).expect("an empty disk takes a store");
    let plan = Plan::new(3, 2);
    assert!(!run(&store, &disk, &plan, 3));
    disk.with(|state| state.fail_at = Some((state.operations + 1, Fault::Io)));
    assert!(!wait(store.failed()).is_empty());
    assert!(wait(store.ready()).is_err());
}

/// An engine that cannot read is not ready either, although nobody writes.
#[test]
fn a_failed_read_stops_the_store_too() {
    let disk = Disk::default();
    let store = Redb::on_backend(disk.clone()).expect("an empty disk takes a store");
    let mut batch = Batch::default();
    for n in 0..60 {
        // More than the page cache holds.
        batch.writes.push(Write::Put(Key::from_bytes(&[b'z', n]), 1, vec![n; 100_000].into(), Prior::Any));
    }
    assert_eq!(wait(store.commit(batch)), Ok(Commit::Applied));
    std::thread::sleep(Duration::from_millis(400));
    disk.with(|state| state.fail_at = Some((state.operations + 1, Fault::Io)));
    let span =
        Span { from: Key::from_bytes(COUNTER), to: Key::from_bytes(b"{"), order: Order::Ascending, follow: None };
    assert!(wait(store.scan(&span, 10_000)).is_err(), "the disk failed");
    assert!(wait(store.ready()).is_err(), "reads fail, and the store is still ready");
    assert!(!wait(store.failed()).is_empty());
}

/// The engine does not touch what it cannot understand.
#[test]
fn a_file_of_a_later_version_is_refused_in_one_sentence_and_left_as_it_is() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("later.redb");
    Redb::open(&path, 1 << 20).expect("it is made").close().expect("it closes");
    let meta = redb::TableDefinition::<&str, u64>::new("meta");
    let database = redb::Database::open(&path).expect("a redb file");
    let transaction = database.begin_write().expect("a transaction");
    transaction.open_table(meta).expect("a table").insert("schema_version", SCHEMA_VERSION + 1).expect("it is set");
    transaction.commit().expect("it is durable");
    drop(database);
    for _ in 0..2 {
        let refusal = Redb::open(&path, 1 << 20).err().expect("it is refused").to_string();
        assert!(refusal.contains(&format!("version {}", SCHEMA_VERSION + 1)), "{refusal}");
        assert_eq!(refusal.lines().count(), 1, "{refusal}");
    }
    let rows = redb::TableDefinition::<&[u8], &[u8]>::new("rows");
    let database = redb::Database::open(&path).expect("still a redb file");
    let transaction = redb::ReadableDatabase::begin_read(&database).expect("a transaction");
    assert!(transaction.open_table(rows).is_ok(), "what was in it is still there");
}
