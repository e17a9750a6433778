//! A snapshot of the whole store, for long reads such as a backup.

use super::{
    row,
    tables::{Rows, unavailable, without_panic},
};
use crate::store::{Answer, Key, Record, Span, StoreError};
use redb::ReadableTableMetadata;
use std::{future::ready, sync::Arc};

/// Most rows and bytes of values in a part of a long read.
const PART_ROWS: usize = 200;
const PART_BYTES: usize = 1 << 20;

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
        self.span(&Span::everything())
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

    fn part(&self, rest: &mut Span) -> Result<Vec<Record>, StoreError> {
        let (mut part, mut bytes) = (Vec::new(), 0);
        for row in self.span(rest)? {
            let row = row?;
            bytes += row.value.len();
            rest.from = row.key.next();
            part.push(row);
            if part.len() == PART_ROWS || bytes >= PART_BYTES {
                break;
            }
        }
        Ok(part)
    }

    /// The number of rows in the snapshot.
    ///
    /// # Errors
    /// The engine is not available.
    pub fn count(&self) -> Result<u64, StoreError> {
        self.0.len().map_err(unavailable)
    }
}

impl crate::store::Snapshot for Snapshot {
    fn next<'a>(&'a mut self, rest: &'a mut Span) -> Answer<'a, Vec<Record>> {
        Box::pin(ready(without_panic(|| self.part(rest))))
    }
}
