//! A snapshot of the whole store, for long reads such as a backup.

use super::{
    row,
    tables::{Rows, unavailable},
};
use crate::store::{Key, Record, Span, StoreError};
use redb::ReadableTableMetadata;
use std::sync::Arc;

/// The rows as they were when the snapshot was taken. Later writes do not change it.
///
/// While a snapshot exists, redb cannot reuse its pages, so every write makes the file grow. Drop it soon.
pub struct Snapshot(pub(super) Arc<Rows>);

impl Snapshot {
    /// All rows by ascending key. The iterator reads each row, and checks its checksum, when `next` is called.
    ///
    /// # Errors
    /// The engine is not available. An item is an error when its row is damaged; the iterator continues after it.
    pub fn rows(&self) -> Result<impl Iterator<Item = Result<Record, StoreError>> + use<>, StoreError> {
        let range = self.0.range::<&[u8]>(..).map_err(unavailable)?;
        Ok(range.map(|row| {
            let (key, value) = row.map_err(unavailable)?;
            Ok(row::decode(Key::from_bytes(key.value()), value.value())?)
        }))
    }

    /// The rows of a span by ascending key. Ignores `span.order` and `span.follow`.
    ///
    /// # Errors
    /// The engine is not available. An item is an error when its row is damaged; the iterator continues after it.
    pub fn span(&self, span: &Span) -> Result<impl Iterator<Item = Result<Record, StoreError>> + use<>, StoreError> {
        // redb panics when a range ends before it begins.
        let to = span.to.as_bytes().max(span.from.as_bytes());
        let range = self.0.range::<&[u8]>(span.from.as_bytes()..to).map_err(unavailable)?;
        Ok(range.map(|row| {
            let (key, value) = row.map_err(unavailable)?;
            Ok(row::decode(Key::from_bytes(key.value()), value.value())?)
        }))
    }

    /// The number of rows in the snapshot.
    ///
    /// # Errors
    /// The engine is not available.
    pub fn count(&self) -> Result<u64, StoreError> {
        self.0.len().map_err(unavailable)
    }
}
