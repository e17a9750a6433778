//! Applies one batch inside a write transaction.

use super::{
    row,
    tables::{failed, of_one, unavailable},
};
use crate::store::{Batch, Commit, StoreError, Write, tally::Changes};
use redb::{ReadableTable, Table};

/// Makes all checks of the batch before its first write, so a stale or damaged row leaves the table unchanged.
pub(super) fn apply(
    rows: &mut Table<'_, &'static [u8], &'static [u8]>,
    batch: Batch,
    mut changes: Option<&mut Changes>,
) -> Result<Commit, StoreError> {
    for check in batch.checks {
        let revision = of_one(check.key(), || {
            let stored = rows.get(check.key().as_bytes()).map_err(failed)?;
            let split = stored.map(|stored| row::split(check.key(), stored.value()).map(|(revision, _)| revision));
            Ok(split.transpose()?)
        })?;
        if !check.holds(revision) {
            return Ok(Commit::Stale(check.key().clone()));
        }
    }
    for write in batch.writes {
        match write {
            Write::Put(key, revision, value, _) => {
                let stored = row::encode(&key, revision, &value);
                let before = rows.insert(key.as_bytes(), stored.as_slice()).map_err(unavailable)?;
                if let Some(changes) = &mut changes {
                    let before = before.map(|before| row::value_size(before.value()));
                    changes.row(key.as_bytes(), before, Some(value.len()));
                }
            }
            Write::Delete(key) => {
                let before = rows.remove(key.as_bytes()).map_err(unavailable)?;
                if let Some(changes) = &mut changes {
                    changes.row(key.as_bytes(), before.map(|before| row::value_size(before.value())), None);
                }
            }
        }
    }
    Ok(Commit::Applied)
}
