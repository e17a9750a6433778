//! The embedded engine on a disk that loses power anywhere, against a sorted map: every acknowledged batch is there after the
//! crash, none by halves.

use crate::{
    Pieces,
    simulated_disk::{Dice, Disk, Entry, LOSSES, apply, crash},
    upgrade::now,
};
use rental_core::store::{Batch, Check, Commit, Key, Order, Prior, Span, Store, Write, all_sound, redb::Redb};
use std::collections::BTreeMap;

type Rows = BTreeMap<Vec<u8>, (u64, Vec<u8>)>;

/// Most batches and crashes of one input.
const MOST_BATCHES: usize = 40;
const MOST_CRASHES: usize = 4;

/// Each byte is an operation, followed by its parts: a scan, a power cut, or a batch.
pub fn check(data: &[u8]) {
    let mut pieces = Pieces(data);
    let mut disk = Disk::default();
    let mut store = Redb::on_backend(disk.clone()).expect("a new store");
    // What a power cut before the first batch leaves is another test's matter: the store begins synced.
    let mut durable = disk.with(|state| {
        state.log.clear();
        state.live.clone()
    });
    let mut history = vec![Rows::new()];
    let (mut batches, mut crashes) = (0, 0);
    while !pieces.is_empty() && batches < MOST_BATCHES {
        match pieces.byte() {
            0..16 => scan(&store, &history[history.len() - 1], &mut pieces),
            16..32 if crashes < MOST_CRASHES => {
                crashes += 1;
                drop(store);
                let image = power_cut(&durable, &disk.log(), &history, &mut pieces);
                disk = Disk::holding(image.clone());
                store = Redb::on_backend(disk.clone()).expect("a crash image opens");
                let found = rows(&store);
                let first = history.iter().position(|state| *state == found);
                first.expect("the image was judged");
                history = vec![found];
                durable = image;
            }
            what => {
                batches += 1;
                let batch = batch(what, &history[history.len() - 1], &mut pieces);
                let expected = applied(&history[history.len() - 1], &batch);
                disk.note(Entry::Asked(history.len()));
                let outcome = now(store.commit(batch)).expect("a healthy disk");
                match expected {
                    Ok(state) => {
                        assert_eq!(outcome, Commit::Applied);
                        disk.note(Entry::Acknowledged(history.len()));
                        history.push(state);
                    }
                    Err(key) => assert_eq!(outcome, Commit::Stale(key)),
                }
            }
        }
    }
    assert_eq!(rows(&store), history[history.len() - 1]);
    drop(store);
    let image = power_cut(&durable, &disk.log(), &history, &mut pieces);
    drop(image);
}

/// An image of the disk after a power cut at a point of the log, which the input chooses. It has a state from the last
/// acknowledged batch on.
fn power_cut(durable: &[u8], log: &[Entry], history: &[Rows], pieces: &mut Pieces<'_>) -> Vec<u8> {
    let at = usize::from(u16::from_be_bytes(pieces.array())) % (log.len() + 1);
    let kept = LOSSES[usize::from(pieces.byte()) % LOSSES.len()];
    let mut dice = Dice(u64::from(u16::from_be_bytes(pieces.array())));
    let (mut base, mut synced, mut promised, mut asked) = (durable.to_vec(), 0, 0, 0);
    for (nth, entry) in log[..at].iter().enumerate() {
        match entry {
            Entry::Sync => {
                log[synced..nth].iter().for_each(|entry| apply(&mut base, entry));
                synced = nth;
            }
            Entry::Asked(n) => asked = *n,
            Entry::Acknowledged(n) => promised = *n,
            Entry::Write(..) | Entry::SetLen(_) => {}
        }
    }
    let image = crash(&base, &log[synced..at], kept, &mut dice);
    let store = Redb::on_backend(Disk::holding(image.clone())).expect("a crash image opens");
    let found = rows(&store);
    let most = asked.max(promised).min(history.len() - 1);
    let states = &history[promised..=most];
    assert!(
        states.contains(&found),
        "after a power cut at {at} of {} ({kept:?}): {found:?}, not one of {states:?}",
        log.len()
    );
    image
}

/// A batch of up to four writes, most of them with a check that holds.
fn batch(what: u8, rows: &Rows, pieces: &mut Pieces<'_>) -> Batch {
    let mut batch = Batch::default();
    for _ in 0..1 + what % 4 {
        let [at, how, size] = pieces.array::<3>();
        let key = Key::from_bytes(&[b'k', at % 24]);
        let seen = rows.get(key.as_bytes()).map(|row| row.0);
        match (how % 8, seen) {
            (0, Some(revision)) => batch.checks.push(Check::At(key.clone(), revision + u64::from(how > 240))),
            (0, None) => batch.checks.push(Check::Absent(key.clone())),
            (1, _) if how > 200 => batch.checks.push(Check::Present(key.clone())),
            _ => {}
        }
        if how & 0x18 == 0 {
            batch.delete(key);
        } else {
            let length = usize::from(size) * if how & 0x60 == 0 { 200 } else { 3 };
            let prior = if seen.is_none() && how & 0x80 != 0 { Prior::New } else { Prior::Any };
            let revision = u64::from(size) + 1;
            batch.writes.push(Write::Put(key, revision, vec![at ^ size; length].into(), prior));
        }
    }
    batch
}

/// The rows after a batch, or the key of the first check that does not hold.
fn applied(rows: &Rows, batch: &Batch) -> Result<Rows, Key> {
    for check in &batch.checks {
        let found = rows.get(check.key().as_bytes()).map(|row| row.0);
        let holds = match check {
            Check::At(_, revision) => found == Some(*revision),
            Check::Present(_) => found.is_some(),
            Check::Absent(_) => found.is_none(),
        };
        if !holds {
            return Err(check.key().clone());
        }
    }
    let mut rows = rows.clone();
    for write in &batch.writes {
        match write {
            Write::Put(key, revision, value, _) => {
                drop(rows.insert(key.as_bytes().to_vec(), (*revision, value.to_vec())));
            }
            Write::Delete(key) => drop(rows.remove(key.as_bytes())),
        }
    }
    Ok(rows)
}

fn rows(store: &Redb) -> Rows {
    let found = all_sound(now(store.scan(&Span::everything(), usize::MAX)).expect("rows")).expect("sound rows");
    found.into_iter().map(|row| (row.key.as_bytes().to_vec(), (row.revision, row.value.to_vec()))).collect()
}

fn scan(store: &Redb, rows: &Rows, pieces: &mut Pieces<'_>) {
    let [from, to, how] = pieces.array::<3>();
    let (from, to) = (vec![b'k', from % 32], vec![b'k', to % 32]);
    let order = if how & 1 == 0 { Order::Ascending } else { Order::Descending };
    let limit = usize::from(how / 2 % 8);
    let span = Span { from: Key::from_bytes(&from), to: Key::from_bytes(&to), order, follow: None };
    let found = all_sound(now(store.scan(&span, limit)).expect("rows")).expect("sound rows");
    let found: Vec<&[u8]> = found.iter().map(|row| row.key.as_bytes()).collect();
    let within = rows.keys().filter(|key| **key >= from && **key < to).map(Vec::as_slice);
    let mut expected: Vec<&[u8]> = within.collect();
    if order == Order::Descending {
        expected.reverse();
    }
    expected.truncate(limit);
    assert_eq!(found, expected);
}
