//! Bits of pages on the way to rows that flip while the file is open: nothing checks the checksums of pages then.

use crate::fleet::{dump_file, fleet, wait};
use rental_core::store::{Key, Order, Span, Store as _, StoreError, key_of, redb::Redb};
use std::{fs, os::unix::fs::FileExt as _, path::Path};

const PAGE: usize = 4096;

/// The keys that a walk meets and whether it was told of damage. Fails when it does not end.
fn walk(store: &Redb, whole: &Span, size: usize, most: usize) -> (Vec<Key>, bool) {
    let (mut rest, mut keys, mut is_told) = (whole.clone(), Vec::new(), false);
    loop {
        let page = match wait(store.scan(&rest, size)) {
            Ok(page) => page,
            Err(StoreError::Damaged(row)) => {
                assert!(row.pages, "{row}");
                return (keys, true);
            }
            Err(error) => panic!("{error}"),
        };
        let Some(last) = page.last().map(|row| key_of(row).clone()) else { return (keys, is_told) };
        is_told |= page.iter().any(Result::is_err);
        keys.extend(page.iter().map(|row| key_of(row).clone()));
        assert!(keys.len() <= most, "it does not end");
        match rest.order {
            Order::Ascending => rest.from = last.next(),
            Order::Descending => rest.to = last,
        }
    }
}

/// Opens a file, changes a byte, and walks over everything and over a part, up and down, in pages of several sizes. Whether it was told
/// of damage.
fn walks(path: &Path, changed: Option<(usize, u8)>, rows: usize, middle: &Key) -> bool {
    // Without a cache, which would still have the pages as they were.
    let store = Redb::open(path, 0).unwrap();
    if let Some((at, byte)) = changed {
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(&[byte], at as u64).unwrap();
    }
    let up = Span::everything();
    let spans = [up.clone(), Span { from: middle.clone(), ..up.clone() }, Span { to: middle.clone(), ..up }];
    let mut is_told = false;
    for (span, order) in spans.iter().flat_map(|span| [(span, Order::Ascending), (span, Order::Descending)]) {
        let span = Span { order, ..span.clone() };
        for size in [2, 300] {
            // A page that was in use before may have rows of before.
            let (keys, told) = walk(&store, &span, size, 2 * rows);
            is_told |= told;
            assert!(keys.iter().all(|key| *key >= span.from && *key < span.to), "inside of the span");
            let is_behind = |one: &Key, next: &Key| if order == Order::Ascending { one < next } else { one > next };
            assert!(keys.is_sorted_by(is_behind), "in its order");
        }
    }
    is_told
}

#[test]
fn every_walk_over_damaged_pages_ends_and_has_its_keys_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.redb");
    fleet(&path, 150);
    let rows = dump_file(&path);
    let (bytes, middle) = (fs::read(&path).unwrap(), &rows[rows.len() / 2].key);
    assert!(!walks(&path, None, rows.len(), middle), "a sound file");
    let branches: Vec<usize> = (1..bytes.len() / PAGE).map(|page| page * PAGE).filter(|at| bytes[*at] == 2).collect();
    let (mut flips, mut told) = (0, 0);
    for branch in &branches {
        let keys = usize::from(u16::from_le_bytes([bytes[branch + 2], bytes[branch + 3]]));
        let ends = 8 + 24 * (keys + 1);
        // The number of keys, pages of children, ends of keys, bytes of keys.
        let places = [
            2,
            3,
            8 + 16 * (keys + 1),
            ends - 8,
            ends - 6,
            ends,
            ends + 1,
            ends + 4 * (keys / 2),
            ends + 4 * keys,
            ends + 4 * keys + 20,
        ];
        for (bit, at) in places.into_iter().enumerate() {
            let (at, bit) = (branch + at, 1 << (bit % 5));
            fs::write(&path, &bytes).unwrap();
            flips += 1;
            told += usize::from(walks(&path, Some((at, bytes[at] ^ bit)), rows.len(), middle));
        }
    }
    assert!(told > 10, "{told} of {flips} flips were told");
}
