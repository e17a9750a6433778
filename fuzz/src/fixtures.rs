//! Rows of stores that older programs wrote, out of the backups in `rental-core/tests/fixtures/stores`.

use rental_core::{
    rows::Row,
    store::{Record, archive::Reader},
};
use std::{collections::BTreeMap, sync::LazyLock};

/// Most records of one resource, and rows of one other kind: an input must be judged in milliseconds.
const MOST: u32 = 6;

/// A store: its schema version and some of its rows, by ascending key.
pub(crate) struct Fixture {
    pub(crate) version: u64,
    pub(crate) rows: Vec<Record>,
}

pub(crate) static FIXTURES: LazyLock<[Fixture; 1]> =
    LazyLock::new(|| [thin(include_bytes!("../../rental-core/tests/fixtures/stores/v12/store.backup"))]);

fn thin(backup: &[u8]) -> Fixture {
    let mut reader = Reader::open(backup).expect("a backup");
    let (mut rows, mut counts) = (Vec::new(), BTreeMap::<(u8, u8), u32>::new());
    while let Some(frame) = reader.next_frame().expect("a sound backup") {
        rows.extend(frame);
    }
    rows.retain(|row| {
        let kind = match Row::decode(&row.key) {
            Some(Row::Record { resource, .. } | Row::IndexEntry { resource, .. }) => resource,
            _ => 0,
        };
        let count = counts.entry((row.key.as_bytes()[0], kind)).or_default();
        *count += 1;
        *count <= MOST
    });
    Fixture { version: reader.header().schema_version, rows }
}
