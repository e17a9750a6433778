//! A damaged file that was not closed: redb does not open it, and nothing but the damaged rows is lost all the same.

use crate::fleet::{CACHE, dump, dump_file, fleet, wait};
use rental_core::store::{
    Batch, Commit, Key, Record, Span, Store, StoreError, after,
    redb::{ClosedFile, Redb, compact},
};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{FileExt, MetadataExt, PermissionsExt},
    path::PathBuf,
};

/// Size of a page of redb, in bytes.
pub(crate) const PAGE: usize = 4096;

/// A store that a crash left behind.
pub(crate) struct Crashed {
    _directory: tempfile::TempDir,
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
    pub(crate) rows: Vec<Record>,
}

impl Crashed {
    pub(crate) fn of(rentals: usize) -> Self {
        Self::after(rentals, 1)
    }

    /// Has pages with older versions of its rows.
    pub(crate) fn with_older_pages(rentals: usize) -> Self {
        Self::after(rentals, 200)
    }

    /// After so many more writes.
    fn after(rentals: usize, writes: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (path, crashed) = (directory.path().join("a.redb"), directory.path().join("b/b.redb"));
        fs::create_dir(crashed.parent().unwrap()).unwrap();
        fleet(&path, rentals);
        // Little of the file is out of use then.
        compact(&path, CACHE).unwrap();
        let rows = dump_file(&path);
        let store = Redb::open(&path, CACHE).unwrap();
        let with_value: Vec<&Record> = rows.iter().filter(|row| row.value.len() > 40).collect();
        for row in with_value.iter().cycle().step_by(3).take(writes) {
            let there = wait(store.get(std::slice::from_ref(&row.key))).unwrap().remove(0).unwrap();
            assert_eq!(wait(store.commit(again(&there))), Ok(Commit::Applied));
        }
        // Before the writer has time to save what makes a recovery short.
        let bytes = fs::read(&path).unwrap();
        Self { _directory: directory, path: crashed, bytes, rows: { dump(&store) } }
    }

    /// Makes the file anew, with these changes.
    pub(crate) fn damaged(&self, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
        for file in self.beside() {
            fs::remove_file(file).unwrap();
        }
        let mut bytes = self.bytes.clone();
        change(&mut bytes);
        fs::write(&self.path, &bytes).unwrap();
        bytes
    }

    /// All files of the directory.
    pub(crate) fn beside(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.path.parent().unwrap()).unwrap();
        let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        files
    }

    pub(crate) fn kept(&self) -> PathBuf {
        self.path.with_file_name("b.redb.damaged")
    }

    /// The leaves that have rows of the store: where each begins, and how many rows it has.
    pub(crate) fn leaves(&self) -> Vec<(usize, usize)> {
        let is_ours = |page: &[u8]| {
            let shown = self.rows.iter().filter(|row| row.value.len() > 40).take_while(|row| !row.value.is_empty());
            shown.filter(|row| page.windows(row.value.len()).any(|part| part == row.value)).count() > 1
        };
        let pages = self.bytes.chunks(PAGE).enumerate().skip(1);
        let leaves = pages.filter(|(_, page)| page[0] == 1 && is_ours(page));
        leaves.map(|(at, page)| (at * PAGE, usize::from(u16::from_le_bytes([page[2], page[3]])))).collect()
    }
}

/// Writes a row as it is.
fn again(row: &Record) -> Batch {
    let mut batch = Batch::default();
    batch.replace(row.key.clone(), row.revision, row.value.clone());
    batch
}

/// What is served of each row of a store, and the keys of damaged rows.
pub(crate) fn served(store: &Redb) -> (BTreeMap<Key, Record>, Vec<Key>) {
    let (mut sound, mut damaged, mut span) = (BTreeMap::new(), Vec::new(), Span::everything());
    loop {
        let rows = wait(store.scan(&span, 500)).unwrap();
        let Some(last) = rows.last() else { return (sound, damaged) };
        span.from = after(last.as_ref().map_or_else(|row| &row.key, |row| &row.key));
        for row in rows {
            match row {
                Ok(row) => drop(sound.insert(row.key.clone(), row)),
                Err(row) => damaged.push(row.key.clone()),
            }
        }
    }
}

#[test]
fn a_damaged_row_of_a_crashed_store_is_told_and_every_other_one_is_served() {
    let crashed = Crashed::of(30);
    let within = |value: &[u8], other: &[u8]| other.windows(value.len()).any(|part| part == value);
    let alone = |row: &&Record| {
        row.value.len() > 100 && crashed.rows.iter().filter(|other| within(&row.value, &other.value)).count() == 1
    };
    for row in crashed.rows.iter().filter(alone).step_by(11).take(8) {
        let bytes = crashed.damaged(|bytes| {
            let places = bytes.windows(row.value.len()).enumerate().filter(|(_, part)| *part == row.value);
            let places: Vec<usize> = places.map(|(at, _)| at).collect();
            assert!(!places.is_empty());
            places.into_iter().for_each(|at| bytes[at + 50] ^= 6);
        });
        fs::set_permissions(&crashed.path, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(ClosedFile::open(&crashed.path, CACHE).is_ok(), "it can be checked");
        let opened = [Redb::open(&crashed.path, CACHE), Redb::open_unchanged(&crashed.path, CACHE)]
            .map(|opened| opened.map(drop));
        assert!(opened.iter().all(|opened| matches!(opened, Err(StoreError::DamagedStore(_)))), "{opened:?}");
        assert!(fs::read(&crashed.path).unwrap() == bytes, "nothing of that changes it");
        assert_eq!(crashed.beside(), std::slice::from_ref(&crashed.path));
        // Left by a process that was killed: it does not stay.
        fs::write(crashed.path.with_file_name("b.redb.salvage.new"), b"half").unwrap();
        let store = Redb::open_or_salvage(&crashed.path, CACHE).unwrap();
        let told = store.salvaged().unwrap().clone();
        assert_eq!((told.rows, told.damaged, told.lost, told.gaps), (crashed.rows.len() as u64, 1, 0, 0));
        let (sound, damaged) = served(&store);
        assert_eq!(damaged, std::slice::from_ref(&row.key));
        assert!(crashed.rows.iter().filter(|one| one.key != row.key).eq(sound.values()), "each other row");
        assert_eq!(wait(store.commit(again(sound.values().next().unwrap()))), Ok(Commit::Applied));
        store.close().unwrap();
        // The damaged file is kept as it was, and nothing else is left.
        assert_eq!(told.kept, crashed.kept());
        assert_eq!(crashed.beside(), [crashed.path.clone(), crashed.kept()]);
        assert!(fs::read(crashed.kept()).unwrap() == bytes);
        assert_eq!(fs::metadata(&crashed.path).unwrap().mode() & 0o777, 0o640);
        assert!(Redb::open_or_salvage(&crashed.path, CACHE).unwrap().salvaged().is_none(), "only once");
    }
}

#[test]
fn a_page_without_structure_loses_its_own_rows_and_no_others() {
    let crashed = Crashed::of(60);
    let leaves = crashed.leaves();
    assert!(leaves.len() > 10, "{}", leaves.len());
    let mut lost_some = 0;
    for (at, rows) in leaves {
        crashed.damaged(|bytes| bytes[at..at + 200].fill(0xA7));
        let store = Redb::open_or_salvage(&crashed.path, CACHE).unwrap();
        let (sound, damaged) = served(&store);
        assert!(damaged.is_empty() && sound.values().all(|row| crashed.rows.contains(row)), "page at {at}");
        let lost = crashed.rows.len() - sound.len();
        // None, when the page is out of use.
        assert!(lost == 0 || lost == rows, "page at {at}: {lost} of {rows} rows");
        if lost > 0 {
            lost_some += 1;
            let told = store.salvaged().unwrap();
            assert_eq!((told.lost, told.gaps), (lost as u64, 1), "{told}");
        }
    }
    assert!(lost_some > 5, "{lost_some}");
}

/// The mark of an interrupted upgrade would be on it.
#[test]
fn the_first_page_of_the_rows_is_a_page_like_any_other() {
    let crashed = Crashed::of(60);
    let has = |page: &[u8], key: &[u8]| page.windows(key.len()).any(|part| part == key);
    let keys: Vec<&[u8]> = crashed.rows.iter().take(2).map(|row| row.key.as_bytes()).collect();
    let pages = (1..crashed.bytes.len() / PAGE).map(|page| page * PAGE);
    let first =
        pages.filter(|at| crashed.bytes[*at] == 1 && keys.iter().all(|key| has(&crashed.bytes[*at..][..PAGE], key)));
    let mut most_lost = 0;
    for at in first {
        crashed.damaged(|bytes| bytes[at..at + 200].fill(0xA7));
        let store = Redb::open_or_salvage(&crashed.path, CACHE).unwrap();
        let (sound, damaged) = served(&store);
        assert!(damaged.is_empty() && sound.values().all(|row| crashed.rows.contains(row)), "page at {at}");
        most_lost = most_lost.max(crashed.rows.len() - sound.len());
    }
    assert!((1..=crashed.rows.len() / 10).contains(&most_lost), "{most_lost}");
}

/// A slot of the header names the pages of a commit; its checksum tells which bit was flipped.
#[test]
fn a_bit_flipped_in_what_names_the_last_commit_brings_no_older_commit_back() {
    let crashed = Crashed::with_older_pages(20);
    let slot = if crashed.bytes[9] & 1 == 0 { 64 } else { 192 };
    let mut settled = 0;
    for bit in (0..8 * 128).step_by(7) {
        crashed.damaged(|bytes| bytes[slot + bit / 8] ^= 1 << (bit % 8));
        let Ok(store) = Redb::open_or_salvage(&crashed.path, CACHE) else { continue };
        let (sound, damaged) = served(&store);
        assert!(damaged.is_empty() && sound.into_values().eq(crashed.rows.iter().cloned()), "bit {bit} of the slot");
        settled += 1;
    }
    assert!(settled > 100, "{settled}");
    // The list of tables of an older commit.
    let is_list = |page: &[u8]| page[0] == 1 && page.windows(8).any(|part| part == b"metarows");
    let pages = 1..crashed.bytes.len() / PAGE;
    let lists: Vec<usize> = pages.filter(|at| is_list(&crashed.bytes[at * PAGE..][..PAGE])).collect();
    assert!(lists.len() > 1, "{lists:?}");
    for list in lists {
        crashed.damaged(|bytes| bytes[slot + 8..slot + 16].copy_from_slice(&(list as u64 - 1).to_le_bytes()));
        if let Ok(store) = Redb::open_or_salvage(&crashed.path, CACHE) {
            assert!(served(&store).0.into_values().eq(crashed.rows.iter().cloned()), "list at page {list}");
        }
    }
}

/// `RENTAL_BIT_ROT=1000` flips a thousand bits.
#[test]
fn a_bit_flipped_anywhere_in_a_crashed_store_is_never_served_and_hardly_ever_stops_it() {
    let flips = std::env::var("RENTAL_BIT_ROT").ok().and_then(|flips| flips.parse().ok()).unwrap_or(100);
    let crashed = Crashed::of(60);
    let used: Vec<usize> =
        (0..crashed.bytes.len() / 512).filter(|at| crashed.bytes[at * 512..][..512].iter().any(|b| *b != 0)).collect();
    let mut state = 1147u64;
    let mut roll = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut closed_off, mut salvaged, mut most_lost) = (0, 0, 0);
    for flip in 0..flips {
        let (at, bit) = (used[roll(used.len())] * 512 + roll(512), roll(8));
        crashed.damaged(|bytes| bytes[at] ^= 1 << bit);
        let store = match Redb::open_or_salvage(&crashed.path, CACHE) {
            Ok(store) => store,
            Err(StoreError::DamagedStore(_)) => {
                closed_off += 1;
                continue;
            }
            Err(error) => panic!("flip {flip} of bit {bit} of byte {at}: {error}"),
        };
        salvaged += u32::from(store.salvaged().is_some());
        let (sound, damaged) = served(&store);
        // Index entries have no value, so a flipped bit in a key is another entry, which `store check` lists.
        let wrong = sound.values().filter(|row| !row.value.is_empty() && !crashed.rows.contains(row)).count();
        assert_eq!(wrong, 0, "flip {flip} of bit {bit} of byte {at}");
        // Each page below the header has a checksum, which corrects one flipped bit.
        let is_whole = sound.values().eq(&crashed.rows);
        assert!(at < PAGE || is_whole, "flip {flip} of bit {bit} of byte {at}");
        most_lost = most_lost.max(crashed.rows.len().saturating_sub(sound.len() + damaged.len()));
        assert_eq!(wait(store.commit(again(sound.values().next().unwrap()))), Ok(Commit::Applied));
        store.close().unwrap();
    }
    println!("{flips} flips: {salvaged} salvaged, {closed_off} closed off, at most {most_lost} rows lost");
    assert!(salvaged * 3 > flips, "{salvaged} of {flips}");
    assert!(closed_off * 20 <= flips, "{closed_off} of {flips} keep the store from opening");
}

impl Crashed {
    /// Puts an older version of each leaf in its place, one after the other: `older` changes the file, and is given the place of the
    /// number by which the leaf is named, its number, and that of the older version. No older row may come back.
    fn serves_no_older_row(&self, older: impl Fn(&mut [u8], usize, u64, u64)) {
        let page = |number: u64| &self.bytes[(number as usize + 1) * PAGE..][..PAGE];
        let pages = (self.bytes.len() / PAGE - 1) as u64;
        // Its first key: that of another version of the same leaf is the same.
        let first_key = |page: &[u8]| -> Option<Vec<u8>> {
            let count = usize::from(u16::from_le_bytes([page[2], page[3]]));
            let end = u32::from_le_bytes(page[4..8].try_into().unwrap()) as usize;
            Some(page.get(4 + 8 * count..end)?.to_vec()).filter(|key| page[0] == 1 && !key.is_empty())
        };
        let (mut tried, mut opened) = (0, 0);
        for at in (0..pages).filter(|at| page(*at)[0] == 2) {
            let children = usize::from(u16::from_le_bytes([page(at)[2], page(at)[3]])) + 1;
            for n in 0..children {
                let place = 8 + 16 * children + 8 * n;
                let named = u64::from_le_bytes(page(at)[place..place + 8].try_into().unwrap());
                let Some(key) = Some(named).filter(|named| *named < pages).and_then(|named| first_key(page(named)))
                else {
                    continue;
                };
                let others =
                    (0..pages).filter(|other| *other != named && first_key(page(*other)).as_ref() == Some(&key));
                for other in others.take(2) {
                    self.damaged(|bytes| older(bytes, (at as usize + 1) * PAGE + place, named, other));
                    tried += 1;
                    let Ok(store) = Redb::open_or_salvage(&self.path, CACHE) else { continue };
                    opened += 1;
                    let (sound, damaged) = served(&store);
                    assert!(
                        damaged.is_empty() && sound.values().all(|row| self.rows.contains(row)),
                        "{other} for {named}"
                    );
                }
            }
        }
        println!("{opened} of {tried} opened");
        assert!(opened > 3, "{opened} of {tried}");
    }
}

/// A page that names another one by a wrong number.
#[test]
fn a_page_that_is_named_by_mistake_brings_no_older_row_back() {
    let crashed = Crashed::with_older_pages(60);
    crashed.serves_no_older_row(|bytes, named_at, _, other| {
        bytes[named_at..named_at + 8].copy_from_slice(&other.to_le_bytes());
    });
}

/// The disk has lost the last write of a page, or has written another page in its place.
#[test]
fn an_older_version_of_a_page_in_its_place_brings_no_older_row_back() {
    let crashed = Crashed::with_older_pages(60);
    crashed.serves_no_older_row(|bytes, _, named, other| {
        let at = |number: u64| (number as usize + 1) * PAGE;
        bytes.copy_within(at(other)..at(other) + PAGE, at(named));
    });
}

/// Flipped bits in the list of checksums of a branch, whose children are intact.
#[test]
fn a_checksum_that_rots_loses_no_row() {
    let crashed = Crashed::of(60);
    let branches = (1..crashed.bytes.len() / PAGE).map(|page| page * PAGE).filter(|at| crashed.bytes[*at] == 2);
    for at in branches {
        crashed.damaged(|bytes| (8..8 + 16 * 3).step_by(16).for_each(|checksum| bytes[at + checksum + 5] ^= 0x10));
        let store = Redb::open_or_salvage(&crashed.path, CACHE).unwrap();
        assert_eq!(served(&store).0.len(), crashed.rows.len(), "branch at {at}");
    }
}

#[test]
fn of_programs_that_open_a_damaged_store_at_once_one_gets_it() {
    let crashed = Crashed::of(20);
    let (at, _) = crashed.leaves()[2];
    for _ in 0..5 {
        crashed.damaged(|bytes| bytes[at + 2000] ^= 1);
        let opened: Vec<Result<Redb, StoreError>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| Redb::open_or_salvage(&crashed.path, CACHE))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let refused = opened.iter().filter_map(|store| store.as_ref().err());
        assert!(
            refused.clone().all(|error| matches!(error, StoreError::InUse(_))),
            "{:?}",
            refused.collect::<Vec<_>>()
        );
        let [store] = &opened.iter().flatten().collect::<Vec<_>>()[..] else { panic!("more than one has it") };
        let (sound, damaged) = served(store);
        assert_eq!(sound.len() + damaged.len(), crashed.rows.len());
        let row = sound.values().next().unwrap().clone();
        assert_eq!(wait(store.commit(again(&row))), Ok(Commit::Applied));
        drop(opened);
        // What was acknowledged is in the file that has the name.
        let store = Redb::open_or_salvage(&crashed.path, CACHE).unwrap();
        assert_eq!(served(&store).0[&row.key].revision, row.revision + 1);
        assert_eq!(crashed.beside(), [crashed.path.clone(), crashed.kept()]);
    }
}

#[test]
fn a_store_with_many_of_its_rows_gone_serves_the_others() {
    let crashed = Crashed::of(60);
    let leaves = crashed.leaves();
    let bytes = crashed.damaged(|bytes| {
        leaves.iter().enumerate().filter(|(n, _)| n % 4 > 0).for_each(|(_, (at, _))| bytes[*at..at + 200].fill(0xA7));
    });
    let store = Redb::open_or_salvage(&crashed.path, CACHE).unwrap();
    let told = store.salvaged().unwrap().clone();
    assert!(told.lost * 10 > told.rows && told.gaps > 1, "{told}");
    let (sound, damaged) = served(&store);
    assert_eq!((sound.len() as u64, damaged.len()), (told.rows, 0));
    assert!(sound.values().all(|row| crashed.rows.contains(row)));
    assert_eq!(wait(store.commit(again(sound.values().next().unwrap()))), Ok(Commit::Applied));
    assert!(fs::read(crashed.kept()).unwrap() == bytes, "nothing of the damaged file is gone");
}

#[test]
fn a_file_without_its_first_pages_is_no_store() {
    let crashed = Crashed::of(5);
    let refuses = |change: &dyn Fn(&mut [u8])| {
        let bytes = crashed.damaged(change);
        let refused = Redb::open_or_salvage(&crashed.path, CACHE).map(drop).unwrap_err();
        assert!(matches!(&refused, StoreError::DamagedStore(why) if !why.contains("repair")), "{refused:?}");
        assert!(fs::read(&crashed.path).unwrap() == bytes);
        assert_eq!(crashed.beside(), std::slice::from_ref(&crashed.path));
    };
    refuses(&|bytes| bytes[0] ^= 1);
    // Both commit slots.
    refuses(&|bytes| bytes[64..320].fill(7));
    fs::write(&crashed.path, b"").unwrap();
    assert!(Redb::open_or_salvage(&crashed.path, CACHE).is_err(), "an empty file is no new store");
}

/// Not only a file that a crash left: an open store whose page has no structure fails at the first write into it.
#[test]
fn a_store_that_failed_at_a_page_without_structure_goes_on_when_it_is_opened_again() {
    let crashed = Crashed::of(60);
    let mut failed = 0;
    for (at, _) in crashed.leaves().into_iter().step_by(3) {
        crashed.damaged(|_| {});
        // Without a cache it reads what happens to the file.
        let store = Redb::open_or_salvage(&crashed.path, 0).unwrap();
        fs::File::options().write(true).open(&crashed.path).unwrap().write_all_at(&[0xA7; 200], at as u64).unwrap();
        let outcomes: Vec<_> = crashed.rows.iter().map(|row| wait(store.commit(again(row)))).collect();
        drop(store);
        if outcomes.iter().all(|outcome| outcome == &Ok(Commit::Applied)) {
            continue;
        }
        failed += 1;
        let store = Redb::open_or_salvage(&crashed.path, CACHE).unwrap();
        assert!(store.salvaged().is_some(), "{outcomes:?}");
        let (sound, _) = served(&store);
        for (row, outcome) in crashed.rows.iter().zip(&outcomes) {
            let expected = row.revision + u64::from(*outcome == Ok(Commit::Applied));
            assert!(sound.get(&row.key).is_none_or(|there| there.revision == expected), "{:?}", row.key);
        }
        assert_eq!(wait(store.commit(again(sound.values().next().unwrap()))), Ok(Commit::Applied));
    }
    assert!(failed > 3, "{failed}");
}
