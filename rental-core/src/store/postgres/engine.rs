//! The engine: its opening, its queue of writes, and the calls of the trait.

use super::{
    address::Address,
    connections::{Connections, unanswered},
    dump::Snapshot,
    link,
    reader::Reader,
    scan::scan,
    schema,
    version::guard,
    views,
    writer::{self, Job, Known, Outcome, Writer},
};
use crate::store::{
    Answer, Batch, Commit, Key, Record, SCHEMA_VERSION, Scanned, Span, Store, StoreError, Write, WriterStats, marks,
    needs_upgrade,
};
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

/// Connections for reads; one more is for writes.
const READERS: usize = 16;
/// Most batches that wait; a further one is answered [`StoreError::Busy`].
const QUEUE: usize = 4096;
/// Most bytes of batches that wait or are being written.
const QUEUE_BYTES: usize = 64 << 20;
/// Longest time for the check that the database takes writes.
const PROBE: Duration = Duration::from_secs(2);

/// Tells whether the database takes writes. It fails when the store has another version.
const PROBE_SQL: &str = concat!("SELECT current_setting('transaction_read_only') WHERE ", guard!(1));

/// Settings of a server beside the address of the database.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Identifies this server among those on the same database. It must be new at every start.
    pub writer: Uuid,
    /// Longest single wait for the database. One call can wait up to eight times.
    pub patience: Duration,
}

/// A store in a database that other servers use as well.
pub struct Postgres {
    pub(super) connections: Connections,
    reader: Arc<Reader>,
    queue: Option<Sender<Job>>,
    room: Arc<Semaphore>,
    writer: Option<JoinHandle<()>>,
    known: Arc<Known>,
}

impl Postgres {
    /// Connects, creates missing tables, and starts the writer. `roots` are the trusted certificates as PEM; `None` means
    /// those of the system.
    ///
    /// # Errors
    /// A sentence for the operator, which names the address without its password.
    pub async fn open(address: &Address, roots: Option<&[u8]>, settings: Settings) -> Result<Self, StoreError> {
        let store = Self::open_any_version(address, roots, settings).await?;
        let found = upgrade_state(&store).await?;
        match found {
            None => Ok(store),
            Some(why) => Err(StoreError::Unavailable(format!("{address}: {why}"))),
        }
    }

    /// Connects as [`Postgres::open`] does, and accepts stores that need an upgrade; see [`crate::upgrade::state`].
    ///
    /// # Errors
    /// As [`Postgres::open`], except for versions that can be upgraded.
    pub async fn open_any_version(
        address: &Address,
        roots: Option<&[u8]>,
        settings: Settings,
    ) -> Result<Self, StoreError> {
        let Settings { writer: id, patience } = settings;
        let failed = |why: String| StoreError::Unavailable(format!("{address} {why}"));
        let readers = link::pool(address, roots, READERS, patience).map_err(&failed)?;
        let client = readers.get().await.map_err(|error| failed(link::refusal(&error)))?;
        examine(&client).await.map_err(&failed)?;
        let version = schema::prepare(&client).await.map_err(&failed)?;
        let version = Arc::new(AtomicU64::new(version));
        // Rows of servers that stopped long ago: no commit with an unknown outcome is left that needs them.
        let tidy = "DELETE FROM rental.writers WHERE seen < now() - interval '7 days'";
        client.batch_execute(tidy).await.map_err(|error| failed(link::describe(&error)))?;
        drop(client);
        let (queue, jobs) = channel(QUEUE);
        let known = Arc::<Known>::default();
        let pool = link::pool(address, roots, 1, patience).map_err(&failed)?;
        let (number, theirs) = (0, Arc::clone(&version));
        let writer =
            Writer { pool, id: id.as_bytes().to_vec(), number, patience, known: Arc::clone(&known), version: theirs };
        let connections = Connections { pool: readers, patience, version };
        Ok(Self {
            reader: Reader::new(connections.clone()),
            connections,
            queue: Some(queue),
            room: Arc::new(Semaphore::new(QUEUE_BYTES)),
            writer: Some(tokio::spawn(writer::run(writer, jobs))),
            known,
        })
    }

    /// Commits and batches since the store was opened.
    #[must_use]
    pub fn stats(&self) -> WriterStats {
        let (commits, batches) = (&self.known.commits, &self.known.batches);
        WriterStats { commits: commits.load(Ordering::Relaxed), batches: batches.load(Ordering::Relaxed) }
    }

    /// A snapshot of the present state, for long reads.
    ///
    /// # Errors
    /// The database cannot serve.
    pub async fn snapshot(&self) -> Result<Snapshot, StoreError> {
        Snapshot::take(&self.connections).await
    }

    /// Creates views in the schema `rental`, each given as its name and statement.
    ///
    /// # Errors
    /// Why a view could not be created; the views before it exist.
    pub async fn make_views(&self, views: &[(&str, &str)]) -> Result<(), String> {
        views::make(&self.connections.pool, self.connections.patience, views).await
    }

    /// Commits the queued batches, then stops the writer.
    pub async fn close(mut self) {
        drop(self.queue.take());
        if let Some(writer) = self.writer.take() {
            // It ends by itself. If it panicked, the waiting callers already got an error.
            let _ = writer.await;
        }
    }

    fn enqueue(&self, batch: Batch) -> Result<(Arc<AtomicBool>, oneshot::Receiver<Outcome>), StoreError> {
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

    /// Checks by one statement that the database takes writes; after a failed commit, by an empty commit.
    async fn probe(&self) -> Result<(), StoreError> {
        if self.known.troubled.load(Ordering::Relaxed) {
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

/// Why the store needs an upgrade; `None` when it needs none.
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

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        let queued = self.enqueue(batch);
        Box::pin(async move {
            let (claimed, mut outcome) = queued?;
            let ended = match timeout(self.connections.patience, &mut outcome).await {
                Ok(ended) => ended,
                Err(_) if !claimed.swap(true, Ordering::AcqRel) => {
                    return Err(StoreError::Unavailable("the database did not take a write in time".into()));
                }
                // The writer has taken the batch; its own time-outs bound the wait.
                Err(_) => outcome.await,
            };
            ended.unwrap_or_else(|_| Err(StoreError::Unknown("the writer stopped before it answered".into())))
        })
    }

    fn ready(&self) -> Answer<'_, ()> {
        Box::pin(async move { timeout(PROBE, self.probe()).await.unwrap_or_else(|_| Err(unanswered())) })
    }
}

/// Refuses a database that can lose acknowledged writes or that takes no writes.
async fn examine(client: &link::Client) -> Result<(), String> {
    let ask = |sql: &'static str| async move {
        let row = client.query_one(sql, &[]).await.map_err(|error| link::describe(&error))?;
        row.try_get::<_, Option<String>>(0).map_err(|error| link::describe(&error))
    };
    if ask("SHOW transaction_read_only").await?.as_deref() == Some("on") {
        return Err("is read-only, such as a replica: give the address of the primary".into());
    }
    if ask("SELECT current_setting('fsync', true)").await?.as_deref() == Some("off") {
        return Err("runs with fsync = off, so that a crash loses what was saved: set fsync = on".into());
    }
    Ok(())
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
