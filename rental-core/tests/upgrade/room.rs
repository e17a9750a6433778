//! How much free space an upgrade asks for.

use crate::stores::{CACHE, Rows, STORES, everything, file, memory, rows_of, upgrade, wait};
use rental_core::{
    store::redb::Redb,
    upgrade::{Survey, survey},
};
use std::{fs, path::Path};

fn bytes(rows: &Rows) -> u64 {
    rows.iter().map(|(key, (_, value))| (key.as_bytes().len() + value.len()) as u64).sum()
}

fn surveyed(directory: &str, rows: &Rows) -> Survey {
    wait(survey(&memory(directory, rows), &mut |_| {})).unwrap()
}

/// Also when every row that can be derived is missing.
#[test]
fn an_upgrade_adds_no_more_than_the_survey_says() {
    for directory in STORES {
        let before = rows_of(directory);
        let store = memory(directory, &before);
        wait(upgrade(&store));
        let after = wait(everything(&store));
        let mut records = before.clone();
        records.retain(|key, _| !matches!(key.as_bytes()[0], b'i' | b'h'));
        for rows in [before, records] {
            let (found, added) = (surveyed(directory, &rows), bytes(&after).saturating_sub(bytes(&rows)));
            assert_eq!(found.bytes, bytes(&rows));
            assert!(found.new_bytes >= added, "{directory}: {} for {added}", found.new_bytes);
        }
    }
}

#[test]
fn a_file_grows_by_less_than_the_room_that_is_asked_for() {
    for directory in STORES {
        let (_folder, path) = file(directory);
        let before = fs::metadata(&path).unwrap().len();
        let store = Redb::open_any_version(&path, CACHE).unwrap();
        let needed = wait(survey(&store, &mut |_| {})).unwrap().room_needed(before);
        wait(upgrade(&store)).unwrap();
        store.close().unwrap();
        let grown = fs::metadata(&path).unwrap().len().saturating_sub(before);
        assert!(grown < needed, "{directory}: {grown} of {needed}");
    }
}

#[test]
fn one_byte_too_few_is_refused_with_the_next_step() {
    let counted = Survey { new_bytes: 100 << 20, ..Survey::default() };
    let (path, file) = (Path::new("/data/rental.redb"), 1 << 30);
    let needed = counted.room_needed(file);
    assert_eq!(needed, (1 << 30) + (200 << 20));
    assert_eq!(counted.enough_room(path, file, needed), Ok(()));
    let refused = counted.enough_room(path, file, needed - 1).unwrap_err();
    for words in ["/data/rental.redb", "1224 MB are needed, 1223 MB are free", "nothing was changed", "free space"] {
        assert!(refused.contains(words), "{refused}");
    }
    // A small file has to grow too.
    assert!(Survey::default().room_needed(0) >= 32 << 20);
}
