//! The engine: connects, queues batches, and implements [`Store`].

use super::{
    address::Address,
    connections::{Connections, unanswered},
    pooler,
    reader::Reader,
    scan::{scan, scan_each},
    schema, session,
    snapshot::Snapshot,
    transaction,
    version::guard,
    writer::{self, Job, Outcome, Shared, Writer},
};
use crate::store::{
    Absent, Access, Answer, Batch, Commit, CommitObserver, Key, Record, SCHEMA_VERSION, Scanned, Span, Store,
    StoreError, Tally, Write, WriterStats, marks, needs_upgrade,
};
use crate::value::Timestamp;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{
        Semaphore,
        mpsc::{Sender, channel, error::TrySendError},
        oneshot,
    },
    task::JoinHandle,
    time::timeout,
};
use uuid::Uuid;

/// Connections for reads. There is one more for writes.
const READERS: usize = 16;
/// Most batches in the queue. When it is full, a commit fails with [`StoreError::Busy`].
const QUEUE: usize = 4096;
/// Most bytes of all batches that are queued or being written.
const QUEUE_BYTES: usize = 64 << 20;
/// Time-out of the check that the database accepts writes.
const PROBE: Duration = Duration::from_secs(2);

/// Reads the clock of the database, in milliseconds.
const TIME_SQL: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
/// Reads whether the database accepts writes. It fails when the store has another version.
const PROBE_SQL: &str = concat!("SELECT current_setting('transaction_read_only') WHERE ", guard!(1));

/// The settings of a connection to the store that are not in the address.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Identifies this server among those that use the same database. It must be new at every start.
    pub writer: Uuid,
    /// Longest single wait for the database. One call can make up to eight such waits.
    pub patience: Duration,
}

/// A store in a PostgreSQL database, which several servers can share.
pub struct Postgres {
    /// The address without its password.
    shown: String,
    pub(super) connections: Connections,
    reader: Arc<Reader>,
    queue: Option<Sender<Job>>,
    room: Arc<Semaphore>,
    writer: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

impl Postgres {
    /// Connects, creates missing tables, and starts the writer. `roots` contains the trusted certificates as PEM; `None`
    /// means those of the system.
    ///
    /// # Errors
    /// A sentence for the operator, which contains the address without its password.
    pub async fn open(address: &Address, roots: Option<&[u8]>, settings: Settings) -> Result<Self, StoreError> {
        Self::open_as(address, roots, settings, (Access::Present, Absent::Create)).await
    }

    /// Connects as [`Postgres::open`] does, and accepts stores that need an upgrade; see [`crate::upgrade::state`].
    ///
    /// # Errors
    /// Those of [`Postgres::open`], except that a version that can be upgraded is no error.
    pub async fn open_any_version(
        address: &Address,
        roots: Option<&[u8]>,
        settings: Settings,
    ) -> Result<Self, StoreError> {
        Self::open_as(address, roots, settings, (Access::Upgradable, Absent::Create)).await
    }

    /// Connects to a store that `access` accepts.
    pub(super) async fn open_as(
        address: &Address,
        roots: Option<&[u8]>,
        settings: Settings,
        (access, absent): (Access, Absent),
    ) -> Result<Self, StoreError> {
        let store = Self::connect(address, roots, settings, absent).await?;
        if store.is_half_loaded().await? {
            return Err(StoreError::Unavailable(format!(
                "{address} holds half of a store: copying into it was broken off. Drop its schema `rental` and copy again"
            )));
        }
        if access == Access::Present
            && let Some(why) = upgrade_state(&store).await?
        {
            return Err(StoreError::NeedsUpgrade(format!("{address}: {why}")));
        }
        Ok(store)
    }

    /// Connects as [`Postgres::open_any_version`] does, also to a store whose load was interrupted.
    pub(super) async fn connect(
        address: &Address,
        roots: Option<&[u8]>,
        settings: Settings,
        absent: Absent,
    ) -> Result<Self, StoreError> {
        let Settings { writer: id, patience } = settings;
        let failed = |why: String| StoreError::Unavailable(format!("{address} {why}"));
        let readers = session::pool(address, roots, READERS, patience).map_err(&failed)?;
        let client = readers.get().await.map_err(|error| failed(session::refusal(&error)))?;
        let other = readers.get().await.map_err(|error| failed(session::refusal(&error)))?;
        pooler::check(&client, &other).await.map_err(&failed)?;
        drop(other);
        let begin = check_settings(&client).await.map_err(&failed)?;
        let version = schema::prepare(&client, address, absent).await?;
        let version = Arc::new(AtomicU64::new(version));
        // Removes the rows of servers that stopped long ago. A server needs its row only to resolve an unknown commit.
        let tidy = "DELETE FROM rental.writers WHERE seen < now() - interval '7 days'";
        client.batch_execute(tidy).await.map_err(|error| failed(session::describe(&error)))?;
        drop(client);
        let (queue, jobs) = channel(QUEUE);
        let shared = Arc::<Shared>::default();
        let pool = session::pool(address, roots, 1, patience).map_err(&failed)?;
        let (number, theirs) = (0, Arc::clone(&version));
        let (id, our) = (id.as_bytes().to_vec(), Arc::clone(&shared));
        let writer = Writer { pool, id, begin, number, patience, shared: our, version: theirs };
        let connections = Connections { pool: readers, patience, version, begin };
        Ok(Self {
            shown: address.to_string(),
            reader: Reader::new(connections.clone()),
            connections,
            queue: Some(queue),
            room: Arc::new(Semaphore::new(QUEUE_BYTES)),
            writer: Some(tokio::spawn(writer::run(writer, jobs))),
            shared,
        })
    }

    /// The number of commits and batches of this server since the store was opened.
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

    /// Takes a snapshot of the present state, for long reads.
    ///
    /// # Errors
    /// The database is not available.
    pub async fn snapshot(&self) -> Result<Snapshot, StoreError> {
        Snapshot::take(&self.connections).await
    }

    /// Commits the queued batches, then stops the writer.
    pub async fn close(mut self) {
        drop(self.queue.take());
        if let Some(writer) = self.writer.take() {
            // An error here means that the writer panicked. Its callers already got an error.
            let _ = writer.await;
        }
    }

    fn enqueue(&self, batch: Batch) -> Result<(Arc<AtomicBool>, oneshot::Receiver<Outcome>), StoreError> {
        self.shared.observer.get().map_or(Ok(()), |observer| observer.admit())?;
        let size = u32::try_from(size(&batch)).ok().filter(|size| *size as usize <= QUEUE_BYTES);
        let size = size.ok_or_else(|| StoreError::Unavailable("a batch is larger than the queue".into()))?;
        let room = Arc::clone(&self.room).try_acquire_many_owned(size).map_err(|_| StoreError::Busy)?;
        let (answer, outcome) = oneshot::channel();
        let claimed = Arc::new(AtomicBool::new(false));
        let queue = self.queue.as_ref().ok_or_else(|| StoreError::Unavailable("the store is closed".into()))?;
        match queue.try_send(Job { batch, claimed: Arc::clone(&claimed), answer, room }) {
            Ok(()) => Ok((claimed, outcome)),
            Err(TrySendError::Full(_)) => Err(StoreError::Busy),
            Err(TrySendError::Closed(_)) => Err(StoreError::Unavailable("the writer has stopped".into())),
        }
    }

    /// The clock of the database.
    pub(super) async fn time(&self) -> Result<Timestamp, StoreError> {
        let rows = self.connections.read(TIME_SQL, &[]).await?;
        let millis = rows.first().and_then(|row| row.try_get::<_, i64>(0).ok());
        millis.map(Timestamp::from_millis).ok_or_else(|| StoreError::Unavailable("the database tells no time".into()))
    }

    /// Checks with one statement that the database accepts writes; after a failed commit, with an empty commit.
    async fn probe(&self) -> Result<(), StoreError> {
        if self.shared.commit_failed.load(Ordering::Relaxed) {
            return self.commit(Batch::default()).await.map(drop);
        }
        match self
            .connections
            .read(PROBE_SQL, &[&self.connections.expected()])
            .await?
            .first()
            .map(|row| row.try_get::<_, String>(0))
        {
            Some(Ok(answer)) if answer == "off" => Ok(()),
            _ => Err(StoreError::Unavailable("the database is read-only".into())),
        }
    }
}

/// The message for the operator when the store needs an upgrade; `None` when it needs none.
async fn upgrade_state(store: &Postgres) -> Result<Option<String>, StoreError> {
    let version = store.connections.version.load(Ordering::Acquire);
    let half = store.get(&[marks::upgrade()]).await?.pop().flatten().is_some();
    Ok((version != SCHEMA_VERSION || half).then(|| needs_upgrade(version)))
}

impl Store for Postgres {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        Box::pin(self.reader.get(keys))
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        Box::pin(scan(&self.connections, span, limit))
    }

    fn scan_each<'a>(&'a self, scans: &'a [(Span, usize)]) -> Answer<'a, Vec<Vec<Scanned>>> {
        Box::pin(scan_each(&self.connections, scans))
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        let queued = self.enqueue(batch);
        Box::pin(async move {
            let (claimed, mut outcome) = queued?;
            let ended = match timeout(self.connections.patience, &mut outcome).await {
                Ok(ended) => ended,
                Err(_) if !claimed.swap(true, Ordering::AcqRel) => {
                    return Err(StoreError::Unavailable("the database did not take a write in time".into()));
                }
                // The writer has already taken the batch. Its own time-outs bound the wait.
                Err(_) => outcome.await,
            };
            ended.unwrap_or_else(|_| Err(StoreError::Unknown("the writer stopped before it answered".into())))
        })
    }

    fn ready(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            let ready = timeout(PROBE, self.probe()).await.unwrap_or_else(|_| Err(unanswered()));
            ready.map_err(|error| match error {
                StoreError::Unavailable(why) => StoreError::Unavailable(format!("{}: {why}", self.shown)),
                other => other,
            })
        })
    }
}

/// Refuses a database that can lose acknowledged writes or that does not accept writes. Returns the statement that begins a
/// transaction that writes.
async fn check_settings(client: &session::Client) -> Result<&'static str, String> {
    let ask = |sql: &'static str| async move {
        let row = client.query_one(sql, &[]).await.map_err(|error| session::describe(&error))?;
        row.try_get::<_, Option<String>>(0).map_err(|error| session::describe(&error))
    };
    if ask("SHOW transaction_read_only").await?.as_deref() == Some("on") {
        return Err("is read-only, such as a replica: give the address of the primary".into());
    }
    if ask("SELECT current_setting('fsync', true)").await?.as_deref() == Some("off") {
        return Err("runs with fsync = off, so that a crash loses what was saved: set fsync = on".into());
    }
    Ok(transaction::begin(ask("SELECT current_setting('synchronous_commit', true)").await?.as_deref()))
}

/// Approximate bytes of memory that a batch needs.
fn size(batch: &Batch) -> usize {
    const EACH: usize = 64;
    let checks = batch.checks.iter().map(|check| EACH + check.key().as_bytes().len());
    let writes = batch.writes.iter().map(|write| match write {
        Write::Put(key, _, value, _) => EACH + key.as_bytes().len() + value.len(),
        Write::Delete(key) => EACH + key.as_bytes().len(),
    });
    EACH + checks.sum::<usize>() + writes.sum::<usize>()
}
