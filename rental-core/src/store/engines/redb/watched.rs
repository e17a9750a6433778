//! A storage of redb that remembers why it failed. After its first error redb only says that there was one.

use redb::{BackendError, StorageBackend};
use std::{
    io,
    ops::Bound,
    sync::{Arc, OnceLock},
};

/// Why a storage failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Failure {
    /// A write found no room on the disk or in a quota. What was durable before is not affected.
    NoRoom,
    /// A read failed.
    Unread,
    /// Another error, or a failed sync. After a failed sync the system may have dropped what was not synced, so what it
    /// reads back need not be what is on the disk.
    Broken,
}

/// The first failure of one opening of a storage.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch(Arc<OnceLock<Failure>>);

impl Watch {
    pub(super) fn failure(&self) -> Option<Failure> {
        self.0.get().copied()
    }

    fn note(&self, failure: Failure) {
        let _ = self.0.set(failure);
    }
}

/// Whether the error says that there is no room.
fn is_no_room(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

#[derive(Debug)]
pub(super) struct Watched<B> {
    storage: B,
    watch: Watch,
}

impl<B> Watched<B> {
    pub(super) fn new(storage: B, watch: &Watch) -> Self {
        Self { storage, watch: watch.clone() }
    }

    fn watch<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        outcome.inspect_err(|_| self.watch.note(Failure::Broken))
    }

    fn watch_growth<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        let failure = |error: &io::Error| if is_no_room(error) { Failure::NoRoom } else { Failure::Broken };
        outcome.inspect_err(|error| self.watch.note(failure(error)))
    }
}

impl<B: StorageBackend> StorageBackend for Watched<B> {
    fn len(&self) -> io::Result<u64> {
        self.watch(self.storage.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.storage.read(offset, out).inspect_err(|_| self.watch.note(Failure::Unread))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.watch_growth(self.storage.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.watch(self.storage.sync_data())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.watch_growth(self.storage.write(offset, data))
    }

    fn close(&self) -> io::Result<()> {
        self.storage.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.storage.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.storage.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.storage.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.storage.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.storage.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.storage.query_lock_range(start, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redb::backends::InMemoryBackend;

    /// A disk on which one kind of operation fails.
    #[derive(Debug)]
    struct Bad(InMemoryBackend, &'static str);

    impl Bad {
        fn fail(&self, what: &str) -> io::Result<()> {
            if self.1 == what { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
        }
    }

    impl StorageBackend for Bad {
        fn len(&self) -> io::Result<u64> {
            self.0.len()
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            self.fail("read").and_then(|()| self.0.read(offset, out))
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            self.0.set_len(len)
        }

        fn sync_data(&self) -> io::Result<()> {
            self.fail("sync").and_then(|()| self.0.sync_data())
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            self.fail("write").and_then(|()| self.0.write(offset, data))
        }
    }

    /// A part that cannot be read may be salvaged; a disk that cannot be written is no damage of the file.
    #[test]
    fn a_read_that_fails_is_told_from_a_write_that_fails() {
        for (what, failure) in [("read", Failure::Unread), ("write", Failure::Broken), ("sync", Failure::Broken)] {
            let watch = Watch::default();
            let disk = Watched::new(Bad(InMemoryBackend::new(), what), &watch);
            disk.set_len(4096).unwrap();
            let done = disk.read(0, &mut [0; 8]).and_then(|()| disk.write(0, &[1])).and_then(|()| disk.sync_data());
            assert!(done.is_err());
            assert_eq!(watch.failure(), Some(failure), "{what}");
        }
    }
}
