//! A window of an upgrade: the changes that are sorted and committed together.

use crate::store::{Key, Prior, Revision, Versioned, Write};
use bytes::Bytes;

/// Most rows and bytes of a batch, including the marker.
const BATCH_ROWS: usize = 4000;
const BATCH_BYTES: usize = 8 << 20;
/// Most bytes of a window, per batch of [`Versioned::batches_together`]. At most two windows are in memory.
const WINDOW_BYTES: usize = 512 << 10;
/// Records whose rows are read together, per batch of [`Versioned::batches_together`].
const CHUNK: usize = 32;

/// The limits of batches and windows.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// Most rows in a batch.
    pub(super) batch_rows: usize,
    /// Rows and bytes after which a window is committed.
    pub(super) window_rows: usize,
    window_bytes: usize,
    /// Number of records whose rows are read together.
    pub(super) chunk: usize,
}

impl Sizes {
    /// Limits for batches of `rows` rows, windows of three batches, and chunks of one record.
    pub(super) fn small(self, rows: usize) -> Self {
        let batch_rows = rows.clamp(2, BATCH_ROWS);
        Self { batch_rows, window_rows: 3 * batch_rows, chunk: 1, ..self }
    }

    pub(super) fn of(store: &dyn Versioned) -> Self {
        let together = store.batches_together().max(1);
        Self {
            batch_rows: BATCH_ROWS,
            window_rows: BATCH_ROWS * together,
            window_bytes: WINDOW_BYTES * together,
            chunk: CHUNK * together,
        }
    }
}

/// The changes of some records, which are sorted by key and committed as several batches. Entries on the same page of an
/// index come from distant records, so a larger window changes fewer pages per row.
pub(super) struct Window {
    writes: Vec<Write>,
    bytes: usize,
    sizes: Sizes,
}

impl Window {
    pub(super) fn new(sizes: Sizes) -> Self {
        Self { writes: Vec::new(), bytes: 0, sizes }
    }

    pub(super) fn put(&mut self, key: Key, revision: Revision, value: Bytes, prior: Prior) {
        self.bytes += key.as_bytes().len() + value.len();
        self.writes.push(Write::Put(key, revision, value, prior));
    }

    pub(super) fn delete(&mut self, key: Key) {
        self.bytes += key.as_bytes().len();
        self.writes.push(Write::Delete(key));
    }

    /// The rows that the window writes, which the store does not have yet.
    pub(super) fn puts(&self) -> impl Iterator<Item = (&Key, &Bytes)> {
        self.writes.iter().filter_map(|write| match write {
            Write::Put(key, _, value, _) => Some((key, value)),
            Write::Delete(_) => None,
        })
    }

    pub(super) fn is_full(&self) -> bool {
        self.writes.len() >= self.sizes.window_rows || self.bytes >= self.sizes.window_bytes
    }

    /// The changes in the order of their keys, in parts that each fit into a batch together with the marker.
    pub(super) fn into_parts(mut self) -> Vec<Vec<Write>> {
        self.writes.sort_unstable_by(|one, other| place(one).cmp(place(other)));
        let (mut parts, mut bytes) = (vec![Vec::new()], 0);
        for write in self.writes {
            let size = size(&write);
            let full = parts.last().is_some_and(|part: &Vec<Write>| {
                !part.is_empty() && (part.len() + 1 >= self.sizes.batch_rows || bytes + size > BATCH_BYTES)
            });
            if full {
                parts.push(Vec::new());
                bytes = 0;
            }
            bytes += size;
            if let Some(part) = parts.last_mut() {
                part.push(write);
            }
        }
        parts
    }
}

fn place(write: &Write) -> &Key {
    match write {
        Write::Put(key, ..) | Write::Delete(key) => key,
    }
}

fn size(write: &Write) -> usize {
    match write {
        Write::Put(key, _, value, _) => key.as_bytes().len() + value.len(),
        Write::Delete(key) => key.as_bytes().len(),
    }
}
