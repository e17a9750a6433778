//! The two tables of a file, and reads of the rows.

use super::row;
use crate::store::{DamagedRow, Key, PAGES_DAMAGED, READS_PAGES, Record, StoreError};
use redb::{Database, ReadOnlyTable, ReadableDatabase, StorageError, TableDefinition};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// All rows of the store by key, encoded by `row.rs`.
pub(super) const ROWS: TableDefinition<'static, &'static [u8], &'static [u8]> = TableDefinition::new("rows");
/// Numbers that describe the file, by name: the schema version.
pub(super) const META: TableDefinition<'static, &'static str, u64> = TableDefinition::new("meta");

/// The rows after one commit, read-only.
pub(super) type Rows = ReadOnlyTable<&'static [u8], &'static [u8]>;

/// Opens the rows after the last commit.
pub(super) fn snapshot(db: &Database) -> Result<Rows, StoreError> {
    db.begin_read().map_err(unavailable)?.open_table(ROWS).map_err(unavailable)
}

/// Reads the record at `key`; an error when its checksum is wrong.
pub(super) fn read(rows: &Rows, key: &Key) -> Result<Option<Record>, StoreError> {
    let value = rows.get(key.as_bytes()).map_err(failed)?;
    Ok(value.map(|value| row::decode(key.clone(), value.value())).transpose()?)
}

/// Reads the record at `key`. Damaged pages on the way to it are the damage of this row alone.
pub(super) fn read_one(rows: &Rows, key: &Key) -> Result<Option<Record>, StoreError> {
    of_one(key, || read(rows, key))
}

/// Reads one row. Damaged pages on the way to it are the damage of this row alone.
pub(super) fn of_one<T>(key: &Key, read: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    match without_panic(read) {
        Err(StoreError::DamagedStore(_)) => Err(DamagedRow::beside_damaged_pages(key.clone()).into()),
        outcome => outcome,
    }
}

/// Runs calls of redb, which panics on some damaged pages. Such a panic becomes an error.
pub(super) fn without_panic<T>(act: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let outer = READS_PAGES.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(act));
    READS_PAGES.set(outer);
    outcome.unwrap_or_else(|_| Err(StoreError::DamagedStore(PAGES_DAMAGED.into())))
}

/// Converts an error of a read of redb.
pub(super) fn failed(error: StorageError) -> StoreError {
    match error {
        StorageError::Corrupted(_) => StoreError::DamagedStore(PAGES_DAMAGED.into()),
        other => unavailable(other),
    }
}

/// Converts an error of redb.
pub(super) fn unavailable(error: impl std::fmt::Display) -> StoreError {
    StoreError::Unavailable(error.to_string())
}
