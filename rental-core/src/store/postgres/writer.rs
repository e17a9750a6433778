//! The one writer of a server: several batches in one transaction, two round trips, one commit.
//!
//! **Why it is right.** Every transaction that writes first changes the one row of `rental.store`, on whichever server, and
//! holds that row until it has ended. So the transactions come one after the other. Each statement of `READ COMMITTED`
//! sees all that was committed when it began; the one that reads the checked keys begins once the row is held, so it sees
//! every transaction before this one, and none other can come between it and the commit: what was absent stays absent.
//! Engines that give a stronger level instead fail at that row with 40001 when another was faster, and the group is
//! decided anew. Readers take no part: each reads with one statement, which sees a transaction whole or not at all.
//!
//! **What it costs.** Servers take turns. A turn is one round trip between the lock and the commit, and the commit itself;
//! it takes up to [`GROUP`] batches, so what waits meanwhile shares the next one.
//!
//! **When a connection is lost while a commit is under way** the same row tells: whoever holds it on another connection
//! knows that the lost transaction has ended, and this server's row in `rental.writers` says how.

use super::{
    group::{Decided, checked, decide},
    link::{Client, Trouble, describe, discard, take},
};
use crate::store::{Batch, Commit, Key, Revision, SCHEMA_VERSION, StoreError};
use deadpool_postgres::Pool;
use futures_util::future::{join3, join4};
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc::Receiver, oneshot},
    time::{sleep, timeout},
};
use tokio_postgres::{Error, Statement, error::SqlState};

/// Most batches in one commit.
const GROUP: usize = 256;
/// A group that has this many bytes takes no more batches.
const GROUP_BYTES: usize = 8 << 20;
/// Times that a group is tried.
const ATTEMPTS: u32 = 5;
/// Times that it is tried when other servers were faster: only engines that do not let it wait for its turn need many.
const MOST_OUTRUN: u32 = 200;
const PAUSE: Duration = Duration::from_millis(50);

const LOCK: &str = "UPDATE rental.store SET commits = commits + 1 WHERE id = 1 RETURNING schema_version";
const REVISIONS: &str = "SELECT key, revision FROM rental.rows WHERE key = ANY($1)";
const PUT: &str = "INSERT INTO rental.rows (key, revision, value) \
                   SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[]) \
                   ON CONFLICT (key) DO UPDATE SET revision = excluded.revision, value = excluded.value";
const DELETE: &str = "DELETE FROM rental.rows WHERE key = ANY($1)";
const MARK: &str = "INSERT INTO rental.writers (id, last, seen) VALUES ($1, $2, now()) \
                    ON CONFLICT (id) DO UPDATE SET last = excluded.last, seen = excluded.seen";
const LAST: &str = "SELECT last FROM rental.writers WHERE id = $1";

pub(super) type Outcome = Result<Commit, StoreError>;

/// A batch that waits.
pub(super) struct Job {
    pub(super) batch: Batch,
    /// Set by the writer when it takes the job, or by the caller when it gives up: whoever is first.
    pub(super) claimed: Arc<AtomicBool>,
    pub(super) answer: oneshot::Sender<Outcome>,
    /// Given back when the job is done.
    pub(super) room: OwnedSemaphorePermit,
}

/// What others may know of the writer.
#[derive(Default)]
pub(super) struct Known {
    pub(super) commits: AtomicU64,
    pub(super) batches: AtomicU64,
    /// Whether the last commit failed.
    pub(super) troubled: AtomicBool,
}

pub(super) struct Writer {
    pub(super) pool: Pool,
    /// Which row of `rental.writers` is its own.
    pub(super) id: Vec<u8>,
    /// Number of the last attempt.
    pub(super) number: i64,
    pub(super) patience: Duration,
    pub(super) known: Arc<Known>,
}

/// How an attempt failed.
enum Failed {
    /// Nothing was written.
    Clean(Trouble),
    /// The commit may have happened. Whether it took its whole time: there is none left for another attempt then.
    Unclear(String, Vec<Commit>, bool),
}

impl From<Trouble> for Failed {
    fn from(trouble: Trouble) -> Self {
        Self::Clean(trouble)
    }
}

/// Runs until nobody can send jobs any more; what was sent is finished first.
pub(super) async fn run(mut writer: Writer, mut jobs: Receiver<Job>) {
    while let Some(first) = jobs.recv().await {
        let (mut group, mut bytes) = (Vec::new(), 0);
        let mut next = Some(first);
        while let Some(job) = next {
            bytes += job.room.num_permits();
            // Those whose callers have gone are left out: nobody would learn how they ended.
            if !job.answer.is_closed() && !job.claimed.swap(true, Ordering::AcqRel) {
                group.push(job);
            }
            next = if group.len() < GROUP && bytes < GROUP_BYTES { jobs.try_recv().ok() } else { None };
        }
        let batches: Vec<&Batch> = group.iter().map(|job| &job.batch).collect();
        let outcomes = writer.commit(&batches).await;
        for (job, outcome) in group.into_iter().zip(outcomes) {
            // A caller that went away does not undo what was committed for it.
            let _ = job.answer.send(outcome);
        }
    }
}

impl Writer {
    /// One outcome for each batch.
    async fn commit(&mut self, batches: &[&Batch]) -> Vec<Outcome> {
        if batches.is_empty() {
            return Vec::new();
        }
        match self.together(batches).await {
            // One of them is at fault; the others are none the worse for it.
            Err(Trouble::Fault(_)) if batches.len() > 1 => {
                let mut outcomes = Vec::with_capacity(batches.len());
                for batch in batches {
                    outcomes.extend(self.together(&[batch]).await.unwrap_or_else(|trouble| vec![Err(trouble.into())]));
                }
                outcomes
            }
            Err(trouble) => {
                self.known.troubled.store(!matches!(trouble, Trouble::Fault(_)), Ordering::Relaxed);
                batches.iter().map(|_| Err(trouble.clone().into())).collect()
            }
            Ok(outcomes) => outcomes,
        }
    }

    /// All of them in one transaction, tried again while that is safe.
    async fn together(&mut self, batches: &[&Batch]) -> Result<Vec<Outcome>, Trouble> {
        let mut last = Trouble::Refused("no attempt was made".into());
        let (mut attempt, mut outrun) = (0, 0);
        while attempt < ATTEMPTS && outrun < MOST_OUTRUN {
            let failed = match self.attempt(batches).await {
                Ok(commits) => return Ok(self.count(commits)),
                Err(failed) => failed,
            };
            last = match failed {
                Failed::Clean(trouble @ Trouble::Outrun(_)) => {
                    outrun += 1;
                    last = trouble;
                    continue;
                }
                Failed::Clean(trouble @ Trouble::Again(_)) => trouble,
                Failed::Clean(trouble) => return Err(trouble),
                Failed::Unclear(detail, commits, slow) => match self.resolve().await {
                    Ok(true) => return Ok(self.count(commits)),
                    Ok(false) if slow => return Err(Trouble::Refused(detail)),
                    Ok(false) => Trouble::Again(detail),
                    Err(why) => return Ok(self.unknown(commits, &format!("{detail}, and then: {why}"))),
                },
            };
            // The first time it is only a connection that a restart has cut.
            sleep(PAUSE * attempt).await;
            attempt += 1;
        }
        Err(last)
    }

    fn count(&self, commits: Vec<Commit>) -> Vec<Outcome> {
        let applied = commits.iter().filter(|commit| **commit == Commit::Applied).count();
        if applied > 0 {
            self.known.commits.fetch_add(1, Ordering::Relaxed);
            self.known.batches.fetch_add(applied as u64, Ordering::Relaxed);
        }
        self.known.troubled.store(false, Ordering::Relaxed);
        commits.into_iter().map(Ok).collect()
    }

    /// What was stale is so either way: it was read under the lock.
    fn unknown(&self, commits: Vec<Commit>, detail: &str) -> Vec<Outcome> {
        self.known.troubled.store(true, Ordering::Relaxed);
        let outcome = |commit| match commit {
            Commit::Applied => Err(StoreError::Unknown(detail.to_owned())),
            stale @ Commit::Stale(_) => Ok(stale),
        };
        commits.into_iter().map(outcome).collect()
    }

    async fn attempt(&mut self, batches: &[&Batch]) -> Result<Vec<Commit>, Failed> {
        let client = take(&self.pool).await?;
        let stored = match timeout(self.patience, begin(&client, &checked(batches))).await {
            Ok(Ok(stored)) => stored,
            Ok(Err(trouble)) => {
                self.end(client, &trouble).await;
                return Err(trouble.into());
            }
            Err(_) => {
                discard(client);
                return Err(Trouble::Refused("the database did not answer in time".into()).into());
            }
        };
        let decided = decide(batches, &stored);
        if decided.writes.is_empty() {
            roll_back(client, self.patience).await;
            return Ok(decided.outcomes);
        }
        self.number += 1;
        let failed = match timeout(self.patience, finish(&client, &decided, &self.id, self.number)).await {
            Ok(Ok(())) => return Ok(decided.outcomes),
            Ok(Err(Some(trouble))) => {
                self.end(client, &trouble).await;
                return Err(trouble.into());
            }
            Ok(Err(None)) => Failed::Unclear("the connection was lost during a commit".into(), decided.outcomes, false),
            Err(_) => Failed::Unclear("the database did not answer a commit in time".into(), decided.outcomes, true),
        };
        discard(client);
        Err(failed)
    }

    /// Keeps a connection whose transaction only lost a race.
    async fn end(&self, client: Client, trouble: &Trouble) {
        match trouble {
            Trouble::Outrun(_) => roll_back(client, self.patience).await,
            _ => discard(client),
        }
    }

    /// Whether the attempt whose connection was lost was committed; an error if that cannot be told in time.
    async fn resolve(&self) -> Result<bool, String> {
        let mut last = "no answer in time".to_owned();
        let looking = async {
            loop {
                match self.look().await {
                    Ok(number) => return number == Some(self.number),
                    Err(trouble) => last = trouble.detail(),
                }
                sleep(PAUSE * 2).await;
            }
        };
        let found = timeout(self.patience * 2, looking).await;
        found.map_err(|_| last)
    }

    /// The number of this server's last commit, once no other transaction writes.
    async fn look(&self) -> Result<Option<i64>, Trouble> {
        let client = take(&self.pool).await?;
        let asking = async {
            let (lock, last) = (client.prepare_cached(LOCK).await?, client.prepare_cached(LAST).await?);
            let (begun, locked, found, ended) = join4(
                client.batch_execute(BEGIN),
                client.query_opt(&lock, &[]),
                client.query_opt(&last, &[&self.id]),
                client.batch_execute("ROLLBACK"),
            )
            .await;
            begun?;
            locked?;
            let found = found?.map(|row| row.try_get::<_, i64>(0)).transpose()?;
            ended.map(|()| found)
        };
        match timeout(self.patience, asking).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => {
                discard(client);
                Err(Trouble::from(&error))
            }
            Err(_) => {
                discard(client);
                Err(Trouble::Again("the database did not answer in time".into()))
            }
        }
    }
}

const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// Gives a connection back without its transaction.
async fn roll_back(client: Client, patience: Duration) {
    if !matches!(timeout(patience, client.batch_execute("ROLLBACK")).await, Ok(Ok(()))) {
        discard(client);
    }
}

/// Takes the lock and reads the revisions of `keys`: one round trip.
async fn begin(client: &Client, keys: &[&[u8]]) -> Result<HashMap<Vec<u8>, Revision>, Trouble> {
    let read = async {
        let (lock, revisions) = (client.prepare_cached(LOCK).await?, client.prepare_cached(REVISIONS).await?);
        // They are sent in this order, without waiting for answers.
        let (begun, locked, found) =
            join3(client.batch_execute(BEGIN), client.query_opt(&lock, &[]), client.query(&revisions, &[&keys])).await;
        begun?;
        let version = locked?.map(|row| row.try_get::<_, i64>(0)).transpose()?;
        let mut stored = HashMap::with_capacity(keys.len());
        for row in found? {
            stored.insert(row.try_get(0)?, row.try_get::<_, i64>(1)?.cast_unsigned());
        }
        Ok::<_, Error>((version, stored))
    };
    let (version, stored) = read.await.map_err(|error| Trouble::from(&error))?;
    if version.map(i64::cast_unsigned) != Some(SCHEMA_VERSION) {
        return Err(Trouble::Refused(format!("the store has schema version {version:?} by now; start its new server")));
    }
    Ok(stored)
}

/// Writes and commits: one round trip. `None` when it cannot be told whether it happened.
async fn finish(client: &Client, decided: &Decided<'_>, id: &[u8], number: i64) -> Result<(), Option<Trouble>> {
    let (mut keys, mut revisions, mut values, mut gone) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (key, write) in &decided.writes {
        match write {
            Some((revision, value)) => {
                keys.push(Key::as_bytes(key));
                revisions.push(revision.cast_signed());
                values.push(value.as_ref());
            }
            None => gone.push(Key::as_bytes(key)),
        }
    }
    let statements = async {
        let put = client.prepare_cached(PUT).await?;
        Ok::<[Statement; 3], Error>([put, client.prepare_cached(DELETE).await?, client.prepare_cached(MARK).await?])
    };
    let [put, delete, mark] = statements.await.map_err(|error| Some(Trouble::from(&error)))?;
    let (put, delete, mark, committed) = join4(
        async { if keys.is_empty() { Ok(0) } else { client.execute(&put, &[&keys, &revisions, &values]).await } },
        async { if gone.is_empty() { Ok(0) } else { client.execute(&delete, &[&gone]).await } },
        client.execute(&mark, &[&id, &number]),
        client.batch_execute("COMMIT"),
    )
    .await;
    for written in [put, delete, mark] {
        match written {
            Ok(_) => {}
            // After an error of a statement its transaction cannot be committed any more. An error of the connection may
            // come from a proxy in between, which does not know what became of the rest.
            Err(error) => match error.code() {
                Some(code) if *code == SqlState::QUERY_CANCELED || !is_of_connection(code) => {
                    return Err(Some(Trouble::from(&error)));
                }
                _ => return Err(None),
            },
        }
    }
    committed.map_err(|error| match error.code().map(SqlState::code) {
        // Of its class the one that says that it is not known.
        Some("40003") => None,
        Some(code) if code.starts_with("40") => Some(Trouble::Outrun(describe(&error))),
        _ => None,
    })
}

fn is_of_connection(code: &SqlState) -> bool {
    code.code().starts_with("08") || code.code().starts_with("57")
}
