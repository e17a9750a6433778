//! The embedded engine: one redb file, one writer thread, group commit.
//!
//! Callers queue batches; the writer takes what is queued (at most 256), checks and applies each in order in one
//! write transaction, makes ONE durable two-phase commit, publishes the new snapshot and answers all. A batch is
//! checked before its first write because redb has no savepoint once a table is open. Reads run inline on the caller's
//! thread from the published snapshot: no lock, no transaction of their own, and always what was acknowledged.
//!
//! After any I/O error redb refuses further work, and so does this engine: nothing is acknowledged any more,
//! [`Store::ready`] fails, and [`Redb::failed`] resolves so that the process can stop.

mod care;
mod file;
mod look;
mod row;
mod snapshot;
mod version;

pub use crate::store::{SCHEMA_VERSION, WriterStats};
pub use care::{Compacted, RestoreError, Restored, compact, restore, restore_and_upgrade};
pub use look::{Closed, Found};
pub use snapshot::Snapshot;

use crate::store::{Answer, Batch, Commit, DamagedRow, Key, Order, Record, Scanned, Span, Store, StoreError, Write};
use arc_swap::ArcSwap;
use file::{Absent, Versions};
use redb::{Builder, Database, ReadOnlyTable, ReadableDatabase, ReadableTable, Table, TableDefinition};
use std::{
    panic::AssertUnwindSafe,
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
    time::Duration,
};
use tokio::sync::{Notify, oneshot};

const ROWS: TableDefinition<'static, &'static [u8], &'static [u8]> = TableDefinition::new("rows");
const META: TableDefinition<'static, &'static str, u64> = TableDefinition::new("meta");
/// Words in the error of an open that another process is in the way of.
pub const IN_USE: &str = "is in use by another process";
/// Most batches in one commit.
const GROUP: usize = 256;
/// Most batches that wait; one more is answered [`StoreError::Busy`].
const QUEUE: usize = 4096;
/// After this long without a write, one more commit saves redb's allocator state, so that the file opens at once even
/// after a crash. Doing so in every commit costs a quarter of the throughput; never doing so costs a walk over the file.
const SETTLE: Duration = Duration::from_millis(250);

type Rows = ReadOnlyTable<&'static [u8], &'static [u8]>;
type Outcome = Result<Commit, StoreError>;

/// A batch that waits.
struct Job {
    batch: Batch,
    /// The version that the store must have, and the one that it gets.
    claim: Option<(u64, u64)>,
    answer: oneshot::Sender<Outcome>,
}

/// A store in one file, open in this process alone.
pub struct Redb {
    shared: Arc<Shared>,
    queue: Option<SyncSender<Job>>,
    writer: Option<JoinHandle<Result<(), StoreError>>>,
}

struct Shared {
    /// What readers see: the state after the last durable commit.
    rows: ArcSwap<Rows>,
    failure: OnceLock<String>,
    failed: Notify,
    commits: AtomicU64,
    batches: AtomicU64,
    /// The schema version of the file.
    version: AtomicU64,
}

impl Redb {
    /// Opens the file at `path`, or makes it; `cache_bytes` bounds redb's page cache.
    ///
    /// # Errors
    /// A sentence for the operator: the file is open elsewhere, damaged, of another version, or cannot be read.
    pub fn open(path: &Path, cache_bytes: usize) -> Result<Self, StoreError> {
        file::open(path, cache_bytes, Absent::Made, Versions::Present).and_then(Self::start)
    }

    /// Opens the file at `path`, or makes it, also when an upgrade has to come first: [`crate::upgrade::state`] tells.
    ///
    /// # Errors
    /// As [`Redb::open`], but for versions that can be upgraded.
    pub fn open_any_version(path: &Path, cache_bytes: usize) -> Result<Self, StoreError> {
        file::open(path, cache_bytes, Absent::Made, Versions::Upgradable).and_then(Self::start)
    }

    /// Runs on any redb storage, for fault injection.
    ///
    /// # Errors
    /// When the storage holds no usable database.
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
            let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| write_loop(&db, &theirs, &jobs)));
            if outcome.is_err() {
                theirs.fail("the writer panicked".into());
            }
            db.close().map_err(unavailable)
        });
        let writer =
            writer.map_err(|error| StoreError::Unavailable(format!("cannot start the writer thread: {error}")))?;
        Ok(Self { shared, queue: Some(queue), writer: Some(writer) })
    }

    /// Resolves when the engine has failed for good, with the reason. The process should stop then.
    pub async fn failed(&self) -> String {
        loop {
            let notified = self.shared.failed.notified();
            if let Some(failure) = self.shared.failure.get() {
                return failure.clone();
            }
            notified.await;
        }
    }

    /// What the writer did so far.
    #[must_use]
    pub fn stats(&self) -> WriterStats {
        let (commits, batches) = (&self.shared.commits, &self.shared.batches);
        WriterStats { commits: commits.load(Ordering::Relaxed), batches: batches.load(Ordering::Relaxed) }
    }

    /// The state after the last durable commit, for a reader that takes its time.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.shared.rows.load_full())
    }

    /// Finishes what is queued and closes the file, so that the next open needs no repair.
    ///
    /// # Errors
    /// When the last state could not be written; acknowledged batches are durable all the same.
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

    /// After one failed read redb refuses all others, so it is the end for this engine as well. A row whose checksum is
    /// wrong is not: whoever asked for it is told, and all others are served.
    fn noticed<T>(&self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
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

    fn enqueue(&self, batch: Batch, claim: Option<(u64, u64)>) -> Result<oneshot::Receiver<Outcome>, StoreError> {
        if let Some(failure) = self.shared.failure.get() {
            return Err(StoreError::Unavailable(failure.clone()));
        }
        let (answer, outcome) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(|| StoreError::Unavailable("the store is closed".into()))?;
        match queue.try_send(Job { batch, claim, answer }) {
            Ok(()) => Ok(outcome),
            Err(TrySendError::Full(_)) => Err(StoreError::Busy),
            Err(TrySendError::Disconnected(_)) => Err(StoreError::Unavailable("the writer has stopped".into())),
        }
    }
}

impl Drop for Redb {
    fn drop(&mut self) {
        // Close reports errors to those who ask by `close`; here nobody listens, and what was acknowledged is durable.
        let _ = self.stop();
    }
}

impl Shared {
    fn fail(&self, reason: String) {
        let _ = self.failure.set(reason);
        self.failed.notify_waiters();
    }
}

impl Store for Redb {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        Box::pin(std::future::ready(self.noticed(self.read_all(keys))))
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        Box::pin(std::future::ready(self.noticed(self.read_span(span, limit))))
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

fn unavailable(error: impl std::fmt::Display) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

fn snapshot(db: &Database) -> Result<Rows, StoreError> {
    db.begin_read().map_err(unavailable)?.open_table(ROWS).map_err(unavailable)
}

fn read(rows: &Rows, key: &Key) -> Result<Option<Record>, StoreError> {
    let value = rows.get(key.as_bytes()).map_err(unavailable)?;
    Ok(value.map(|value| row::decode(key.clone(), value.value())).transpose()?)
}

fn write_loop(db: &Database, shared: &Shared, jobs: &Receiver<Job>) {
    let mut settled = true;
    loop {
        let first =
            if settled { jobs.recv().map_err(|_| RecvTimeoutError::Disconnected) } else { jobs.recv_timeout(SETTLE) };
        match first {
            Ok(first) => {
                let group = std::iter::once(first).chain(std::iter::from_fn(|| jobs.try_recv().ok())).take(GROUP);
                let (batches, answers): (Vec<_>, Vec<_>) =
                    group.map(|job| ((job.batch, job.claim), job.answer)).unzip();
                answer(shared, apply(db, shared, batches), answers);
                settled = false;
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = settle(db) {
                    shared.fail(error.to_string());
                }
                settled = true;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if let Some(failure) = shared.failure.get() {
            // Nothing may be acknowledged any more; whoever waits is told, whoever comes is refused at the door.
            while let Ok(job) = jobs.try_recv() {
                let _ = job.answer.send(Err(StoreError::Unavailable(failure.clone())));
            }
            return;
        }
    }
}

/// One transaction for all of them; each one's checks see the writes of those before it.
fn apply(
    db: &Database,
    shared: &Shared,
    batches: Vec<(Batch, Option<(u64, u64)>)>,
) -> Result<Vec<Outcome>, StoreError> {
    let mut transaction = db.begin_write().map_err(unavailable)?;
    transaction.set_two_phase_commit(true);
    let mut outcomes = Vec::with_capacity(batches.len());
    {
        let mut rows = transaction.open_table(ROWS).map_err(unavailable)?;
        for (batch, claim) in batches {
            if let Some((from, to)) = claim {
                outcomes.push(Ok(version::claim(&transaction, &mut rows, batch, from, to)?));
                continue;
            }
            match apply_one(&mut rows, batch) {
                // Found by a check, before any write of its batch: the others are none the worse for it.
                damaged @ Err(StoreError::Damaged(_)) => outcomes.push(damaged),
                outcome => outcomes.push(Ok(outcome?)),
            }
        }
    }
    let applied = outcomes.iter().filter(|outcome| **outcome == Ok(Commit::Applied)).count();
    if applied == 0 {
        transaction.abort().map_err(unavailable)?;
        return Ok(outcomes);
    }
    transaction.commit().map_err(|error| StoreError::Unknown(error.to_string()))?;
    // Published before anyone is answered: whoever got an answer reads it.
    shared.rows.store(Arc::new(snapshot(db).map_err(|error| StoreError::Unknown(error.to_string()))?));
    shared.version.store(version::read(db).map_err(|error| StoreError::Unknown(error.to_string()))?, Ordering::Release);
    shared.commits.fetch_add(1, Ordering::Relaxed);
    shared.batches.fetch_add(applied as u64, Ordering::Relaxed);
    Ok(outcomes)
}

fn apply_one(rows: &mut Table<'_, &'static [u8], &'static [u8]>, batch: Batch) -> Result<Commit, StoreError> {
    for check in batch.checks {
        let stored = rows.get(check.key().as_bytes()).map_err(unavailable)?;
        let revision =
            stored.map(|stored| row::split(check.key(), stored.value()).map(|(revision, _)| revision)).transpose()?;
        if !check.holds(revision) {
            return Ok(Commit::Stale(check.key().clone()));
        }
    }
    for write in batch.writes {
        match write {
            Write::Put(key, revision, value, _) => {
                drop(rows.insert(key.as_bytes(), row::encode(&key, revision, &value).as_slice()).map_err(unavailable)?)
            }
            Write::Delete(key) => drop(rows.remove(key.as_bytes()).map_err(unavailable)?),
        }
    }
    Ok(Commit::Applied)
}

fn answer(
    shared: &Shared,
    outcome: Result<Vec<Outcome>, StoreError>,
    answers: Vec<oneshot::Sender<Result<Commit, StoreError>>>,
) {
    match outcome {
        Ok(outcomes) => {
            for (answer, outcome) in answers.into_iter().zip(outcomes) {
                // A caller that went away does not undo what was committed for it.
                let _ = answer.send(outcome);
            }
        }
        Err(error) => {
            shared.fail(error.to_string());
            for answer in answers {
                let _ = answer.send(Err(error.clone()));
            }
        }
    }
}

/// An empty commit that also saves the allocator state.
fn settle(db: &Database) -> Result<(), StoreError> {
    let mut transaction = db.begin_write().map_err(unavailable)?;
    transaction.set_quick_repair(true);
    transaction.commit().map_err(unavailable)
}
