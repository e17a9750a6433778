//! Writes: several batches in one transaction, one commit.
//!
//! **Why it is right.** Every transaction that writes first changes the one row of `rental.store`, on whichever server, and
//! holds that row until it has ended. So the transactions come one after the other. Each statement of `READ COMMITTED`
//! sees all that was committed when it began; those that look at the checked keys begin once the row is held, so they see
//! every transaction before this one, and none other can come between them and the commit: what was absent stays absent.
//! Engines that give a stronger level instead fail at that row with 40001 when another was faster, and the group is
//! decided anew. Readers take no part: each reads with one statement, which sees a transaction whole or not at all.
//!
//! **What it costs.** A group is written as its batches expect the store to be (`group.rs`), in one round trip, and
//! committed in a second one if the database found it so. If not, it is rolled back, and its next attempt reads what is
//! there first. Servers take turns; a turn takes up to [`GROUP`] batches, so what waits meanwhile shares the next one.
//! A second connection of one server makes more turns that are smaller: measured, it is slower.
//!
//! **When a connection is lost while a commit is under way** the same row tells: whoever holds it on another connection
//! knows that the lost transaction has ended, and this server's row in `rental.writers` says how.

use super::{
    group::{Expectations, Expected, Plan, Rows, checked, decide},
    link::{Client, Trouble, describe, discard, take},
};
use crate::store::{Batch, Commit, Revision, SCHEMA_VERSION, StoreError};
use deadpool_postgres::Pool;
use futures_util::future::{join, join3, join4};
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
    time::{error::Elapsed, sleep, timeout},
};
use tokio_postgres::{Error, Statement, error::SqlState, types::ToSql};

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
// What returns nothing is no table for CockroachDB, hence RETURNING.
const LOCK_AND_MARK: &str = "WITH mark AS (INSERT INTO rental.writers (id, last, seen) VALUES ($1, $2, now()) \
                             ON CONFLICT (id) DO UPDATE SET last = excluded.last, seen = excluded.seen RETURNING last) \
                             UPDATE rental.store SET commits = commits + 1 WHERE id = 1 RETURNING schema_version";
const REVISIONS: &str = "SELECT key, revision FROM rental.rows WHERE key = ANY($1)";
const NEW: &str = "INSERT INTO rental.rows (key, revision, value) \
                   SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[])";
const CHANGED: &str = "UPDATE rental.rows r SET revision = u.revision, value = u.value \
                       FROM unnest($1::bytea[], $2::bigint[], $3::bytea[], $4::bigint[]) u (key, revision, value, before) \
                       WHERE r.key = u.key AND r.revision = u.before";
const OTHER: &str = "INSERT INTO rental.rows (key, revision, value) \
                     SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[]) \
                     ON CONFLICT (key) DO UPDATE SET revision = excluded.revision, value = excluded.value";
const GONE: &str = "DELETE FROM rental.rows WHERE key = ANY($1)";
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
    /// Nothing was written, because the store is not as the batches expect.
    Unexpected,
    /// Nothing was written.
    Clean(Trouble),
    /// The commit may have happened; if it has not, this is what became of the attempt.
    Unclear(Trouble, Vec<Commit>),
}

/// How a commit that was sent did not succeed.
enum Ending {
    /// Its transaction failed before it.
    Clean(Trouble),
    /// It may have happened all the same.
    Unclear(Trouble),
}

impl From<Trouble> for Failed {
    fn from(trouble: Trouble) -> Self {
        Self::Clean(trouble)
    }
}

/// Runs until nobody can send jobs any more; what was sent is finished first.
pub(super) async fn run(mut writer: Writer, mut jobs: Receiver<Job>) {
    while let Some(group) = next(&mut jobs).await {
        let batches: Vec<&Batch> = group.iter().map(|job| &job.batch).collect();
        let outcomes = writer.commit(&batches).await;
        for (job, outcome) in group.into_iter().zip(outcomes) {
            // A caller that went away does not undo what was committed for it.
            let _ = job.answer.send(outcome);
        }
    }
}

/// What waits, as much as goes into one commit; waits for the first.
async fn next(jobs: &mut Receiver<Job>) -> Option<Vec<Job>> {
    let mut next = Some(jobs.recv().await?);
    let (mut group, mut bytes) = (Vec::new(), 0);
    while let Some(job) = next {
        bytes += job.room.num_permits();
        // Those whose callers have gone are left out: nobody would learn how they ended.
        if !job.answer.is_closed() && !job.claimed.swap(true, Ordering::AcqRel) {
            group.push(job);
        }
        next = if group.len() < GROUP && bytes < GROUP_BYTES { jobs.try_recv().ok() } else { None };
    }
    Some(group)
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
        let (mut attempt, mut outrun, mut expected) = (0, 0, true);
        while attempt < ATTEMPTS && outrun < MOST_OUTRUN {
            let tried = if expected { self.as_expected(batches).await } else { self.as_found(batches).await };
            let failed = match tried {
                Ok(commits) => return Ok(self.count(commits)),
                Err(failed) => failed,
            };
            last = match failed {
                Failed::Unexpected => {
                    expected = false;
                    continue;
                }
                Failed::Clean(trouble) => trouble,
                Failed::Unclear(trouble, commits) => match self.resolve().await {
                    Ok(true) => return Ok(self.count(commits)),
                    Ok(false) => trouble,
                    Err(why) => return Ok(self.unknown(commits, &format!("{}, and then: {why}", trouble.detail()))),
                },
            };
            match &last {
                Trouble::Outrun(_) => outrun += 1,
                Trouble::Again(_) => {
                    // The first time it is only a connection that a restart has cut.
                    sleep(PAUSE * attempt).await;
                    attempt += 1;
                }
                Trouble::Refused(_) | Trouble::Fault(_) => return Err(last),
            }
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

    /// Writes what the batches come to if the store is as they expect, and commits if it was.
    async fn as_expected(&mut self, batches: &[&Batch]) -> Result<Vec<Commit>, Failed> {
        let expectations = Expectations::of(batches);
        let decided = decide(batches, |key| expectations.revision(key));
        let plan = Plan::of(&decided, &expectations);
        let guards: Vec<&[u8]> = plan.guards.keys().copied().collect();
        let client = take(&self.pool).await?;
        self.number += 1;
        let written = async {
            let statements = Statements::prepare(&client).await?;
            let mark = (self.id.as_slice(), self.number);
            let (begun, written) =
                join(begin(&client, &statements, mark, &guards), write(&client, &statements, &plan)).await;
            let found = begun?;
            let written = written.map_err(|error| Trouble::from(&error))?;
            let as_expected = |(key, expected): (&&[u8], &Expected)| expected.holds(found.get(*key).copied());
            Ok::<bool, Trouble>(written && plan.guards.iter().all(as_expected))
        };
        match timeout(self.patience, written).await {
            Ok(Ok(true)) if !plan.is_empty() => {
                let ended = timeout(self.patience, commit(&client)).await;
                self.ended(client, ended, decided.outcomes).await
            }
            Ok(Ok(true)) => {
                roll_back(client, self.patience).await;
                Ok(decided.outcomes)
            }
            Ok(Ok(false)) => {
                roll_back(client, self.patience).await;
                Err(Failed::Unexpected)
            }
            other => Err(self.given_up(client, other.map(|ended| ended.map(drop))).await),
        }
    }

    /// Reads what is there before it decides.
    async fn as_found(&mut self, batches: &[&Batch]) -> Result<Vec<Commit>, Failed> {
        let client = take(&self.pool).await?;
        self.number += 1;
        let begun = async {
            let statements = Statements::prepare(&client).await?;
            let found = begin(&client, &statements, (&self.id, self.number), &checked(batches)).await?;
            Ok::<_, Trouble>((statements, found))
        };
        let (statements, found) = match timeout(self.patience, begun).await {
            Ok(Ok(begun)) => begun,
            other => return Err(self.given_up(client, other.map(|ended| ended.map(drop))).await),
        };
        let decided = decide(batches, |key| found.get(key.as_bytes()).copied());
        let plan = Plan::of(&decided, &Expectations::default());
        if plan.is_empty() {
            roll_back(client, self.patience).await;
            return Ok(decided.outcomes);
        }
        let ended = timeout(self.patience, finish(&client, &statements, &plan)).await;
        self.ended(client, ended, decided.outcomes).await
    }

    /// An attempt that ended before its commit was sent.
    async fn given_up(&self, client: Client, ended: Result<Result<(), Trouble>, Elapsed>) -> Failed {
        let trouble = match ended {
            Ok(Err(trouble)) => trouble,
            _ => Trouble::Refused("the database did not answer in time".into()),
        };
        self.end(client, &trouble).await;
        Failed::Clean(trouble)
    }

    /// An attempt whose commit was sent.
    async fn ended(
        &self,
        client: Client,
        ended: Result<Result<(), Ending>, Elapsed>,
        outcomes: Vec<Commit>,
    ) -> Result<Vec<Commit>, Failed> {
        let trouble = match ended {
            Ok(Ok(())) => return Ok(outcomes),
            Ok(Err(Ending::Clean(trouble))) => {
                self.end(client, &trouble).await;
                return Err(Failed::Clean(trouble));
            }
            Ok(Err(Ending::Unclear(trouble))) => trouble,
            // It took its whole time: there is none left for another attempt.
            Err(_) => Trouble::Refused("the database did not answer a commit in time".into()),
        };
        discard(client);
        Err(Failed::Unclear(trouble, outcomes))
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

/// The statements of a group, prepared on its connection.
struct Statements {
    lock: Statement,
    revisions: Statement,
    new: Statement,
    changed: Statement,
    other: Statement,
    gone: Statement,
}

impl Statements {
    async fn prepare(client: &Client) -> Result<Self, Trouble> {
        let all = async {
            Ok(Self {
                lock: client.prepare_cached(LOCK_AND_MARK).await?,
                revisions: client.prepare_cached(REVISIONS).await?,
                new: client.prepare_cached(NEW).await?,
                changed: client.prepare_cached(CHANGED).await?,
                other: client.prepare_cached(OTHER).await?,
                gone: client.prepare_cached(GONE).await?,
            })
        };
        all.await.map_err(|error: Error| Trouble::from(&error))
    }
}

/// Takes the lock, leaves the mark and reads the revisions of `keys`: one round trip, whose statements are sent in this
/// order, without waiting for answers.
async fn begin(
    client: &Client,
    statements: &Statements,
    (id, number): (&[u8], i64),
    keys: &[&[u8]],
) -> Result<HashMap<Vec<u8>, Revision>, Trouble> {
    let read = async {
        let mark: [&(dyn ToSql + Sync); 2] = [&id, &number];
        let (begun, locked, found) =
            join3(client.batch_execute(BEGIN), client.query_opt(&statements.lock, &mark), async {
                if keys.is_empty() { Ok(Vec::new()) } else { client.query(&statements.revisions, &[&keys]).await }
            })
            .await;
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

/// Sends what `plan` writes: one round trip. Tells whether the rows that change were all as they were expected.
async fn write(client: &Client, statements: &Statements, plan: &Plan<'_>) -> Result<bool, Error> {
    let rows = async |statement: &Statement, rows: &Rows<'_>| {
        if rows.keys.is_empty() {
            Ok(0)
        } else {
            client.execute(statement, &[&rows.keys, &rows.revisions, &rows.values]).await
        }
    };
    let Rows { keys, revisions, values } = &plan.changed;
    let (new, changed, other, gone) = join4(
        rows(&statements.new, &plan.new),
        async {
            if keys.is_empty() {
                Ok(0)
            } else {
                client.execute(&statements.changed, &[keys, revisions, values, &plan.before]).await
            }
        },
        rows(&statements.other, &plan.other),
        async { if plan.gone.is_empty() { Ok(0) } else { client.execute(&statements.gone, &[&plan.gone]).await } },
    )
    .await;
    if matches!(&new, Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION)) {
        return Ok(false);
    }
    // The first error is the reason of those after it.
    new?;
    let changed = changed?;
    other?;
    gone?;
    Ok(changed == keys.len() as u64)
}

/// Writes and commits: one round trip.
async fn finish(client: &Client, statements: &Statements, plan: &Plan<'_>) -> Result<(), Ending> {
    let (written, committed) = join(write(client, statements, plan), commit(client)).await;
    match written {
        Ok(_) => committed,
        // After an error of a statement its transaction cannot be committed any more. An error of the connection may
        // come from a proxy in between, which does not know what became of the rest.
        Err(error) => Err(match error.code() {
            Some(code) if *code == SqlState::QUERY_CANCELED || !is_of_connection(code) => {
                Ending::Clean(Trouble::from(&error))
            }
            _ => unanswered(&error),
        }),
    }
}

/// Whatever is answered but success, it is looked up what happened: engines differ in what they call certain.
async fn commit(client: &Client) -> Result<(), Ending> {
    client.batch_execute("COMMIT").await.map_err(|error| match Trouble::from(&error) {
        outrun @ Trouble::Outrun(_) => Ending::Unclear(outrun),
        _ => unanswered(&error),
    })
}

fn unanswered(error: &Error) -> Ending {
    Ending::Unclear(Trouble::Again(format!("a commit was not answered: {}", describe(error))))
}

fn is_of_connection(code: &SqlState) -> bool {
    code.code().starts_with("08") || code.code().starts_with("57")
}
