//! The writer task: commits several batches in one transaction.
//!
//! **Correctness.** Every transaction that writes, on any server, first changes the row of `rental.store` and so locks it
//! until its end. So these transactions run one after the other. In `READ COMMITTED` a statement sees everything that was
//! committed before it began. The statements that check keys begin after the lock was taken, so they see all earlier
//! transactions, and no other transaction can change a checked key before the commit. Databases with a stronger isolation
//! level may fail at this row with 40001; then the group is tried again. Reads need no lock: each is one statement, which
//! sees all writes of a transaction or none.
//!
//! **Cost.** Two round trips: one for the lock, one for the writes and the commit. Batches that arrive while a server waits
//! for the lock share its transaction, up to [`GROUP`] batches. The first attempt of a group assumes that all its checks
//! hold (`group.rs`), with statements that fail when they do not. Then nothing is written, and the next attempt reads the
//! checked keys before it decides.
//!
//! **When a connection is lost during a commit**, the server takes the lock on another connection. Then the lost
//! transaction has ended, and the server's row in `rental.writers` tells whether it was committed.

use super::{
    group::{Expectations, Plan, checked, decide},
    session::{Client, QueryError, discard, take},
    transaction::{CommitError, Transaction, last_commit_number, lock},
    version::Expected,
};
use crate::store::{Batch, Commit, CommitObserver, StoreError, Tally};
use deadpool_postgres::Pool;
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc::Receiver, oneshot},
    time::{sleep, timeout},
};

/// Most batches in one commit.
const GROUP: usize = 256;
/// A group with this many bytes takes no more batches.
const GROUP_BYTES: usize = 8 << 20;
/// How often a group is tried when its connection is lost.
const ATTEMPTS: u32 = 5;
/// How often a group is tried after serialization conflicts. Databases that wait for a lock instead have few of them.
const MOST_CONFLICTS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(50);

pub(super) type Outcome = Result<Commit, StoreError>;

/// A queued batch.
pub(super) struct Job {
    pub(super) batch: Batch,
    /// Set by the writer when it takes the job, or by the caller when it gives up. Only the first of them succeeds.
    pub(super) claimed: Arc<AtomicBool>,
    pub(super) answer: oneshot::Sender<Outcome>,
    /// The job's share of the queue's bytes, released when the job is dropped.
    pub(super) room: OwnedSemaphorePermit,
}

/// State that the writer and the engine share.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) commits: AtomicU64,
    pub(super) batches: AtomicU64,
    /// Counts the changes of committed batches, if it is set.
    pub(super) tally: OnceLock<Arc<Tally>>,
    /// Measures the commits, if it is set.
    pub(super) observer: OnceLock<Arc<dyn CommitObserver>>,
    /// Whether the last commit failed.
    pub(super) commit_failed: AtomicBool,
}

pub(super) struct Writer {
    pub(super) pool: Pool,
    /// The key of this server's row in `rental.writers`.
    pub(super) id: Vec<u8>,
    /// The statement that begins a transaction.
    pub(super) begin: &'static str,
    /// Number of the last transaction that was begun.
    pub(super) number: i64,
    pub(super) patience: Duration,
    pub(super) shared: Arc<Shared>,
    /// The schema version that it writes.
    pub(super) version: Expected,
}

/// Why an attempt to commit a group failed.
enum AttemptError {
    /// Nothing was written, because the store is not as the batches expect.
    Mismatch,
    /// Nothing was written, because a statement or the connection failed.
    NotCommitted(QueryError),
    /// The transaction may have been committed. Contains the outcomes in this case.
    Unknown(QueryError, Vec<Commit>),
}

/// Runs until the queue is closed and empty.
pub(super) async fn run(mut writer: Writer, mut jobs: Receiver<Job>) {
    while let Some(first) = jobs.recv().await {
        writer.shared.observer.get().inspect(|observer| observer.begun());
        let transaction = writer.begin().await;
        // When the database is not available, only the first job fails; the others get an attempt of their own.
        let most = if matches!(transaction, Err(QueryError::Unavailable(_))) { 1 } else { GROUP };
        let group = gather(first, &mut jobs, most);
        let batches: Vec<&Batch> = group.iter().map(|job| &job.batch).collect();
        let outcomes = writer.commit(transaction, &batches).await;
        for (job, outcome) in group.into_iter().zip(outcomes) {
            // The caller may have dropped its future; its batch is committed anyway.
            let _ = job.answer.send(outcome);
        }
    }
}

/// Takes queued jobs for one commit: at most `most`, and at most [`GROUP_BYTES`] before the last one.
fn gather(first: Job, jobs: &mut Receiver<Job>, most: usize) -> Vec<Job> {
    let (mut group, mut bytes, mut next) = (Vec::new(), 0, Some(first));
    while let Some(job) = next {
        bytes += job.room.num_permits();
        // Skips jobs whose callers gave up or dropped their futures.
        if !job.answer.is_closed() && !job.claimed.swap(true, Ordering::AcqRel) {
            group.push(job);
        }
        next = if group.len() < most && bytes < GROUP_BYTES { jobs.try_recv().ok() } else { None };
    }
    group
}

impl Writer {
    /// Commits the batches; returns one outcome for each.
    async fn commit(&mut self, transaction: Result<Transaction, QueryError>, batches: &[&Batch]) -> Vec<Outcome> {
        if batches.is_empty() {
            if let Ok(transaction) = transaction {
                roll_back(transaction.client, self.patience).await;
            }
            return Vec::new();
        }
        match self.commit_together(Some(transaction), batches).await {
            // One of the batches has invalid values. Each is committed alone, so that the others succeed.
            Err(QueryError::Invalid(_)) if batches.len() > 1 => {
                let mut outcomes = Vec::with_capacity(batches.len());
                for batch in batches {
                    let alone = self.commit_together(None, &[batch]).await;
                    outcomes.extend(alone.unwrap_or_else(|failure| vec![Err(failure.into())]));
                }
                outcomes
            }
            Err(failure) => {
                self.shared.commit_failed.store(!matches!(failure, QueryError::Invalid(_)), Ordering::Relaxed);
                batches.iter().map(|_| Err(failure.clone().into())).collect()
            }
            Ok(outcomes) => outcomes,
        }
    }

    /// Commits the batches in one transaction and retries while that is safe. The first attempt uses `transaction`, if given.
    async fn commit_together(
        &mut self,
        mut transaction: Option<Result<Transaction, QueryError>>,
        batches: &[&Batch],
    ) -> Result<Vec<Outcome>, QueryError> {
        let mut last = QueryError::Unavailable("no attempt was made".into());
        let (mut attempt, mut conflicts, mut expected) = (0, 0, true);
        while attempt < ATTEMPTS && conflicts < MOST_CONFLICTS {
            let transaction = match transaction.take() {
                Some(transaction) => transaction,
                None => self.begin().await,
            };
            let tried = match transaction {
                Ok(transaction) if expected => self.write_as_expected(transaction, batches).await,
                Ok(transaction) => self.read_then_write(transaction, batches).await,
                Err(failure) => Err(AttemptError::NotCommitted(failure)),
            };
            let failed = match tried {
                Ok(commits) => return Ok(self.count(commits)),
                Err(failed) => failed,
            };
            last = match failed {
                AttemptError::Mismatch if expected => {
                    expected = false;
                    continue;
                }
                AttemptError::Mismatch => {
                    QueryError::Unavailable("the table refuses rows that it has no reason to refuse".into())
                }
                AttemptError::NotCommitted(failure) => failure,
                AttemptError::Unknown(failure, commits) => match self.resolve().await {
                    Ok(true) => return Ok(self.count(commits)),
                    Ok(false) => failure,
                    Err(why) => return Ok(self.unknown(commits, &format!("{}, and then: {why}", failure.detail()))),
                },
            };
            match &last {
                QueryError::Conflict(_) => conflicts += 1,
                QueryError::Retry(_) => {
                    // The first retry does not wait: a restart of the database often closed the pooled connection.
                    sleep(PAUSE * attempt).await;
                    attempt += 1;
                }
                QueryError::Unavailable(_) | QueryError::Invalid(_) => return Err(last),
            }
        }
        Err(last)
    }

    fn count(&self, commits: Vec<Commit>) -> Vec<Outcome> {
        let applied = commits.iter().filter(|commit| **commit == Commit::Applied).count();
        if applied > 0 {
            self.shared.commits.fetch_add(1, Ordering::Relaxed);
            self.shared.batches.fetch_add(applied as u64, Ordering::Relaxed);
            self.shared.observer.get().inspect(|observer| observer.committed(applied));
        }
        self.shared.commit_failed.store(false, Ordering::Relaxed);
        commits.into_iter().map(Ok).collect()
    }

    /// The outcomes when the writer could not find out whether the transaction was committed. A stale batch wrote nothing in
    /// either case, but its staleness is not confirmed.
    fn unknown(&self, commits: Vec<Commit>, detail: &str) -> Vec<Outcome> {
        self.shared.commit_failed.store(true, Ordering::Relaxed);
        let outcome = |commit| match commit {
            Commit::Applied => Err(StoreError::Unknown(detail.to_owned())),
            Commit::Stale(_) => Err(StoreError::Unavailable(detail.to_owned())),
        };
        commits.into_iter().map(outcome).collect()
    }

    /// Begins a transaction with the next number; waits for the lock.
    async fn begin(&mut self) -> Result<Transaction, QueryError> {
        let client = take(&self.pool).await?;
        self.number += 1;
        let version = self.version.load(Ordering::Acquire);
        match timeout(self.patience, lock(&client, self.begin, &self.id, self.number, version)).await {
            Ok(Ok(statements)) => Ok(Transaction { client, statements }),
            Ok(Err(failure)) => {
                self.release(client, &failure).await;
                Err(failure)
            }
            Err(_) => {
                discard(client);
                Err(timed_out())
            }
        }
    }

    /// Decides on the assumption that all checks hold, writes, and commits.
    async fn write_as_expected(
        &self,
        transaction: Transaction,
        batches: &[&Batch],
    ) -> Result<Vec<Commit>, AttemptError> {
        let expectations = Expectations::of(batches);
        let decided = decide(batches, |key| expectations.revision(key));
        let plan = Plan::expecting(&decided, &expectations);
        self.finish(transaction, &plan, decided.outcomes).await
    }

    /// Reads the checked keys, then decides, writes, and commits.
    async fn read_then_write(&self, transaction: Transaction, batches: &[&Batch]) -> Result<Vec<Commit>, AttemptError> {
        let found = match timeout(self.patience, transaction.revisions(&checked(batches))).await {
            Ok(Ok(found)) => found,
            Ok(Err(failure)) => {
                self.release(transaction.client, &failure).await;
                return Err(AttemptError::NotCommitted(failure));
            }
            Err(_) => {
                discard(transaction.client);
                return Err(AttemptError::NotCommitted(timed_out()));
            }
        };
        let decided = decide(batches, |key| found.get(key.as_bytes()).copied());
        let plan = Plan::found(&decided);
        self.finish(transaction, &plan, decided.outcomes).await
    }

    /// Sends the plan and the commit, and releases the connection.
    async fn finish(
        &self,
        transaction: Transaction,
        plan: &Plan<'_>,
        outcomes: Vec<Commit>,
    ) -> Result<Vec<Commit>, AttemptError> {
        let tally = self.shared.tally.get();
        let changes = tally.map(|tally| tally.begin());
        let failure = match timeout(self.patience, transaction.finish(plan, changes)).await {
            Ok(Ok(changes)) => {
                if let (Some(tally), Some(changes)) = (tally, changes) {
                    tally.add(changes);
                }
                return Ok(outcomes);
            }
            // The COMMIT that was sent after the failed statement has ended the transaction.
            Ok(Err(CommitError::Mismatch)) => return Err(AttemptError::Mismatch),
            Ok(Err(CommitError::NotCommitted(failure))) => {
                self.release(transaction.client, &failure).await;
                return Err(AttemptError::NotCommitted(failure));
            }
            Ok(Err(CommitError::Unknown(failure))) => failure,
            // The commit timed out, so no time is left for a retry.
            Err(_) => QueryError::Unavailable("the database did not answer a commit in time".into()),
        };
        discard(transaction.client);
        Err(AttemptError::Unknown(failure, outcomes))
    }

    /// Rolls back and keeps the connection after a serialization conflict; closes it after any other error.
    async fn release(&self, client: Client, failure: &QueryError) {
        match failure {
            QueryError::Conflict(_) => roll_back(client, self.patience).await,
            _ => discard(client),
        }
    }

    /// Finds out whether the last transaction was committed; an error when the database does not respond in time.
    async fn resolve(&self) -> Result<bool, String> {
        let mut last = "no answer in time".to_owned();
        let looking = async {
            loop {
                match self.last_commit().await {
                    Ok(number) => return number == Some(self.number),
                    Err(failure) => last = failure.detail(),
                }
                sleep(PAUSE * 2).await;
            }
        };
        let found = timeout(self.patience * 2, looking).await;
        found.map_err(|_| last)
    }

    /// Reads the number of this server's last commit, when no other transaction is open.
    async fn last_commit(&self) -> Result<Option<i64>, QueryError> {
        let client = take(&self.pool).await?;
        match timeout(self.patience, last_commit_number(&client, &self.id)).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => {
                discard(client);
                Err(QueryError::from(&error))
            }
            Err(_) => {
                discard(client);
                Err(QueryError::Retry("the database did not answer in time".into()))
            }
        }
    }
}

/// Rolls back and returns the connection to the pool; closes it when the database does not respond.
async fn roll_back(client: Client, patience: Duration) {
    if !matches!(timeout(patience, client.batch_execute("ROLLBACK")).await, Ok(Ok(()))) {
        discard(client);
    }
}

fn timed_out() -> QueryError {
    QueryError::Unavailable("the database did not answer in time".into())
}
