//! Damaged rows stay as they are, are counted, and harm nothing else.

use crate::stores::{CACHE, Rows, damaged_file, everything, memory, rows_of, same, upgrade, wait};
use rental_core::{
    store::{
        Answer, Batch, Commit, Key, Prior, Record, Scanned, Span, Store, StoreError, Versioned, Write, memory::Memory,
        redb::Redb,
    },
    upgrade::{Step, Upgrade, UpgradeError},
};
use serde_json::Value;
use std::{
    collections::HashMap,
    fs::File,
    os::unix::fs::FileExt as _,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    task::{Context, Poll, Waker},
    time::Duration,
};
use uuid::Uuid;

fn record_of(rows: &Rows, tag: u8, at: usize) -> Key {
    rows.keys().filter(|key| key.as_bytes()[0] == b'r' && key.as_bytes()[17] == tag).nth(at).unwrap().clone()
}

/// Rows that lead to a record.
fn entries_of(rows: &Rows, record: &Key) -> Vec<Key> {
    let id = &record.as_bytes()[18..];
    let derived = rows.keys().filter(|key| matches!(key.as_bytes()[0], b'i' | b'h'));
    derived
        .filter(|key| key.as_bytes().ends_with(id) && key.as_bytes()[1..17] == record.as_bytes()[1..17])
        .cloned()
        .collect()
}

#[test]
fn a_record_that_cannot_be_read_stays_and_is_counted() {
    let before = rows_of("v2");
    let (rental, toll, organization) = (record_of(&before, 3, 1), record_of(&before, 5, 0), record_of(&before, 8, 0));
    for (broken, value) in [(&rental, &b"{\"id\":"[..]), (&toll, b"{\"id\":\"x\"}"), (&rental, b"\xff\xfe")] {
        let mut rows = before.clone();
        rows.get_mut(broken).unwrap().1 = bytes::Bytes::copy_from_slice(value);
        let store = memory("v2", &rows);
        let counted = wait(upgrade(&store)).unwrap();
        let after = wait(everything(&store));
        assert_eq!(counted.damaged, 1);
        assert!(counted.damaged_rows[0].contains(&broken.id().unwrap().to_string()), "{:?}", counted.damaged_rows);
        assert_eq!(after[broken], rows[broken]);
        // Lists go on to say that it is damaged, instead of leaving it out.
        for entry in entries_of(&before, broken) {
            assert!(after.contains_key(&entry), "{}", rental_core::resources::row_words::in_words(&entry));
        }
        let whole = memory("v2", &before);
        wait(upgrade(&whole));
        let mut whole = wait(everything(&whole));
        whole.retain(|key, _| !key.as_bytes().ends_with(&broken.as_bytes()[18..]));
        for (key, row) in &whole {
            assert_eq!(after.get(key), Some(row), "{}", rental_core::resources::row_words::in_words(key));
        }
    }
    let _ = organization;
}

/// Stores of before version 6 learn from their invoices what is billed.
#[test]
fn a_damaged_invoice_is_reported_with_what_it_means_for_what_it_bills() {
    let before = rows_of("v2");
    let invoice = record_of(&before, 4, 0);
    let mut rows = before.clone();
    rows.get_mut(&invoice).unwrap().1 = bytes::Bytes::from_static(b"{\"id\":");
    let counted = wait(upgrade(&memory("v2", &rows))).unwrap();
    let told = &counted.damaged_rows[0];
    assert!(told.contains(&invoice.id().unwrap().to_string()), "{told}");
    assert!(
        told.ends_with(
            "; the rentals that it bills count as not billed, so restore it before you bill that customer again"
        ),
        "{told}"
    );
}

/// Programs of before version 6 wrote a claim for each toll and violation that an invoice bills.
#[test]
fn tolls_and_violations_of_a_damaged_invoice_stay_billed() {
    for version in ["v2", "v3", "v4", "v5"] {
        let before = rows_of(version);
        let whole = memory(version, &before);
        wait(upgrade(&whole));
        let whole = wait(everything(&whole));
        let claims = before.iter().filter(|(key, _)| key.as_bytes()[0] == b'b');
        let mut by_invoice: HashMap<Vec<u8>, Vec<Uuid>> = HashMap::new();
        for (key, (_, value)) in claims {
            by_invoice.entry(value.to_vec()).or_default().push(key.id().unwrap());
        }
        assert!(!by_invoice.is_empty(), "{version}");
        for (invoice, sources) in by_invoice {
            let place = before.keys().find(|key| key.as_bytes()[0] == b'r' && key.as_bytes()[18..] == invoice);
            let mut rows = before.clone();
            rows.get_mut(place.unwrap()).unwrap().1 = bytes::Bytes::from_static(b"{\"id\":");
            let store = memory(version, &rows);
            wait(upgrade(&store));
            let after = wait(everything(&store));
            for (key, row) in &after {
                let is_source = key.as_bytes()[0] == b'r' && key.id().is_some_and(|id| sources.contains(&id));
                let members = |rows: &Rows| -> Value { serde_json::from_slice(&rows[key].1).unwrap() };
                if is_source {
                    let (after, whole) = (members(&after), members(&whole));
                    let names = ["amount_billed", "invoice_ids"];
                    assert_eq!(names.map(|name| &after[name]), names.map(|name| &whole[name]), "{version}");
                    assert_eq!(row.0, before[key].0 + 1);
                }
            }
        }
    }
}

/// Entries and holds without a record, of organizations that exist and of others.
#[test]
fn rows_that_no_record_has_are_removed() {
    let before = rows_of("v2");
    let whole = memory("v2", &before);
    wait(upgrade(&whole));
    let whole = wait(everything(&whole));
    let mut rows = before.clone();
    let mut added = 0;
    for key in before.keys().filter(|key| matches!(key.as_bytes()[0], b'i' | b'h')) {
        let bytes = key.as_bytes();
        let mut elsewhere = bytes.to_vec();
        elsewhere[1..17].copy_from_slice(&[0xee; 16]);
        let mut gone = bytes.to_vec();
        *gone.last_mut().unwrap() ^= 0xff;
        let mut unknown = bytes.to_vec();
        unknown[18] = 0x77;
        for stale in [elsewhere, gone, unknown] {
            let key = Key::from_bytes(&stale);
            if !before.contains_key(&key) && !whole.contains_key(&key) {
                added += u64::from(rows.insert(key, (0, bytes::Bytes::new())).is_none());
            }
        }
    }
    let store = memory("v2", &rows);
    let counted = wait(upgrade(&store)).unwrap();
    // Entries that the present version derives otherwise are removed too, and billing claims.
    let outdated =
        before.keys().filter(|key| matches!(key.as_bytes()[0], b'b' | b'i' | b'h') && !whole.contains_key(key));
    assert_eq!(counted.removed, added + outdated.count() as u64);
    same(&wait(everything(&store)), &whole, "whole");
}

/// A missing row is written again; a missing claim too, and one that is there stays.
#[test]
fn missing_rows_are_written_again() {
    let before = rows_of("v2");
    let whole = memory("v2", &before);
    wait(upgrade(&whole));
    let whole = wait(everything(&whole));
    let mut rows = before.clone();
    rows.retain(|key, _| !matches!(key.as_bytes()[0], b'i' | b'h' | b'b'));
    let store = memory("v2", &rows);
    wait(upgrade(&store));
    same(&wait(everything(&store)), &whole, "whole");
    let claim = before.keys().find(|key| key.as_bytes()[0] == b'u').unwrap();
    let store = memory("v2", &before);
    let mut batch = Batch::default();
    batch.writes.push(Write::Put(claim.clone(), 7, vec![9; 20].into(), Prior::Any));
    wait(store.commit(batch)).unwrap();
    wait(upgrade(&store));
    assert_eq!(wait(everything(&store))[claim], (7, vec![9; 20].into()));
}

/// Upgrades a file, with the bits of these bytes changed while it is open; `None` when that takes so long that it will never end.
fn outcome(path: &Path, changed: Option<(u64, [u8; 8])>) -> Option<Result<(), UpgradeError>> {
    let (path, (ended, result)) = (path.to_owned(), std::sync::mpsc::channel());
    std::thread::spawn(move || {
        let upgraded = wait(async {
            // Without a cache, which would still have the pages as they were.
            let store = Redb::open_any_version(&path, 0)?;
            if let Some((at, changes)) = changed {
                let (file, mut bytes) = (File::options().read(true).write(true).open(&path).unwrap(), [0; 8]);
                file.read_exact_at(&mut bytes, at).unwrap();
                bytes.iter_mut().zip(changes).for_each(|(byte, change)| *byte ^= change);
                file.write_all_at(&bytes, at).unwrap();
            }
            let Some(mut upgrade) = Upgrade::begin(&store).await? else { return Ok(()) };
            while upgrade.step().await? != Step::Done {}
            Ok(())
        });
        let _ = ended.send(upgraded);
    });
    result.recv_timeout(Duration::from_secs(60)).ok()
}

/// Pages whose keys are out of order return the same rows again and again. The opening refuses such a file.
#[test]
fn keys_out_of_order_end_an_upgrade() {
    let (_folder, path) = damaged_file(272_329, &[0x36, 0xf4, 0x9f, 0x2d, 0xd1, 0x16, 0x48, 0x78]);
    let ended = outcome(&path, None).expect("it ends");
    assert!(
        matches!(&ended, Err(UpgradeError::Store(StoreError::DamagedStore(why))) if why.contains("a page is not as it was written")),
        "{ended:?}"
    );
    // An upgrade is no advice.
    let looked = rental_core::store::redb::ClosedFile::open(&path, CACHE).map(drop);
    assert!(
        matches!(&looked, Err(StoreError::DamagedStore(why)) if why.ends_with("restore it from a backup")),
        "{looked:?}"
    );
}

/// redb panics on such pages.
#[test]
fn a_panic_of_the_engine_is_a_damaged_store() {
    let (_folder, path) = damaged_file(0, &[]);
    let changed = (675_865, [0x49, 0xa2, 0x08, 0x72, 0x06, 0x89, 0x3a, 0x19]);
    let ended = outcome(&path, Some(changed)).expect("it does not panic");
    assert!(
        matches!(&ended, Err(UpgradeError::Store(StoreError::DamagedStore(why))) if why.contains("pages")),
        "{ended:?}"
    );
}

/// Counts its scans.
struct Counting(Memory, AtomicU64);

impl Store for Counting {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        self.0.get(keys)
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.scan(span, limit)
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        self.0.commit(batch)
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.0.ready()
    }
}

impl Versioned for Counting {
    fn version(&self) -> Answer<'_, u64> {
        self.0.version()
    }

    fn change_version(&self, from: u64, to: u64, batch: Batch) -> Answer<'_, bool> {
        self.0.change_version(from, to, batch)
    }
}

/// Reads of an embedded engine never wait, so a sweep that does not yield keeps the server from answering and stopping.
#[test]
fn a_sweep_of_many_pages_lets_other_tasks_run() {
    let mut rows = rows_of("v2");
    let entry = rows.keys().find(|key| key.as_bytes()[0] == b'i').unwrap().as_bytes().to_vec();
    for number in 0..12_000_u32 {
        let mut stale = entry.clone();
        let end = stale.len() - 4;
        stale[end..].copy_from_slice(&number.to_be_bytes());
        rows.insert(Key::from_bytes(&stale), (0, bytes::Bytes::new()));
    }
    let store = Counting(memory("v2", &rows), AtomicU64::new(0));
    let mut upgrade = wait(Upgrade::begin(&store)).unwrap().unwrap();
    let (mut context, mut most) = (Context::from_waker(Waker::noop()), 0);
    let mut run = std::pin::pin!(async { while upgrade.step().await.unwrap() != Step::Done {} });
    loop {
        let before = store.1.load(Ordering::Relaxed);
        let polled = run.as_mut().poll(&mut context);
        most = most.max(store.1.load(Ordering::Relaxed) - before);
        if polled == Poll::Ready(()) {
            break;
        }
    }
    assert!(most <= 12, "{most} pages without a pause");
}
