//! The schema version of a file.

use super::{
    batch::apply,
    tables::{META, unavailable},
};
use crate::store::{Batch, Commit, StoreError, marks};
use redb::{Database, ReadableDatabase, ReadableTable, Table, WriteTransaction};

/// Key of the version in the table [`META`].
pub(super) const NAME: &str = "schema_version";

/// Reads the version of an open file.
pub(super) fn read(db: &Database) -> Result<u64, StoreError> {
    let meta = db.begin_read().map_err(unavailable)?.open_table(META).map_err(unavailable)?;
    let version = meta.get(NAME).map_err(unavailable)?.map(|version| version.value());
    version.ok_or_else(|| StoreError::DamagedStore("the file has no schema version".into()))
}

/// Applies `batch` and changes the version from `from` to `to`; stale when the version of the file is not `from`.
pub(super) fn change(
    transaction: &WriteTransaction,
    rows: &mut Table<'_, &'static [u8], &'static [u8]>,
    batch: Batch,
    from: u64,
    to: u64,
) -> Result<Commit, StoreError> {
    let mut meta = transaction.open_table(META).map_err(unavailable)?;
    let present = meta.get(NAME).map_err(unavailable)?.map(|version| version.value());
    if present != Some(from) {
        return Ok(Commit::Stale(marks::upgrade()));
    }
    let applied = apply(rows, batch, None)?;
    if applied == Commit::Applied {
        drop(meta.insert(NAME, to).map_err(unavailable)?);
    }
    Ok(applied)
}
