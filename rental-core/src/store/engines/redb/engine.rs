//! The engine: opens and closes the file, queues batches, and implements [`Store`].

use super::{
    closed_file,
    file::{self, Absent, Versions},
    row,
    snapshot::Snapshot,
    tables::{read, snapshot, unavailable},
    version,
    writer::{self, Job, Outcome, Shared},
};
use crate::store::{
    Answer, Batch, Commit, DamagedRow, Key, Order, Record, Scanned, Span, Store, StoreError, WriterStats,
};
use arc_swap::ArcSwap;
use redb::{Builder, Database};
use std::{
    panic::AssertUnwindSafe,
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
        mpsc::{SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
};
use tokio::sync::{Notify, oneshot};

/// Most batches in the queue. When it is full, a commit fails with [`StoreError::Busy`].
const QUEUE: usize = 4096;

/// A store in one redb file. Only one process can have the file open.
pub struct Redb {
    pub(super) shared: Arc<Shared>,
    queue: Option<SyncSender<Job>>,
    writer: Option<JoinHandle<Result<(), StoreError>>>,
}

impl Redb {
    /// Opens or creates the file at `path`; `cache_bytes` bounds redb's page cache.
    ///
    /// # Errors
    /// A sentence for the operator: the file is open in another process, damaged, of another version, or cannot be read.
    pub fn open(path: &Path, cache_bytes: usize) -> Result<Self, StoreError> {
        closed_file::refuse_other_version(path, cache_bytes, Versions::Present)?;
        file::open(path, cache_bytes, Absent::Create, Versions::Present).and_then(Self::start)
    }

    /// Opens or creates the file at `path`, and accepts stores that need an upgrade; see [`crate::upgrade::state`].
    ///
    /// # Errors
    /// Those of [`Redb::open`], except that a version that can be upgraded is no error.
    pub fn open_any_version(path: &Path, cache_bytes: usize) -> Result<Self, StoreError> {
        closed_file::refuse_other_version(path, cache_bytes, Versions::Upgradable)?;
        file::open(path, cache_bytes, Absent::Create, Versions::Upgradable).and_then(Self::start)
    }

    /// Opens the file at `path` for reading alone, and accepts stores that need an upgrade. The file is not changed: what is
    /// committed stays in memory and is lost when the store is closed.
    ///
    /// # Errors
    /// Those of [`Redb::open_any_version`]; also when there is no file.
    pub fn open_unchanged(path: &Path, cache_bytes: usize) -> Result<Self, StoreError> {
        closed_file::open_unchanged(path, cache_bytes, Versions::Upgradable).and_then(Self::start)
    }

    /// Opens a store on any storage of redb, for fault injection.
    ///
    /// # Errors
    /// The storage contains no usable database.
    pub fn on_backend(backend: impl redb::StorageBackend) -> Result<Self, StoreError> {
        let db = Builder::new().set_cache_size(1 << 20).create_with_backend(backend);
        let db = db.map_err(|error| file::refusal(Path::new("the storage"), error))?;
        file::prepare(&db, Versions::Present).and_then(|()| Self::start(db))
    }

    fn start(db: Database) -> Result<Self, StoreError> {
        let (rows, version) = (snapshot(&db)?, version::read(&db)?);
        let shared = Arc::new(Shared {
            rows: ArcSwap::from_pointee(rows),
            failure: OnceLock::new(),
            failed: Notify::new(),
            commits: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            version: AtomicU64::new(version),
        });
        let (queue, jobs) = sync_channel(QUEUE);
        let theirs = Arc::clone(&shared);
        let writer = std::thread::Builder::new().name("store-writer".into()).spawn(move || {
            let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| writer::run(&db, &theirs, &jobs)));
            if outcome.is_err() {
                theirs.fail("the writer panicked".into());
            }
            db.close().map_err(unavailable)
        });
        let writer =
            writer.map_err(|error| StoreError::Unavailable(format!("cannot start the writer thread: {error}")))?;
        Ok(Self { shared, queue: Some(queue), writer: Some(writer) })
    }

    /// Completes when the engine has failed permanently, and returns the reason. The process should stop then.
    pub async fn failed(&self) -> String {
        loop {
            let notified = self.shared.failed.notified();
            if let Some(failure) = self.shared.failure.get() {
                return failure.clone();
            }
            notified.await;
        }
    }

    /// The number of commits and batches since the store was opened.
    #[must_use]
    pub fn stats(&self) -> WriterStats {
        let (commits, batches) = (&self.shared.commits, &self.shared.batches);
        WriterStats { commits: commits.load(Ordering::Relaxed), batches: batches.load(Ordering::Relaxed) }
    }

    /// A snapshot of the state after the last durable commit, for long reads.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.shared.rows.load_full())
    }

    /// Commits the queued batches and closes the file, so that the next open needs no repair.
    ///
    /// # Errors
    /// The file could not be closed properly. Acknowledged batches are still durable.
    pub fn close(mut self) -> Result<(), StoreError> {
        self.stop()
    }

    fn stop(&mut self) -> Result<(), StoreError> {
        drop(self.queue.take());
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(closed)) => closed,
            Some(Err(_)) => Err(StoreError::Unavailable("the writer panicked".into())),
            None => Ok(()),
        }
    }

    fn read_all(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        let rows = self.shared.rows.load();
        keys.iter().map(|key| read(&rows, key)).collect()
    }

    /// Fails the engine permanently after an I/O error of a read, because redb refuses all later reads. A damaged row
    /// fails only the reads of this row.
    fn fail_on_io_error<T>(&self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(StoreError::Unavailable(reason)) = &outcome {
            self.shared.fail(format!("a read failed: {reason}"));
        }
        outcome
    }

    fn read_span(&self, span: &Span, limit: usize) -> Result<Vec<Scanned>, StoreError> {
        if span.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.shared.rows.load();
        let mut range = rows.range::<&[u8]>(span.from.as_bytes()..span.to.as_bytes()).map_err(unavailable)?;
        let mut found = Vec::with_capacity(limit.min(128));
        for _ in 0..limit {
            let row = match span.order {
                Order::Ascending => range.next(),
                Order::Descending => range.next_back(),
            };
            let Some(found_row) = row else { break };
            let (key, value) = found_row.map_err(unavailable)?;
            found.push(match &span.follow {
                None => row::decode(Key::from_bytes(key.value()), value.value()),
                Some(follow) => match follow.target(key.value()) {
                    None => Err(DamagedRow::points_nowhere(Key::from_bytes(key.value()))),
                    Some(target) => match rows.get(target.as_bytes()).map_err(unavailable)? {
                        Some(value) => row::decode(target, value.value()),
                        None => Err(DamagedRow::dangling(Key::from_bytes(key.value()))),
                    },
                },
            });
        }
        Ok(found)
    }

    /// Queues a batch for the writer; see [`Job`] for `version_change`.
    pub(super) fn enqueue(
        &self,
        batch: Batch,
        version_change: Option<(u64, u64)>,
    ) -> Result<oneshot::Receiver<Outcome>, StoreError> {
        if let Some(failure) = self.shared.failure.get() {
            return Err(StoreError::Unavailable(failure.clone()));
        }
        let (answer, outcome) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(|| StoreError::Unavailable("the store is closed".into()))?;
        match queue.try_send(Job { batch, version_change, answer }) {
            Ok(()) => Ok(outcome),
            Err(TrySendError::Full(_)) => Err(StoreError::Busy),
            Err(TrySendError::Disconnected(_)) => Err(StoreError::Unavailable("the writer has stopped".into())),
        }
    }
}

impl Drop for Redb {
    fn drop(&mut self) {
        // A drop cannot report an error. Acknowledged batches are durable anyway.
        let _ = self.stop();
    }
}

impl Store for Redb {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        Box::pin(std::future::ready(self.fail_on_io_error(self.read_all(keys))))
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        Box::pin(std::future::ready(self.fail_on_io_error(self.read_span(span, limit))))
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        let queued = self.enqueue(batch, None);
        Box::pin(async move {
            let outcome = queued?.await;
            outcome.unwrap_or_else(|_| Err(StoreError::Unknown("the writer stopped before it answered".into())))
        })
    }

    fn ready(&self) -> Answer<'_, ()> {
        let state = self.shared.failure.get().map_or(Ok(()), |failure| Err(StoreError::Unavailable(failure.clone())));
        Box::pin(std::future::ready(state))
    }
}
