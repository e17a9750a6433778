//! A snapshot of the whole store, for long reads such as a backup.

use super::{
    row,
    tables::{Rows, failed, unavailable, without_panic},
};
use crate::store::{Answer, Key, PAGES_DAMAGED, Record, Span, StoreError};
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
    /// The engine is not available. An item is an error when its row is damaged; the iterator continues after it. It ends behind
    /// an error of the store.
    pub fn span(&self, span: &Span) -> Result<impl Iterator<Item = Result<Record, StoreError>> + use<>, StoreError> {
        // redb panics when a range ends before it begins.
        let to = span.to.as_bytes().max(span.from.as_bytes());
        let mut range = self.0.range::<&[u8]>(span.from.as_bytes()..to).map_err(failed)?;
        let (mut least, mut has_failed) = (span.from.clone(), false);
        let mut next = move || {
            let (key, value) = match range.next()? {
                Ok(found) => found,
                Err(error) => return Some(Err(failed(error))),
            };
            // Damaged pages can lead redb to rows of another place, for ever.
            if key.value() < least.as_bytes() {
                return Some(Err(StoreError::DamagedStore(PAGES_DAMAGED.into())));
            }
            let key = Key::from_bytes(key.value());
            least = key.next();
            Some(row::decode(key, value.value()).map_err(StoreError::from))
        };
        Ok(std::iter::from_fn(move || {
            let row = if has_failed { None } else { next() };
            has_failed |= matches!(row, Some(Err(ref error)) if !matches!(error, StoreError::Damaged(_)));
            row
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
