//! A storage of redb that remembers why it failed. After its first error redb only says that there was one.

use redb::{BackendError, StorageBackend};
use std::{
    io,
    ops::Bound,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// Why a storage failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Failure {
    /// A write found no room on the disk or in a quota. What was durable before is not affected.
    NoRoom,
    /// Another error, or a failed sync. After a failed sync the system may have dropped what was not synced, so what it
    /// reads back need not be what is on the disk.
    Broken,
}

/// The first failure of one opening of a storage.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch(Arc<Seen>);

#[derive(Debug, Default)]
struct Seen {
    failure: OnceLock<Failure>,
    is_open: AtomicBool,
}

impl Watch {
    pub(super) fn failure(&self) -> Option<Failure> {
        self.0.failure.get().copied()
    }

    fn note(&self, failure: Failure) {
        let _ = self.0.failure.set(failure);
    }

    /// The storage is open. Before, a part of it that is not there means that the file was cut.
    pub(super) fn opened(&self) {
        self.0.is_open.store(true, Ordering::Release);
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
    /// The length when it was opened, or that redb has set since.
    len: AtomicU64,
}

impl<B> Watched<B> {
    pub(super) fn new(storage: B, watch: &Watch) -> Self {
        Self { storage, watch: watch.clone(), len: AtomicU64::new(u64::MAX) }
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
        let len = self.watch(self.storage.len())?;
        let _ = self.len.compare_exchange(u64::MAX, len, Ordering::AcqRel, Ordering::Acquire);
        Ok(len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let read = self.storage.read(offset, out);
        // A damaged page names one that never was in the file. redb would refuse all later reads; it takes zeros for a damaged page.
        let end = offset.saturating_add(out.len() as u64);
        if read.is_err() && self.watch.0.is_open.load(Ordering::Acquire) && end > self.len.load(Ordering::Acquire) {
            out.fill(0);
            return Ok(());
        }
        self.watch(read)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.watch_growth(self.storage.set_len(len))?;
        self.len.store(len, Ordering::Release);
        Ok(())
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

    #[test]
    fn a_part_that_never_was_in_an_open_storage_is_read_as_zeros_and_a_part_that_was_is_not() {
        let watch = Watch::default();
        let disk = Watched::new(InMemoryBackend::new(), &watch);
        disk.set_len(4096).unwrap();
        assert!(Watched::new(InMemoryBackend::new(), &Watch::default()).read(0, &mut [0; 8]).is_err(), "not open yet");
        watch.opened();
        let mut bytes = [7; 8];
        disk.read(4092, &mut bytes).unwrap();
        assert_eq!((bytes, watch.failure()), ([0; 8], None));
        disk.storage.set_len(0).unwrap();
        assert!(disk.read(0, &mut bytes).is_err());
        assert_eq!(watch.failure(), Some(Failure::Broken), "it was cut");
    }

    #[test]
    fn the_first_operation_that_fails_is_remembered() {
        for what in ["read", "write", "sync"] {
            let watch = Watch::default();
            let disk = Watched::new(Bad(InMemoryBackend::new(), what), &watch);
            disk.set_len(4096).unwrap();
            let done = disk.read(0, &mut [0; 8]).and_then(|()| disk.write(0, &[1])).and_then(|()| disk.sync_data());
            assert!(done.is_err());
            assert_eq!(watch.failure(), Some(Failure::Broken), "{what}");
        }
    }
}
