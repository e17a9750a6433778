//! Damaged rows stay as they are, are counted, and harm nothing else.

use crate::stores::{Rows, everything, memory, rows_of, same, upgrade, wait};
use rental_core::{
    store::{Answer, Batch, Commit, Key, Prior, Record, Scanned, Span, Store, Versioned, Write, memory::Memory},
    upgrade::{Step, Upgrade},
};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    task::{Context, Poll, Waker},
};

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
    let before = rows_of("v12");
    let (rental, toll, organization) = (record_of(&before, 3, 1), record_of(&before, 5, 0), record_of(&before, 8, 0));
    for (broken, value) in [(&rental, &b"{\"id\":"[..]), (&toll, b"{\"id\":\"x\"}"), (&rental, b"\xff\xfe")] {
        let mut rows = before.clone();
        rows.get_mut(broken).unwrap().1 = bytes::Bytes::copy_from_slice(value);
        let store = memory("v12", &rows);
        let counted = wait(upgrade(&store)).unwrap();
        let after = wait(everything(&store));
        assert_eq!(counted.damaged, 1);
        assert!(counted.damaged_rows[0].contains(&broken.id().unwrap().to_string()), "{:?}", counted.damaged_rows);
        assert_eq!(after[broken], rows[broken]);
        // Lists go on to say that it is damaged, instead of leaving it out.
        for entry in entries_of(&before, broken) {
            assert!(after.contains_key(&entry), "{}", rental_core::resources::row_words::in_words(&entry));
        }
        let whole = memory("v12", &before);
        wait(upgrade(&whole));
        let mut whole = wait(everything(&whole));
        whole.retain(|key, _| !key.as_bytes().ends_with(&broken.as_bytes()[18..]));
        for (key, row) in &whole {
            assert_eq!(after.get(key), Some(row), "{}", rental_core::resources::row_words::in_words(key));
        }
    }
    let _ = organization;
}

/// Entries and holds without a record, of organizations that exist and of others.
#[test]
fn rows_that_no_record_has_are_removed() {
    let before = rows_of("v12");
    let whole = memory("v12", &before);
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
    let store = memory("v12", &rows);
    let counted = wait(upgrade(&store)).unwrap();
    // Entries that the present version derives otherwise are removed too.
    let outdated = before.keys().filter(|key| matches!(key.as_bytes()[0], b'i' | b'h') && !whole.contains_key(key));
    assert_eq!(counted.removed, added + outdated.count() as u64);
    same(&wait(everything(&store)), &whole, "whole");
}

/// A missing row is written again; a missing claim too, and one that is there stays.
#[test]
fn missing_rows_are_written_again() {
    let before = rows_of("v12");
    let whole = memory("v12", &before);
    wait(upgrade(&whole));
    let whole = wait(everything(&whole));
    let mut rows = before.clone();
    rows.retain(|key, _| !matches!(key.as_bytes()[0], b'i' | b'h'));
    let store = memory("v12", &rows);
    wait(upgrade(&store));
    same(&wait(everything(&store)), &whole, "whole");
    let claim = before.keys().find(|key| key.as_bytes()[0] == b'u').unwrap();
    let store = memory("v12", &before);
    let mut batch = Batch::default();
    batch.writes.push(Write::Put(claim.clone(), 7, vec![9; 20].into(), Prior::Any));
    wait(store.commit(batch)).unwrap();
    wait(upgrade(&store));
    assert_eq!(wait(everything(&store))[claim], (7, vec![9; 20].into()));
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
    let mut rows = rows_of("v12");
    let entry = rows.keys().find(|key| key.as_bytes()[0] == b'i').unwrap().as_bytes().to_vec();
    for number in 0..12_000_u32 {
        let mut stale = entry.clone();
        let end = stale.len() - 4;
        stale[end..].copy_from_slice(&number.to_be_bytes());
        rows.insert(Key::from_bytes(&stale), (0, bytes::Bytes::new()));
    }
    let store = Counting(memory("v12", &rows), AtomicU64::new(0));
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
