//! A bit of a key flips in a page with rows while the file is open. The next write into the page gives it a right checksum.

use crate::{
    fleet::{CACHE, dump_file, fleet, wait},
    salvage::PAGE,
};
use redb::backends::FileBackend;
use rental_core::store::{
    Batch, Commit, Finding, Inspection as _, Key, Prior, Record, Store as _, Write, place,
    redb::{ClosedFile, Redb},
};
use std::{fs, path::Path};

/// First byte of a page with rows.
const LEAF: u8 = 1;

/// Flips a bit of this key wherever a page with rows has it. Returns how many have it.
fn flip(path: &Path, key: &Key, (byte, bit): (usize, u8)) -> usize {
    let mut bytes = fs::read(path).unwrap();
    let mut found = 0;
    for page in bytes.chunks_mut(PAGE).filter(|page| page[0] == LEAF) {
        let key = key.as_bytes();
        for at in (0..=page.len() - key.len()).filter(|at| page[*at..].starts_with(key)).collect::<Vec<_>>() {
            page[at + byte] ^= 1 << bit;
            found += 1;
        }
    }
    fs::write(path, bytes).unwrap();
    found
}

#[test]
fn a_bit_of_a_key_that_a_write_made_right_costs_its_row_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let original = directory.path().join("original.redb");
    fleet(&original, 60);
    let rows = dump_file(&original);
    let (mut out_of_order, mut tried) = (0, 0);
    for (n, at) in (10..rows.len() - 10).step_by(rows.len() / 40).enumerate() {
        let path = directory.path().join("a.redb");
        fs::copy(&original, &path).unwrap();
        let (row, neighbour) = (&rows[at], &rows[at + 1]);
        let byte = row.key.as_bytes().len() - 1 - n % 16;
        if flip(&path, &row.key, (byte, 7 - (n % 3) as u8)) == 0 {
            continue;
        }
        tried += 1;
        // The same row again, so that its page is written. No page is checked before, as when the file is open.
        let file = fs::File::options().read(true).write(true).open(&path).unwrap();
        let store = Redb::on_backend(FileBackend::new(file).unwrap()).unwrap();
        let Record { key, revision, value } = neighbour.clone();
        let again = Batch { checks: Vec::new(), writes: vec![Write::Put(key, revision, value, Prior::Any)] };
        assert_eq!(wait(store.commit(again)), Ok(Commit::Applied));
        store.close().unwrap();
        let closed = ClosedFile::open(&path, CACHE).unwrap();
        let is_told = closed.pages().is_err();
        out_of_order += usize::from(is_told);
        let mut found = Vec::new();
        closed.walk(&mut |step| {
            if let Finding::Row(row) = step {
                found.push(row);
            }
            true
        });
        drop(closed);
        let lost: Vec<&Record> = rows.iter().filter(|row| !found.contains(row)).collect();
        // The write may have put its row beside one that it did not find.
        assert!(lost.iter().all(|lost| *lost == row || *lost == neighbour), "{n}: {lost:?}");
        if is_told {
            let store = place(&format!("redb:{}", path.display())).unwrap();
            store.maintenance().unwrap().salvage(CACHE, "a bit", None).unwrap();
            let left = dump_file(&path);
            assert!(left.is_sorted_by(|one, next| one.key < next.key), "{n}");
            assert!(rows.iter().filter(|row| !left.contains(row)).count() <= 2, "{n}");
            assert!(ClosedFile::open(&path, CACHE).unwrap().pages().is_ok(), "{n}");
            Redb::open(&path, CACHE).unwrap().close().unwrap();
        }
    }
    println!("{out_of_order} of {tried} out of order");
    assert!(tried > 20 && out_of_order > 5, "{out_of_order} of {tried}");
}
