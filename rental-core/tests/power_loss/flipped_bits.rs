//! Flipped bits in a file that is then served: a row is served as it was written, or not at all.

use crate::{
    broken::Broken,
    disk::{Dice, Disk},
    history::History,
    wait,
};
use rental_core::store::{Record, Store, StoreError, redb::Redb};
use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Flips of each kind, counted by what came of them.
#[derive(Debug, Default)]
struct Outcomes {
    refused: usize,
    served_less: usize,
    changed_nothing: usize,
}

/// `RENTAL_BIT_ROT=1000` makes that many flips.
#[test]
fn a_row_with_flipped_bits_is_never_served() {
    let flips = std::env::var("RENTAL_BIT_ROT").map_or(100, |flips| flips.parse().expect("a number"));
    let (mut history, image) = History::new(3, Broken::Nothing);
    let disk = Disk::holding(image);
    history.live(&disk, 12).expect("a healthy disk");
    let whole = disk.with(|state| state.live.clone());
    let used: Vec<usize> =
        (0..whole.len() / 512).filter(|block| whole[block * 512..][..512].iter().any(|byte| *byte != 0)).collect();
    // A flip in the header can lead to an earlier state, whose rows were written too.
    let written: BTreeSet<(&[u8], u64, &[u8])> =
        history.states.iter().flat_map(|rows| rows.iter()).map(parts).collect();
    let rows = history.states.last().expect("a state");
    let (mut dice, mut outcomes) = (Dice(4711), Outcomes::default());
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("flipped.redb");
    for flip in 0..flips {
        let mut bytes = whole.clone();
        for _ in 0..1 + dice.roll(3) {
            bytes[used[dice.roll(used.len())] * 512 + dice.roll(512)] ^= 1 << dice.roll(8);
        }
        std::fs::write(&path, bytes).expect("it is written");
        let Ok(store) = Redb::open(&path, 1 << 20) else {
            outcomes.refused += 1;
            continue;
        };
        let mut served = 0;
        for row in rows.iter() {
            // The server answers 500 when the engine panics over a damaged page.
            let found = catch_unwind(AssertUnwindSafe(|| wait(store.get(std::slice::from_ref(&row.key)))));
            match found {
                Ok(Ok(found)) => {
                    let Some(found) = found.into_iter().flatten().next() else { continue };
                    // A row that lost its whole value has no checksum left. Whoever reads it finds no value, which is an error.
                    let is_empty = found.revision == 0 && found.value.is_empty() && !row.value.is_empty();
                    let known = is_empty || written.contains(&parts(&found));
                    assert!(known, "flip {flip}: {found:?} was served, and never written");
                    served += usize::from(found == *row);
                }
                Ok(Err(StoreError::Damaged(damaged))) => assert_eq!(damaged.key, row.key),
                Ok(Err(_)) | Err(_) => {}
            }
        }
        match served == rows.len() {
            true => outcomes.changed_nothing += 1,
            false => outcomes.served_less += 1,
        }
        let _ = catch_unwind(AssertUnwindSafe(|| store.close()));
    }
    println!("{flips} files: {outcomes:?}");
    assert!((outcomes.refused + outcomes.served_less) * 4 > flips, "{outcomes:?}");
}

fn parts(row: &Record) -> (&[u8], u64, &[u8]) {
    (row.key.as_bytes(), row.revision, &row.value)
}
