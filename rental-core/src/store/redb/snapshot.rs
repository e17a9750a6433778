//! One moment of the whole store, for a reader that takes its time.

use super::{
    row,
    tables::{Rows, unavailable},
};
use crate::store::{Key, Record, Span, StoreError};
use redb::ReadableTableMetadata;
use std::sync::Arc;

/// All rows as they were when it was taken, whatever is written meanwhile.
///
/// While it lives, redb frees none of the pages that were in use then: the file grows by what is written. Let it go soon.
pub struct Snapshot(pub(super) Arc<Rows>);

impl Snapshot {
    /// Every row, by rising key. Each is read, and its checksum looked at, when it is asked for.
    ///
    /// # Errors
    /// The engine cannot serve; later also from the iterator, which then may be asked for more.
    pub fn rows(&self) -> Result<impl Iterator<Item = Result<Record, StoreError>> + use<>, StoreError> {
        let range = self.0.range::<&[u8]>(..).map_err(unavailable)?;
        Ok(range.map(|row| {
            let (key, value) = row.map_err(unavailable)?;
            Ok(row::decode(Key::from_bytes(key.value()), value.value())?)
        }))
    }

    /// The rows of a span, by rising key; entries are not followed.
    ///
    /// # Errors
    /// The engine cannot serve; later also from the iterator, which then may be asked for more.
    pub fn span(&self, span: &Span) -> Result<impl Iterator<Item = Result<Record, StoreError>> + use<>, StoreError> {
        // A span that is turned around would be a panic of the engine.
        let to = span.to.as_bytes().max(span.from.as_bytes());
        let range = self.0.range::<&[u8]>(span.from.as_bytes()..to).map_err(unavailable)?;
        Ok(range.map(|row| {
            let (key, value) = row.map_err(unavailable)?;
            Ok(row::decode(Key::from_bytes(key.value()), value.value())?)
        }))
    }

    /// How many rows there are.
    ///
    /// # Errors
    /// The engine cannot serve.
    pub fn count(&self) -> Result<u64, StoreError> {
        self.0.len().map_err(unavailable)
    }
}
