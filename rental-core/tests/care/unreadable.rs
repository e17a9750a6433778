//! A file of which a part cannot be read, or whose salvage meets an obstacle: what is said, and what is not touched.

use crate::{
    fleet::{CACHE, dump_file, wait},
    salvage::{Crashed, PAGE, served},
};
use rental_core::store::{
    Absent, Access, Damaged, Environment, Maintenance, Opening, Place, SCHEMA_VERSION, Salvaged, StoreError, place,
    redb::{ClosedFile, Redb, compact},
};
use std::{ffi::OsString, fs, path::Path, process::Command, sync::Arc, time::Duration};
use uuid::Uuid;

fn place_of(path: &Path) -> Arc<dyn Place> {
    place(&format!("redb:{}", path.display())).unwrap()
}

struct Nothing;

impl Environment for Nothing {
    fn variable(&self, _: &str) -> Option<OsString> {
        None
    }

    fn file(&self, path: &Path) -> Result<Vec<u8>, String> {
        Err(format!("cannot read {}", path.display()))
    }
}

/// Opens the file as `rental-cli store repair` does.
fn open_all_the_same(path: &Path) -> Result<Option<Salvaged>, StoreError> {
    let opening = Opening {
        cache_bytes: CACHE,
        absent: Absent::Fail,
        damaged: Damaged::SalvageUnreadable,
        writer: Uuid::nil(),
        patience: Duration::from_secs(1),
        environment: &Nothing,
    };
    let store = wait(place_of(path).open(Access::Present, &opening))?;
    let salvaged = store.salvaged().cloned();
    wait(store.close())?;
    Ok(salvaged)
}

#[test]
fn a_file_that_was_cut_waits_for_a_person_and_then_keeps_every_row_that_is_there() {
    let waited: usize = [Crashed::of(60), Crashed::with_older_pages(60)].iter().map(cut).sum();
    assert!(waited > 3, "{waited}");
}

/// Cuts the file at several pages. Returns how often it waited for a person.
fn cut(crashed: &Crashed) -> usize {
    let pages = crashed.bytes.len() / PAGE;
    let (mut waited, mut lost_some, mut most_lost) = (0, 0, 0);
    for left in (8..pages).step_by(5).chain([pages - 1]) {
        crashed.damaged(|_| {});
        let bytes = &crashed.bytes[..left * PAGE];
        fs::write(&crashed.path, bytes).unwrap();
        match Redb::open_or_salvage(&crashed.path, CACHE).map(drop) {
            Err(StoreError::Unreadable(why)) => {
                assert!(why.contains("it was cut") && why.contains("`rental-cli store repair --dry-run`"), "{why}");
                waited += 1;
            }
            // What leads to the rows was at the end.
            Err(StoreError::DamagedStore(_)) => {}
            // Nothing is missing but what can be written again.
            Ok(()) => {
                assert_eq!(dump_file(&crashed.path).len(), crashed.rows.len(), "{left} pages");
                continue;
            }
            Err(error) => panic!("{left} pages: {error}"),
        }
        assert!(fs::read(&crashed.path).unwrap() == bytes, "nothing was changed");
        assert_eq!(crashed.beside(), std::slice::from_ref(&crashed.path));
        let place = place_of(&crashed.path);
        let maintenance: &dyn Maintenance = place.maintenance().unwrap();
        let Ok(told) = maintenance.salvage(CACHE, "it was cut", None) else { continue };
        let store = Redb::open(&crashed.path, CACHE).unwrap();
        let (sound, damaged) = served(&store);
        assert!(damaged.is_empty() && sound.values().all(|row| crashed.rows.contains(row)), "{left} pages");
        assert_eq!((told.rows, told.lost), (sound.len() as u64, (crashed.rows.len() - sound.len()) as u64));
        assert!(fs::read(crashed.kept()).unwrap() == bytes, "the file is kept as it was");
        drop(store);
        // As many as of a file that has its length, and nothing where the other one ends.
        crashed.damaged(|bytes| bytes[left * PAGE..].fill(0));
        let of_whole_length = maintenance.salvage(CACHE, "zeros", None).unwrap();
        assert_eq!((told.rows, told.lost), (of_whole_length.rows, of_whole_length.lost), "{left} of {pages} pages");
        lost_some += usize::from(told.lost > 0);
        most_lost = most_lost.max(told.lost);
    }
    println!("{pages} pages, {waited} waited, {lost_some} lost rows, at most {most_lost} of {}", crashed.rows.len());
    waited
}

#[test]
fn a_file_that_was_cut_behind_its_last_row_is_salvaged_without_a_loss() {
    let crashed = Crashed::of(20);
    let mut whole = 0;
    for left in (crashed.bytes.len() / PAGE - 40).max(2)..crashed.bytes.len() / PAGE {
        crashed.damaged(|_| {});
        fs::write(&crashed.path, &crashed.bytes[..left * PAGE]).unwrap();
        if !matches!(Redb::open(&crashed.path, CACHE).map(drop), Err(StoreError::Unreadable(_))) {
            continue;
        }
        let Ok(told) = open_all_the_same(&crashed.path) else { continue };
        let told = told.unwrap();
        if told.gaps == 0 {
            whole += 1;
            assert_eq!((told.rows, told.lost), (crashed.rows.len() as u64, 0), "{told}");
        }
    }
    assert!(whole > 0);
}

const VERSION: &[u8] = b"schema_version";

fn no_page(page: &mut [u8]) {
    page[..200].fill(0xA7);
}

/// Another number, which this program does not open as its own.
fn another_number(page: &mut [u8]) {
    let at = page.windows(VERSION.len()).position(|part| part == VERSION).unwrap() + VERSION.len();
    assert_eq!(u64::from(page[at]), SCHEMA_VERSION);
    page[at] ^= 3;
}

/// The page has one row: its number.
#[test]
fn a_file_that_lost_its_schema_version_keeps_every_row_once_a_person_says_which_it_has() {
    let crashed = Crashed::of(30);
    let has_it = |page: &[u8]| page[0] == 1 && page.windows(VERSION.len()).any(|part| part == VERSION);
    let pages = (1..crashed.bytes.len() / PAGE).map(|page| page * PAGE);
    let its: Vec<usize> = pages.filter(|at| has_it(&crashed.bytes[*at..][..PAGE])).collect();
    for damage in [no_page as fn(&mut [u8]), another_number] {
        let bytes = crashed.damaged(|bytes| its.iter().for_each(|at| damage(&mut bytes[*at..][..PAGE])));
        let refused = Redb::open_or_salvage(&crashed.path, CACHE).map(drop).unwrap_err();
        let advice = format!("`rental-cli store repair --schema-version {SCHEMA_VERSION}` keeps the rows");
        assert!(matches!(&refused, StoreError::DamagedStore(why) if why.contains(&advice)), "{refused:?}");
        assert!(ClosedFile::open(&crashed.path, CACHE).is_err(), "nothing is assumed");
        assert!(fs::read(&crashed.path).unwrap() == bytes);
        let place = place_of(&crashed.path);
        let maintenance = place.maintenance().unwrap();
        assert!(maintenance.salvage(CACHE, "damaged", None).is_err());
        assert!(maintenance.inspect(CACHE, Some(SCHEMA_VERSION - 1)).is_err(), "another version is not taken");
        let told = maintenance.salvage(CACHE, "damaged", Some(SCHEMA_VERSION)).unwrap();
        assert_eq!((told.rows, told.damaged, told.lost, told.gaps), (crashed.rows.len() as u64, 0, 0, 0));
        let store = Redb::open(&crashed.path, CACHE).unwrap();
        assert!(served(&store).0.into_values().eq(crashed.rows.iter().cloned()));
    }
}

/// A crashed file with one damaged row.
fn with_damage() -> Crashed {
    let crashed = Crashed::of(20);
    let (at, _) = crashed.leaves()[2];
    crashed.damaged(|bytes| bytes[at + 2000] ^= 1);
    crashed
}

#[track_caller]
fn refused(crashed: &Crashed, words: &[&str]) {
    let before = (fs::read(&crashed.path).unwrap(), crashed.beside());
    let refused = Redb::open_or_salvage(&crashed.path, CACHE).map(drop).unwrap_err().to_string();
    words.iter().for_each(|word| assert!(refused.contains(word), "`{word}` in {refused}"));
    assert!(!refused.contains("restore it from a backup; "), "no advice in the middle: {refused}");
    assert!((fs::read(&crashed.path).unwrap(), crashed.beside()) == before, "nothing was changed");
}

#[test]
fn what_is_in_the_way_of_a_salvage_is_named_with_the_next_step() {
    let crashed = with_damage();
    let beside = |name: &str| crashed.path.with_file_name(name);
    fs::create_dir(beside("b.redb.salvage.new")).unwrap();
    refused(&crashed, &["b.redb.salvage.new: Is a directory", "move this directory away"]);
    fs::remove_dir(beside("b.redb.salvage.new")).unwrap();

    let kept = |n: usize| beside(&if n == 1 { "b.redb.damaged".into() } else { format!("b.redb.damaged-{n}") });
    (1..=100).for_each(|n| fs::write(kept(n), b"").unwrap());
    let full = "too many damaged files beside it";
    refused(&crashed, &[full, "b.redb.damaged-100; delete those that have served"]);
    // Before the rows are copied: there is no room for them, and this is not what is told.
    fs::remove_file(kept(100)).unwrap();
    let store = Redb::open_or_salvage(&crashed.path, CACHE).unwrap();
    assert_eq!(store.salvaged().unwrap().kept, kept(100), "{full}");
}

#[test]
fn a_process_that_was_killed_between_the_two_names_leaves_one_damaged_file() {
    let crashed = with_damage();
    fs::hard_link(&crashed.path, crashed.kept()).unwrap();
    let store = Redb::open_or_salvage(&crashed.path, CACHE).unwrap();
    assert_eq!(store.salvaged().unwrap().kept, crashed.kept());
    assert_eq!(crashed.beside(), [crashed.path.clone(), crashed.kept()]);
}

#[test]
fn the_message_of_a_salvage_counts_in_words() {
    let told = |rows, lost, gaps| Salvaged { rows, damaged: 0, lost, gaps, corrected: 0, kept: "x".into() }.to_string();
    assert!(
        told(1, 1, 1)
            .starts_with("1 row was written to a new file, 0 of them damaged; 1 row on a damaged page is lost")
    );
    assert!(
        told(7, 2, 1).contains("7 rows were written") && told(7, 2, 1).contains("2 rows on damaged pages are lost")
    );
    assert!(told(7, 0, 0).contains("no other row was lost"));
    let corrected = Salvaged { rows: 7, corrected: 1, kept: "x".into(), ..Salvaged::default() }.to_string();
    assert!(corrected.contains("no other row was lost; 1 page was corrected by a checksum; the damaged file"));
}

#[test]
fn what_is_no_regular_file_is_refused_and_nobody_waits() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe.redb");
    if !Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()) {
        println!("skipped: mkfifo is not installed");
        return;
    }
    let refused = |opened: Result<(), StoreError>| {
        let why = opened.unwrap_err().to_string();
        assert!(why.contains("pipe.redb is a named pipe, and a store is a regular file; check the path"), "{why}");
    };
    refused(Redb::open(&pipe, CACHE).map(drop));
    refused(Redb::open_any_version(&pipe, CACHE).map(drop));
    refused(Redb::open_or_salvage(&pipe, CACHE).map(drop));
    refused(Redb::open_unchanged(&pipe, CACHE).map(drop));
    refused(ClosedFile::open(&pipe, CACHE).map(drop));
    refused(compact(&pipe, CACHE).map(drop));
    let link = directory.path().join("link-to-pipe.redb");
    std::os::unix::fs::symlink(&pipe, &link).unwrap();
    refused(Redb::open(&link, CACHE).map(drop));
}
