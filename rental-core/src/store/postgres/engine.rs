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

/// Whether the database takes writes, of a store of this version.
const PROBE_SQL: &str = concat!("SELECT current_setting('transaction_read_only') WHERE ", guard!(1));

/// What the outside gives beside the address.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Names this server among those on the same database: another one at every start.
    pub writer: Uuid,
    /// The longest single wait for the database. A call can take eight times as long when everything goes wrong.
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
    /// Connects, makes the tables if there are none, and starts the writer. `roots` are the certificates to trust, as PEM,
    /// instead of those of the system.
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

    /// Connects as [`Postgres::open`] does, also when an upgrade has to come first: [`crate::upgrade::state`] tells.
    ///
    /// # Errors
    /// As [`Postgres::open`], but for versions that can be upgraded.
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
        // Rows of servers that are long gone. Nobody waits for what they tell.
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

    /// What the writer did so far.
    #[must_use]
    pub fn stats(&self) -> WriterStats {
        let (commits, batches) = (&self.known.commits, &self.known.batches);
        WriterStats { commits: commits.load(Ordering::Relaxed), batches: batches.load(Ordering::Relaxed) }
    }

    /// The state at this moment, for a reader that takes its time.
    ///
    /// # Errors
    /// The database cannot serve.
    pub async fn snapshot(&self) -> Result<Snapshot, StoreError> {
        Snapshot::take(&self.connections).await
    }

    /// Makes views in the schema `rental`: name and statement of each.
    ///
    /// # Errors
    /// Why one could not be made; those before it are.
    pub async fn make_views(&self, views: &[(&str, &str)]) -> Result<(), String> {
        views::make(&self.connections.pool, self.connections.patience, views).await
    }

    /// Finishes what is queued.
    pub async fn close(mut self) {
        drop(self.queue.take());
        if let Some(writer) = self.writer.take() {
            // It ends by itself; a panic of it was told to those who waited.
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

    /// One statement that shows whether writes are possible, or a commit of nothing when the last one failed.
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

/// Why an upgrade has to come first, if so.
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
                // The writer is at it, and bounded itself.
                Err(_) => outcome.await,
            };
            ended.unwrap_or_else(|_| Err(StoreError::Unknown("the writer stopped before it answered".into())))
        })
    }

    fn ready(&self) -> Answer<'_, ()> {
        Box::pin(async move { timeout(PROBE, self.probe()).await.unwrap_or_else(|_| Err(unanswered())) })
    }
}

/// Refuses databases on which an acknowledged write can get lost, or that take none.
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

/// Bytes that a batch keeps in memory, roughly.
fn size(batch: &Batch) -> usize {
    const EACH: usize = 64;
    let checks = batch.checks.iter().map(|check| EACH + check.key().as_bytes().len());
    let writes = batch.writes.iter().map(|write| match write {
        Write::Put(key, _, value, _) => EACH + key.as_bytes().len() + value.len(),
        Write::Delete(key) => EACH + key.as_bytes().len(),
    });
    EACH + checks.sum::<usize>() + writes.sum::<usize>()
}
