//! A storage for redb that never changes the file or other storage under it.

use redb::{BackendError, StorageBackend};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    io,
    ops::Bound,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// A storage for redb that reads from the file and keeps all writes in memory.
#[derive(Debug)]
pub(super) struct ReadOnlyBackend<B> {
    file: B,
    file_len: u64,
    changes: Mutex<Changes>,
}

#[derive(Debug)]
struct Changes {
    len: u64,
    blocks: BTreeMap<u64, Vec<u8>>,
}

/// Bytes in a block of the writes in memory.
const BLOCK: usize = 4096;

impl<B: StorageBackend> ReadOnlyBackend<B> {
    /// A storage of a file of `len` bytes.
    pub(super) fn new(file: B, len: u64) -> Self {
        let changes = Mutex::new(Changes { len, blocks: BTreeMap::new() });
        Self { file, file_len: len, changes }
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads from the file itself; fills with zeros after its end.
    fn original(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let there = usize::try_from(self.file_len.saturating_sub(offset)).unwrap_or(usize::MAX).min(out.len());
        let (file, rest) = out.split_at_mut(there);
        rest.fill(0);
        if file.is_empty() { Ok(()) } else { self.file.read(offset, file) }
    }
}

/// The blocks that contain `len` bytes at `offset`: block number, offset in the block, offset in the bytes, length.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = (at % BLOCK as u64) as usize;
        let count = (BLOCK - within).min(len - done);
        let piece = (at / BLOCK as u64, within, done, count);
        done += count;
        (count > 0).then_some(piece)
    })
}

impl<B: StorageBackend> StorageBackend for ReadOnlyBackend<B> {
    fn len(&self) -> io::Result<u64> {
        Ok(self.changes().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let changes = self.changes();
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > changes.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.original(offset, out)?;
        if !changes.blocks.is_empty() {
            for (block, within, at, count) in pieces(offset, out.len()) {
                if let Some(bytes) = changes.blocks.get(&block) {
                    out[at..at + count].copy_from_slice(&bytes[within..within + count]);
                }
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.changes().len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut changes = self.changes();
        for (block, within, at, count) in pieces(offset, data.len()) {
            if let Entry::Vacant(place) = changes.blocks.entry(block) {
                let mut bytes = vec![0; BLOCK];
                self.original(block * BLOCK as u64, &mut bytes)?;
                place.insert(bytes);
            }
            if let Some(bytes) = changes.blocks.get_mut(&block) {
                bytes[within..within + count].copy_from_slice(&data[at..at + count]);
            }
        }
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    // Every lock is shared: a read-only descriptor cannot take an exclusive one, and a shared one keeps writers out.

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}
