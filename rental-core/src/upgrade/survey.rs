//! Counts the rows that an upgrade will read, before it begins. Changes nothing.

use super::{
    state::{UpgradeError, yield_to_other_tasks},
    whole_pages::WholePages,
};
use crate::{
    resources,
    rows::{Row, Tag},
    store::{Key, Pages, Span, Versioned, key_of},
};
use std::path::Path;

/// Rows in one scan.
const PAGE: usize = 2000;
/// Most damaged rows that are listed. All are counted.
const MOST_NAMED: usize = 100;

/// The size and the damage of a store.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Survey {
    /// Number of all rows.
    pub rows: u64,
    /// Number of rows that are records.
    pub records: u64,
    /// Size of all keys and values, in bytes.
    pub bytes: u64,
    /// Most bytes of keys and values that the upgrade can add.
    pub new_bytes: u64,
    /// Number of damaged rows. They stay unchanged.
    pub damaged: u64,
    /// The first 100 damaged rows, each as a sentence for the operator.
    pub damaged_rows: Vec<String>,
}

impl Survey {
    /// Most bytes by which a file of `file` bytes can grow during the upgrade.
    ///
    /// The engine copies a page before it changes it, and reuses the old page only after the commit. One commit can change
    /// all pages of a small file. New index entries need further pages, which are half full in the worst case.
    #[must_use]
    pub fn room_needed(&self, file: u64) -> u64 {
        const LEAST: u64 = 32 << 20;
        file.saturating_add(self.new_bytes.saturating_mul(2)).max(LEAST)
    }

    /// Checks that `free` bytes of disk space are enough to upgrade the file at `path` with `file` bytes.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn enough_room(&self, path: &Path, file: u64, free: u64) -> Result<(), String> {
        let needed = self.room_needed(file);
        if free >= needed {
            return Ok(());
        }
        Err(format!(
            "the disk of {} is too small for the upgrade of the store: {} MB are needed, {} MB are free; nothing was changed; \
             free space on this disk, or move the file to a larger one",
            path.display(),
            needed >> 20,
            free >> 20
        ))
    }
}

/// Most bytes that the upgrade of a record can add: all of its index entries and its new fields.
fn new_bytes(record: &Key) -> u64 {
    /// Bytes of the key of an entry with three values, and of the engine's data about the row.
    const ENTRY: u64 = 128;
    const FIELDS: u64 = 128;
    let indexes = match Row::decode(record) {
        Some(Row::Record { resource, .. }) => resources::spec_of_tag(resource).map_or(0, |spec| spec.indexes.len()),
        _ => 0,
    };
    FIELDS + ENTRY * indexes as u64
}

/// Reads every row of a store once. Calls `progress` with the number of rows so far.
///
/// # Errors
/// The store is not available.
pub async fn survey(store: &dyn Versioned, progress: &mut (dyn FnMut(u64) + Send)) -> Result<Survey, UpgradeError> {
    let store = WholePages(store);
    let (mut found, mut pages) = (Survey::default(), Pages::of(&store, Span::everything(), PAGE));
    while let Some(page) = pages.next().await? {
        yield_to_other_tasks().await;
        for row in &page {
            found.rows += 1;
            if key_of(row).as_bytes().first() == Some(&(Tag::Record as u8)) {
                found.records += 1;
                found.new_bytes += new_bytes(key_of(row));
            }
            match row {
                Ok(record) => found.bytes += (record.key.as_bytes().len() + record.value.len()) as u64,
                Err(damaged) => {
                    found.damaged += 1;
                    if found.damaged_rows.len() < MOST_NAMED {
                        found.damaged_rows.push(damaged.to_string());
                    }
                }
            }
        }
        progress(found.rows);
    }
    Ok(found)
}
