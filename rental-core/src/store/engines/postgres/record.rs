//! Conversion of rows of the table `rental.rows` into records.

use super::address;
use crate::store::{Key, Record, StoreError};
use bytes::Bytes;
use tokio_postgres::{Error, Row};

/// The record in the columns `at` (key), `at + 1` (revision) and `at + 2` (value).
pub(super) fn record(row: &Row, at: usize) -> Result<Record, StoreError> {
    let read = || {
        let value: &[u8] = row.try_get(at + 2)?;
        Ok::<_, Error>(Record {
            key: Key::from_bytes(row.try_get(at)?),
            revision: row.try_get::<_, i64>(at + 1)?.cast_unsigned(),
            value: Bytes::copy_from_slice(value),
        })
    };
    read().map_err(|error| foreign(&error))
}

/// The error of a row whose columns have other types than this program writes.
pub(super) fn foreign(error: &Error) -> StoreError {
    StoreError::DamagedStore(format!("the table is not one of this program: {}", address::describe(error)))
}
