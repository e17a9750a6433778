//! The engine for several servers: one table in PostgreSQL, or in what speaks its protocol.
//!
//! Reads are one statement each, from a pool of connections; those of single rows share statements (`reader.rs`). Writes
//! go through one task, which takes what is queued and commits it together (`writer.rs` says why that is right). Everything
//! has a bound: connections, what is queued, and each wait for the database. After a restart or a fail-over of the database
//! the engine reconnects by itself; until then its calls fail with [`StoreError::Unavailable`].
//!
//! Nothing in here needs PostgreSQL itself: plain tables, no extension, no advisory lock, no notification.

mod address;
mod dump;
mod group;
mod link;
mod load;
mod reader;
mod schema;
mod turn;
mod version;
mod views;
mod writer;

pub use address::Address;
pub use dump::Snapshot;
pub use load::LoadError;

use crate::store::{
    Answer, Batch, DamagedRow, Key, Order, Record, SCHEMA_VERSION, Scanned, Span, Store, StoreError, Write,
    WriterStats, marks, needs_upgrade,
};
use bytes::Bytes;
use deadpool_postgres::Pool;
use link::Trouble;
use reader::Reader;
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
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;
use version::guard;
use writer::{Job, Known, Outcome, Writer};

/// Connections for reads; one more is for writes.
const READERS: usize = 16;
/// Most batches that wait; one more is answered [`StoreError::Busy`].
const QUEUE: usize = 4096;
/// Most bytes of batches that wait or are being written.
const QUEUE_BYTES: usize = 64 << 20;
/// Most time for the question whether writes can be served.
const PROBE: Duration = Duration::from_secs(2);
/// Times that a read is tried when its connection turns out to be gone.
const READ_ATTEMPTS: usize = 3;

/// Whether the database takes writes, of a store of this version.
const PROBE_SQL: &str = concat!("SELECT current_setting('transaction_read_only') WHERE ", guard!(1));
const GET: &str = concat!("SELECT key, revision, value FROM rental.rows WHERE key = ANY($1) AND ", guard!(2));
const RISING: &str = concat!(
    "SELECT key, revision, value FROM rental.rows WHERE key >= $1 AND key < $2 AND ",
    guard!(4),
    " ORDER BY key LIMIT $3"
);
const FALLING: &str = concat!(
    "SELECT key, revision, value FROM rental.rows WHERE key >= $1 AND key < $2 AND ",
    guard!(4),
    " ORDER BY key DESC LIMIT $3"
);
// An entry leads to the row whose key is the prefix and the last 16 bytes of the entry (`Follow`). The LIMIT inside makes
// the planner look each row up.
macro_rules! follow {
    ($order:literal) => {
        concat!(
            "SELECT e.key, r.key, r.revision, r.value FROM (SELECT key FROM rental.rows WHERE key >= $1 AND key < $2 AND ",
            guard!(5),
            " ORDER BY key",
            $order,
            " LIMIT $3) e LEFT JOIN LATERAL (SELECT t.key, t.revision, t.value FROM rental.rows t \
             WHERE t.key = $4::bytea || substring(e.key from length(e.key) - 15) LIMIT 1) r ON true ORDER BY e.key",
            $order
        )
    };
}
const FOLLOW_RISING: &str = follow!("");
const FOLLOW_FALLING: &str = follow!(" DESC");

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
    connections: Connections,
    reader: Arc<Reader>,
    queue: Option<Sender<Job>>,
    room: Arc<Semaphore>,
    writer: Option<JoinHandle<()>>,
    known: Arc<Known>,
}

/// Connections for reads.
#[derive(Clone)]
struct Connections {
    pool: Pool,
    patience: Duration,
    /// The schema version that statements expect.
    version: version::Expected,
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

    async fn read_span(&self, span: &Span, limit: usize) -> Result<Vec<Scanned>, StoreError> {
        if span.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let (from, to) = (span.from.as_bytes(), span.to.as_bytes());
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let expected = self.connections.expected();
        let Some(follow) = &span.follow else {
            let sql = if span.order == Order::Ascending { RISING } else { FALLING };
            let rows = self.connections.read(sql, &[&from, &to, &limit, &expected]).await?;
            return rows.iter().map(|row| record(row, 0).map(Ok)).collect();
        };
        let sql = if span.order == Order::Ascending { FOLLOW_RISING } else { FOLLOW_FALLING };
        let rows = self.connections.read(sql, &[&from, &to, &limit, &follow.prefix.as_bytes(), &expected]).await?;
        let followed = |row: &Row| {
            let entry: &[u8] = row.try_get(0).map_err(|error| foreign(&error))?;
            let found: Option<&[u8]> = row.try_get(1).map_err(|error| foreign(&error))?;
            Ok(match (follow.target(entry), found) {
                (None, _) => Err(DamagedRow::points_nowhere(Key::from_bytes(entry))),
                (Some(_), None) => Err(DamagedRow::dangling(Key::from_bytes(entry))),
                (Some(_), Some(_)) => Ok(record(row, 1)?),
            })
        };
        rows.iter().map(followed).collect()
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

impl Connections {
    /// The version as a parameter of [`guard`].
    fn expected(&self) -> i64 {
        self.version.load(Ordering::Acquire).cast_signed()
    }

    /// One statement, on another connection if the first one turns out to be gone.
    async fn read(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        let mut last = None;
        for _ in 0..READ_ATTEMPTS {
            let client = match link::take(&self.pool).await {
                Ok(client) => client,
                Err(trouble) => return Err(trouble.into()),
            };
            let asking = async {
                let statement = client.prepare_cached(sql).await?;
                client.query(&statement, values).await
            };
            let error = match timeout(self.patience, asking).await {
                Ok(Ok(rows)) => return Ok(rows),
                Ok(Err(error)) => error,
                Err(_) => {
                    link::discard(client);
                    return Err(unanswered());
                }
            };
            if version::is_of_guard(&error) {
                return Err(StoreError::Unavailable(version::outdated(self.expected().cast_unsigned(), None)));
            }
            link::discard(client);
            match Trouble::from(&error) {
                trouble @ (Trouble::Again(_) | Trouble::Outrun(_)) => last = Some(trouble.into()),
                trouble => return Err(trouble.into()),
            }
        }
        Err(last.unwrap_or_else(unanswered))
    }
}

impl Store for Postgres {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        Box::pin(self.reader.get(keys))
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        Box::pin(self.read_span(span, limit))
    }

    fn commit(&self, batch: Batch) -> Answer<'_, crate::store::Commit> {
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

/// The record whose key, revision and value begin at this column.
fn record(row: &Row, at: usize) -> Result<Record, StoreError> {
    let read = || {
        let value: &[u8] = row.try_get(at + 2)?;
        Ok::<_, tokio_postgres::Error>(Record {
            key: Key::from_bytes(row.try_get(at)?),
            revision: row.try_get::<_, i64>(at + 1)?.cast_unsigned(),
            value: Bytes::copy_from_slice(value),
        })
    };
    read().map_err(|error| foreign(&error))
}

fn foreign(error: &tokio_postgres::Error) -> StoreError {
    StoreError::Corrupt(format!("the table is not one of this program: {}", address::describe(error)))
}

fn unanswered() -> StoreError {
    StoreError::Unavailable("the database did not answer in time".into())
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
