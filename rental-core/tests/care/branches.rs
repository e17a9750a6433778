//! A file that was closed, with damage in its pages. redb does not look at these when it opens it.

use crate::{
    fleet::{CACHE, dump_file, fleet},
    salvage::{PAGE, served},
};
use rental_core::store::{
    DamagedPage, Finding, Inspection as _, Record, StoreError, place,
    redb::{ClosedFile, Redb, compact},
};
use std::{collections::BTreeSet, fs, path::PathBuf};

/// A store that was closed, and its pages by their numbers.
struct Closed {
    _directory: tempfile::TempDir,
    path: PathBuf,
    bytes: Vec<u8>,
    rows: Vec<Record>,
    /// The pages of the other tables, such as those of redb itself, and of the lists of tables.
    others: BTreeSet<usize>,
    branches: BTreeSet<usize>,
    leaves: BTreeSet<usize>,
}

fn u64_at(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

fn count(page: &[u8]) -> usize {
    usize::from(page[2]) + 256 * usize::from(page[3])
}

impl Closed {
    fn of(rentals: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.redb");
        fleet(&path, rentals);
        compact(&path, CACHE).unwrap();
        let rows = dump_file(&path);
        let bytes = fs::read(&path).unwrap();
        let none = BTreeSet::new();
        let mut closed = Self {
            _directory: directory,
            path,
            bytes,
            rows,
            others: none.clone(),
            branches: none.clone(),
            leaves: none,
        };
        let slot = if closed.bytes[9] & 1 == 0 { 64 } else { 192 };
        for list in [slot + 8, slot + 40].map(|at| u64_at(&closed.bytes, at)) {
            let page = closed.page(list).to_vec();
            assert_eq!(page[0], 1, "the list of tables has one page");
            closed.others.insert(list);
            for n in 0..count(&page) {
                let end = |list: usize, n: usize| u32_at(&page, 4 + 4 * (list * count(&page) + n));
                let value = if n == 0 { end(0, count(&page) - 1) } else { end(1, n - 1) };
                let name = if n == 0 { 4 + 8 * count(&page) } else { end(0, n - 1) };
                let is_rows = &page[name..end(0, n)] == b"rows";
                if page[value + 9] != 0 {
                    closed.add(u64_at(&page, value + 10), is_rows);
                }
            }
        }
        let found = (closed.branches.len(), closed.leaves.len(), closed.others.len());
        assert!(found.0 > 2 && found.1 > 40 && found.2 > 4, "{found:?}");
        closed
    }

    fn page(&self, number: usize) -> &[u8] {
        &self.bytes[(number + 1) * PAGE..][..PAGE]
    }

    fn add(&mut self, number: usize, is_rows: bool) {
        let page = self.page(number).to_vec();
        let pages = match page[0] {
            _ if !is_rows => &mut self.others,
            1 => &mut self.leaves,
            _ => &mut self.branches,
        };
        pages.insert(number);
        if page[0] == 2 {
            let children = count(&page) + 1;
            (0..children).for_each(|n| self.add(u64_at(&page, 8 + 16 * children + 8 * n), is_rows));
        }
    }

    /// One bit of each kind of field of a branch, for some of its children.
    fn fields(&self, number: usize) -> Vec<(usize, usize)> {
        let (start, page) = ((number + 1) * PAGE, self.page(number));
        let children = count(page) + 1;
        let (numbers, ends) = (8 + 16 * children, 8 + 24 * children);
        let keys = ends + 4 * (children - 1);
        let mut bits: Vec<(usize, usize)> = (0..8).map(|bit| (start + 2, bit)).collect();
        bits.extend([(start, 0), (start, 1), (start + 3, 0), (start + 3, 7)]);
        for n in (0..children - 1).step_by(3) {
            bits.push((start + 8 + 16 * n + n % 16, n % 8));
            // The page in its region, the region, and the order.
            bits.extend([0, 1, 2, 3, 7].map(|byte| (start + numbers + 8 * n + byte, (n + byte) % 8)));
            bits.extend([0, 1, 3].map(|byte| (start + ends + 4 * n + byte, (n + byte) % 8)));
            bits.push((start + keys + (n * 7) % (u32_at(page, ends + 4 * (children - 2)) - keys), n % 8));
        }
        bits
    }

    fn write(&self, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
        for beside in fs::read_dir(self.path.parent().unwrap()).unwrap() {
            fs::remove_file(beside.unwrap().path()).unwrap();
        }
        let mut bytes = self.bytes.clone();
        change(&mut bytes);
        fs::write(&self.path, &bytes).unwrap();
        bytes
    }

    /// Opens the file as a server does: every row is there.
    #[track_caller]
    fn loses_nothing(&self, what: &str) {
        let store = Redb::open_or_salvage(&self.path, CACHE).unwrap_or_else(|error| panic!("{what}: {error}"));
        let told = store.salvaged().unwrap_or_else(|| panic!("{what}: it was not noticed"));
        assert_eq!((told.lost, told.gaps, told.damaged), (0, 0, 0), "{what}");
        let (sound, damaged) = served(&store);
        assert!(damaged.is_empty() && sound.values().eq(&self.rows), "{what}");
    }
}

/// At most so many of these, spread over all; `RENTAL_BIT_ROT` says how many.
fn some<T: Copy>(all: &[T], usual: usize) -> impl Iterator<Item = T> + '_ {
    let most = std::env::var("RENTAL_BIT_ROT").ok().and_then(|flips| flips.parse().ok()).unwrap_or(usual);
    all.iter().step_by(all.len().div_ceil(most)).copied()
}

#[test]
fn a_bit_flipped_in_any_field_of_a_branch_of_a_closed_store_loses_no_row() {
    let closed = Closed::of(60);
    let bits: Vec<(usize, usize)> = closed.branches.iter().flat_map(|branch| closed.fields(*branch)).collect();
    let mut tried = 0;
    for (at, bit) in some(&bits, 60) {
        closed.write(|bytes| bytes[at] ^= 1 << bit);
        closed.loses_nothing(&format!("bit {bit} of byte {} of page {}", at % PAGE, at / PAGE - 1));
        tried += 1;
    }
    println!("{tried} of {} bits", bits.len());
    assert!(tried > 30, "{tried}");
}

/// What redb takes for a free page, it writes over.
#[test]
fn a_bit_flipped_in_the_other_tables_of_a_closed_store_is_noticed_before_the_engine_writes() {
    let closed = Closed::of(60);
    for number in &closed.others {
        for byte in [2, 9, 20] {
            let bytes = closed.write(|bytes| bytes[(number + 1) * PAGE + byte] ^= 4);
            assert!(matches!(Redb::open(&closed.path, CACHE).map(drop), Err(StoreError::DamagedStore(_))));
            assert!(fs::read(&closed.path).unwrap() == bytes, "nothing was written");
            closed.loses_nothing(&format!("byte {byte} of page {number}"));
        }
    }
}

#[test]
fn a_bit_flipped_in_a_leaf_of_a_closed_store_is_corrected_by_a_start_a_check_and_a_repair() {
    let closed = Closed::of(60);
    let leaves: Vec<usize> = closed.leaves.iter().copied().collect();
    for (n, number) in some(&leaves, 25).enumerate() {
        let (start, pairs) = ((number + 1) * PAGE, count(closed.page(number)));
        let used = u32_at(closed.page(number), 4 + 4 * (2 * pairs - 1));
        let byte = [0, 2, 5, used / 3, used / 2, used - 1][n % 6];
        let flip = || closed.write(|bytes| bytes[start + byte] ^= 1 << (n % 8));
        flip();
        assert!(matches!(Redb::open(&closed.path, CACHE).map(drop), Err(StoreError::DamagedStore(_))));
        closed.loses_nothing(&format!("byte {byte} of page {number}"));
        flip();
        let file = ClosedFile::open(&closed.path, CACHE).unwrap();
        assert!(file.pages().is_err());
        assert_eq!(file.damaged_pages(), [DamagedPage { at: start as u64, corrected: true }]);
        let mut rows = Vec::new();
        file.walk(&mut |found| {
            let Finding::Row(row) = found else { panic!("byte {byte} of page {number}: {found:?}") };
            rows.push(row);
            true
        });
        assert!(rows == closed.rows, "byte {byte} of page {number}");
        drop(file);
        let salvaged = place(&format!("redb:{}", closed.path.display())).unwrap();
        let told = salvaged.maintenance().unwrap().salvage(CACHE, "a bit", None).unwrap();
        assert_eq!((told.rows, told.corrected, told.lost), (closed.rows.len() as u64, 1, 0));
        assert!(dump_file(&closed.path) == closed.rows);
    }
}

/// A row that is read is one that was written, at its key.
#[test]
fn several_bits_flipped_in_a_branch_of_a_closed_store_invent_no_row() {
    let closed = Closed::of(60);
    let bits: Vec<(usize, usize)> = closed.branches.iter().flat_map(|branch| closed.fields(*branch)).collect();
    let (mut opened, mut refused) = (0, 0);
    for ((one, bit), (other, _)) in some(&bits, 24).zip(some(&bits, 24).skip(1)) {
        let bytes = closed.write(|bytes| {
            bytes[one] ^= 1 << bit;
            bytes[one ^ 1] ^= 0x81;
            bytes[other] ^= 0x18;
        });
        let told = match Redb::open_or_salvage(&closed.path, CACHE) {
            Ok(store) => {
                opened += 1;
                store.salvaged().unwrap_or_else(|| panic!("bytes {one} and {other}: it was not noticed")).clone()
            }
            Err(StoreError::DamagedStore(_)) => {
                refused += 1;
                assert!(fs::read(&closed.path).unwrap() == bytes, "nothing was changed");
                let place = place(&format!("redb:{}", closed.path.display())).unwrap();
                match place.maintenance().unwrap().salvage(CACHE, "bits", None) {
                    Ok(told) => told,
                    Err(error) => {
                        assert!(error.to_string().contains("0 of"), "{error}");
                        assert!(fs::read(&closed.path).unwrap() == bytes, "nothing was changed");
                        continue;
                    }
                }
            }
            Err(error) => panic!("bytes {one} and {other}: {error}"),
        };
        let rows = dump_file(&closed.path);
        assert!(rows.iter().all(|row| closed.rows.contains(row)), "bytes {one} and {other}");
        assert_eq!((told.rows, told.lost), (rows.len() as u64, (closed.rows.len() - rows.len()) as u64));
    }
    println!("{opened} opened, {refused} waited for a person");
    assert!(opened > 3, "{opened}");
}

/// The children have checksums of their own, so that a wrong bound costs none of their rows.
#[test]
fn several_bits_flipped_in_the_keys_of_a_branch_lose_no_row() {
    let closed = Closed::of(60);
    for number in &closed.branches {
        let (start, page) = ((number + 1) * PAGE, closed.page(*number));
        let children = count(page) + 1;
        let ends = 8 + 24 * children;
        let keys = ends + 4 * (children - 1);
        let last = u32_at(page, ends + 4 * (children - 2));
        for at in [keys + 1, (keys + last) / 2, last - 1] {
            closed.write(|bytes| bytes[start + at] ^= 0x5F);
            closed.loses_nothing(&format!("byte {at} of page {number}"));
        }
    }
}

#[test]
fn a_store_without_a_row_that_can_be_read_is_never_replaced() {
    let closed = Closed::of(60);
    let bytes = closed.write(|bytes| closed.branches.iter().for_each(|at| bytes[(at + 1) * PAGE..][..900].fill(0xA7)));
    let place = place(&format!("redb:{}", closed.path.display())).unwrap();
    let refused = place.maintenance().unwrap().salvage(CACHE, "spoilt", None).unwrap_err().to_string();
    let words = format!("0 of {} rows can be read; restore it from a backup", closed.rows.len());
    assert!(refused.contains(&words), "{refused}");
    assert!(Redb::open_or_salvage(&closed.path, CACHE).is_err());
    assert!(fs::read(&closed.path).unwrap() == bytes, "nothing was changed");
    assert_eq!(fs::read_dir(closed.path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_closed_store_that_was_cut_waits_for_a_person() {
    let closed = Closed::of(60);
    let mut waited = 0;
    for left in (closed.bytes.len() / 4..closed.bytes.len()).step_by(closed.bytes.len() / 40) {
        let bytes = &closed.bytes[..left];
        fs::write(&closed.path, bytes).unwrap();
        match Redb::open_or_salvage(&closed.path, CACHE).map(drop) {
            Err(StoreError::Unreadable(why)) => {
                assert!(why.contains("it was cut") && why.contains("store repair --dry-run"), "{left}: {why}");
                waited += 1;
            }
            // What leads to all rows was at the end.
            Err(StoreError::DamagedStore(_)) => {}
            outcome => panic!("{left} of {} bytes: {outcome:?}", closed.bytes.len()),
        }
        assert!(fs::read(&closed.path).unwrap() == bytes, "nothing was changed");
    }
    assert!(waited > 5, "{waited}");
}
