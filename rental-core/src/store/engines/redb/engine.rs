//! The engine: opens and closes the file, queues batches, and implements [`Store`].

use super::{
    file::{self, Versions},
    scan::scan,
    shared::Shared,
    snapshot::Snapshot,
    source::{FromBackend, InFile, Source, Unchanged, once},
    tables::{failed, of_one, read_one, unavailable},
    watched::Watch,
    writer::{self, Job, Outcome},
};
use crate::store::{
    Absent, Answer, Batch, Commit, CommitObserver, Key, Record, Scanned, Span, Store, StoreError, Tally, WriterStats,
};
use bytes::Bytes;
use redb::backends::FileBackend;
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
};
use tokio::sync::oneshot;

/// Most batches in the queue. When it is full, a commit fails with [`StoreError::Busy`].
const QUEUE: usize = 4096;
/// Page cache of a store that is opened for fault injection.
const STORAGE_CACHE: usize = 1 << 20;

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
        Self::start(InFile { path: path.to_owned(), cache_bytes, versions: Versions::Present })
    }

    /// Opens or creates the file at `path`, and accepts stores that need an upgrade; see [`crate::upgrade::state`].
    ///
    /// # Errors
    /// Those of [`Redb::open`], except that a version that can be upgraded is no error.
    pub fn open_any_version(path: &Path, cache_bytes: usize) -> Result<Self, StoreError> {
        Self::start(InFile { path: path.to_owned(), cache_bytes, versions: Versions::Upgradable })
    }

    /// Opens the file at `path` for reading alone, and accepts stores that need an upgrade. The file is not changed: what is
    /// committed stays in memory and is lost when the store is closed.
    ///
    /// # Errors
    /// Those of [`Redb::open_any_version`]; also when there is no file.
    pub fn open_unchanged(path: &Path, cache_bytes: usize) -> Result<Self, StoreError> {
        Self::start(Unchanged(path.to_owned(), cache_bytes))
    }

    /// Opens a store on any storage of redb, for fault injection. It cannot be opened again when it finds no room.
    ///
    /// # Errors
    /// The storage contains no usable database.
    pub fn on_backend(backend: impl redb::StorageBackend) -> Result<Self, StoreError> {
        Self::start(once(backend, STORAGE_CACHE))
    }

    /// Makes an empty store in a file without a name in `folder`: nothing of it is left when it is closed or the process ends. It
    /// cannot be opened again when it finds no room.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn nameless(folder: &Path, cache_bytes: usize) -> Result<Self, StoreError> {
        let file = tempfile::tempfile_in(folder).map_err(|error| file::cannot_make(folder, &error))?;
        Self::start(once(FileBackend::new(file).map_err(unavailable)?, cache_bytes))
    }

    /// Opens a store on any storage of redb, for fault injection. When it finds no room, it opens what `make` makes, and takes
    /// writes again once `has_room` says so.
    ///
    /// # Errors
    /// The storage contains no usable database.
    pub fn on_backends<B: redb::StorageBackend>(
        mut make: impl FnMut() -> B + Send + 'static,
        has_room: impl FnMut() -> bool + Send + 'static,
    ) -> Result<Self, StoreError> {
        Self::start(FromBackend { make: move || Some(make()), has_room, cache_bytes: STORAGE_CACHE })
    }

    fn start(mut source: impl Source + 'static) -> Result<Self, StoreError> {
        let watch = Watch::default();
        let db = source.open(Absent::Create, &watch)?;
        let shared = Arc::new(Shared::new(&db, watch)?);
        let (queue, jobs) = sync_channel(QUEUE);
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("store-writer".into());
        let writer = thread.spawn(move || writer::run(db, Box::new(source), &theirs, &jobs));
        let writer =
            writer.map_err(|error| StoreError::Unavailable(format!("cannot start the writer thread: {error}")))?;
        Ok(Self { shared, queue: Some(queue), writer: Some(writer) })
    }

    /// Completes when the engine has failed permanently, and returns the reason. The process should stop then.
    pub async fn failed(&self) -> String {
        loop {
            let notified = self.shared.changed.notified();
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

    /// Reports the commits from now on to `observer`. Only the first call has an effect.
    pub fn observe(&self, observer: Arc<dyn CommitObserver>) {
        let _ = self.shared.observer.set(observer);
    }

    /// Counts the changes of the batches that are committed from now on in `tally`. Only the first call has an effect.
    pub fn count(&self, tally: Arc<Tally>) {
        let _ = self.shared.tally.set(tally);
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
        keys.iter().map(|key| read_one(&rows, key)).collect()
    }

    /// The stored bytes of a row: header and value, without a check.
    pub(super) fn stored_bytes<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Bytes>> {
        self.read(move |store| {
            of_one(key, || {
                let stored = store.shared.rows.load().get(key.as_bytes()).map_err(failed)?;
                Ok(stored.map(|stored| Bytes::copy_from_slice(stored.value())))
            })
        })
    }

    /// Reads, and reads again when the writer opens the storage again because it found no room. Any other I/O error fails
    /// the engine permanently, because redb refuses all later reads. A damaged row fails only the reads of this row.
    fn read<'a, T: Send + 'a>(&'a self, read: impl Fn(&Self) -> Result<T, StoreError> + Send + 'a) -> Answer<'a, T> {
        let opening = self.shared.opening();
        match read(self) {
            Err(StoreError::Unavailable(reason)) => Box::pin(async move {
                let (mut opening, mut reason) = (opening, reason);
                while self.shared.opens_again(opening) {
                    opening = self.shared.next_opening(opening).await?;
                    match read(self) {
                        Err(StoreError::Unavailable(again)) => reason = again,
                        outcome => return outcome,
                    }
                }
                self.shared.fail(format!("a read failed: {reason}"));
                Err(StoreError::Unavailable(reason))
            }),
            outcome => Box::pin(std::future::ready(outcome)),
        }
    }

    fn read_span(&self, span: &Span, limit: usize) -> Result<Vec<Scanned>, StoreError> {
        scan(&self.shared.rows.load(), span, limit)
    }

    fn read_spans(&self, scans: &[(Span, usize)]) -> Result<Vec<Vec<Scanned>>, StoreError> {
        let rows = self.shared.rows.load();
        scans.iter().map(|(span, limit)| scan(&rows, span, *limit)).collect()
    }

    /// Queues a batch for the writer; see [`Job`] for `version_change`.
    pub(super) fn enqueue(
        &self,
        batch: Batch,
        version_change: Option<(u64, u64)>,
    ) -> Result<oneshot::Receiver<Outcome>, StoreError> {
        self.shared.takes_writes()?;
        self.shared.observer.get().map_or(Ok(()), |observer| observer.admit())?;
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
        self.read(move |store| store.read_all(keys))
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        self.read(move |store| store.read_span(span, limit))
    }

    fn scan_each<'a>(&'a self, scans: &'a [(Span, usize)]) -> Answer<'a, Vec<Vec<Scanned>>> {
        debug_assert!(scans.iter().all(|(span, _)| span.follow.is_none()), "a database follows no entries here");
        self.read(move |store| store.read_spans(scans))
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        let queued = self.enqueue(batch, None);
        Box::pin(async move {
            let outcome = queued?.await;
            outcome.unwrap_or_else(|_| Err(StoreError::Unknown("the writer stopped before it answered".into())))
        })
    }

    fn ready(&self) -> Answer<'_, ()> {
        Box::pin(std::future::ready(self.shared.takes_writes()))
    }
}
