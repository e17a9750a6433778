//! What an upgrade will have to read, counted before it begins. Nothing is changed.

use super::state::{UpgradeError, others_first};
use crate::{
    resources,
    rows::{Row, Tag},
    store::{Key, Span, Store, key_of},
};
use std::path::Path;

/// Rows that are read at a time.
const PAGE: usize = 2000;
/// Most damaged rows that are named; all are counted.
const MOST_NAMED: usize = 100;

/// What lies in a store.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Survey {
    /// Rows.
    pub rows: u64,
    /// Records among them.
    pub records: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// Most bytes of keys and values that the upgrade can add.
    pub new_bytes: u64,
    /// Rows that cannot be read. They stay as they are.
    pub damaged: u64,
    /// The first of them, in words.
    pub damaged_rows: Vec<String>,
}

impl Survey {
    /// Bytes that a file of this size may grow by while it is upgraded.
    ///
    /// Pages are copied before they change, and the old ones are used again only after the commit: one commit can change
    /// every page of a small file. New entries of indexes come on top; their pages are half full in the worst case.
    #[must_use]
    pub fn room_needed(&self, file: u64) -> u64 {
        const LEAST: u64 = 32 << 20;
        file.saturating_add(self.new_bytes.saturating_mul(2)).max(LEAST)
    }

    /// Says why the upgrade must not begin when `free` bytes of the disk are too few for a file of `file` bytes.
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

/// Most bytes that a record adds: its index entries, of which all may be new, and the fields that it gets.
fn new_bytes(record: &Key) -> u64 {
    /// Key of an entry with three values, and what the engine keeps for a row.
    const ENTRY: u64 = 128;
    const FIELDS: u64 = 128;
    let indexes = match Row::decode(record) {
        Some(Row::Record { resource, .. }) => resources::spec_of_tag(resource).map_or(0, |spec| spec.indexes.len()),
        _ => 0,
    };
    FIELDS + ENTRY * indexes as u64
}

/// Reads every row of a store once. `progress` is told the rows so far.
///
/// # Errors
/// The store cannot serve.
pub async fn survey(store: &dyn Store, progress: &mut (dyn FnMut(u64) + Send)) -> Result<Survey, UpgradeError> {
    let (mut found, mut span) = (Survey::default(), Span::everything());
    loop {
        let page = store.scan(&span, PAGE).await?;
        let Some(last) = page.last() else { return Ok(found) };
        span.from = key_of(last).next();
        others_first().await;
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
}
