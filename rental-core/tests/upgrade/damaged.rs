//! Damaged rows stay as they are, are counted, and harm nothing else.

use crate::stores::{Rows, everything, memory, rows_of, same, upgrade, wait};
use rental_core::store::{Batch, Key, Prior, Store, Write};

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
    // Entries that the present version derives otherwise are removed too.
    let outdated = before.keys().filter(|key| matches!(key.as_bytes()[0], b'i' | b'h') && !whole.contains_key(key));
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
