//! Writes: several batches in one transaction, one commit.
//!
//! **Why it is right.** Every transaction that writes first changes the one row of `rental.store`, on whichever server, and
//! holds that row until it has ended. So the transactions come one after the other. Each statement of `READ COMMITTED`
//! sees all that was committed when it began; those that look at the checked keys begin once the row is held, so they see
//! every transaction before this one, and none other can come between them and the commit: what was absent stays absent.
//! Engines that give a stronger level instead fail at that row with 40001 when another was faster, and the group is
//! decided anew. Readers take no part: each reads with one statement, which sees a transaction whole or not at all.
//!
//! **What it costs.** Two round trips: one for the turn, one for all that is written and the commit. Servers take turns, and
//! whatever has come while one waited for its turn shares it, up to [`GROUP`] batches. The group is written as its batches
//! expect the store to be (`group.rs`), with statements that fail where it is not; then nothing of it is written, and its
//! next attempt reads what is there before it decides.
//!
//! **When a connection is lost while a commit is under way** the same row tells: whoever holds it on another connection
//! knows that the lost transaction has ended, and this server's row in `rental.writers` says how.

use super::{
    group::{Expectations, Plan, checked, decide},
    link::{Client, Trouble, discard, take},
    turn::{Ending, Turn, last_number, lock},
    version::Expected,
};
use crate::store::{Batch, Commit, StoreError};
use deadpool_postgres::Pool;
use std::{
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

/// Most batches in one commit.
const GROUP: usize = 256;
/// A group that has this many bytes takes no more batches.
const GROUP_BYTES: usize = 8 << 20;
/// Times that a group is tried.
const ATTEMPTS: u32 = 5;
/// Times that it is tried when other servers were faster: only engines that do not let it wait for its turn need many.
const MOST_OUTRUN: u32 = 200;
const PAUSE: Duration = Duration::from_millis(50);

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
    /// The schema version that it writes.
    pub(super) version: Expected,
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

/// Runs until nobody can send jobs any more; what was sent is finished first.
pub(super) async fn run(mut writer: Writer, mut jobs: Receiver<Job>) {
    while let Some(first) = jobs.recv().await {
        let turn = writer.begin().await;
        // Whoever came while the first one waited in vain has its own time to wait.
        let most = if matches!(turn, Err(Trouble::Refused(_))) { 1 } else { GROUP };
        let group = gather(first, &mut jobs, most);
        let batches: Vec<&Batch> = group.iter().map(|job| &job.batch).collect();
        let outcomes = writer.commit(turn, &batches).await;
        for (job, outcome) in group.into_iter().zip(outcomes) {
            // A caller that went away does not undo what was committed for it.
            let _ = job.answer.send(outcome);
        }
    }
}

/// What waits by now, as much as goes into one commit and `most` at most.
fn gather(first: Job, jobs: &mut Receiver<Job>, most: usize) -> Vec<Job> {
    let (mut group, mut bytes, mut next) = (Vec::new(), 0, Some(first));
    while let Some(job) = next {
        bytes += job.room.num_permits();
        // Those whose callers have gone are left out: nobody would learn how they ended.
        if !job.answer.is_closed() && !job.claimed.swap(true, Ordering::AcqRel) {
            group.push(job);
        }
        next = if group.len() < most && bytes < GROUP_BYTES { jobs.try_recv().ok() } else { None };
    }
    group
}

impl Writer {
    /// One outcome for each batch.
    async fn commit(&mut self, turn: Result<Turn, Trouble>, batches: &[&Batch]) -> Vec<Outcome> {
        if batches.is_empty() {
            if let Ok(turn) = turn {
                roll_back(turn.client, self.patience).await;
            }
            return Vec::new();
        }
        match self.together(Some(turn), batches).await {
            // One of them is at fault; the others are none the worse for it.
            Err(Trouble::Fault(_)) if batches.len() > 1 => {
                let mut outcomes = Vec::with_capacity(batches.len());
                for batch in batches {
                    let alone = self.together(None, &[batch]).await;
                    outcomes.extend(alone.unwrap_or_else(|trouble| vec![Err(trouble.into())]));
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

    /// All of them in one transaction, tried again while that is safe. The first attempt may have its turn already.
    async fn together(
        &mut self,
        mut turn: Option<Result<Turn, Trouble>>,
        batches: &[&Batch],
    ) -> Result<Vec<Outcome>, Trouble> {
        let mut last = Trouble::Refused("no attempt was made".into());
        let (mut attempt, mut outrun, mut expected) = (0, 0, true);
        while attempt < ATTEMPTS && outrun < MOST_OUTRUN {
            let turn = match turn.take() {
                Some(turn) => turn,
                None => self.begin().await,
            };
            let tried = match turn {
                Ok(turn) if expected => self.as_expected(turn, batches).await,
                Ok(turn) => self.as_found(turn, batches).await,
                Err(trouble) => Err(Failed::Clean(trouble)),
            };
            let failed = match tried {
                Ok(commits) => return Ok(self.count(commits)),
                Err(failed) => failed,
            };
            last = match failed {
                Failed::Unexpected if expected => {
                    expected = false;
                    continue;
                }
                Failed::Unexpected => Trouble::Refused("the table refuses rows that it has no reason to refuse".into()),
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

    /// Of what is stale nothing was written either way; but nobody has confirmed that it is.
    fn unknown(&self, commits: Vec<Commit>, detail: &str) -> Vec<Outcome> {
        self.known.troubled.store(true, Ordering::Relaxed);
        let outcome = |commit| match commit {
            Commit::Applied => Err(StoreError::Unknown(detail.to_owned())),
            Commit::Stale(_) => Err(StoreError::Unavailable(detail.to_owned())),
        };
        commits.into_iter().map(outcome).collect()
    }

    /// Waits for this server's turn, and leaves its mark.
    async fn begin(&mut self) -> Result<Turn, Trouble> {
        let client = take(&self.pool).await?;
        self.number += 1;
        match timeout(self.patience, lock(&client, &self.id, self.number, self.version.load(Ordering::Acquire))).await {
            Ok(Ok(statements)) => Ok(Turn { client, statements }),
            Ok(Err(trouble)) => {
                self.end(client, &trouble).await;
                Err(trouble)
            }
            Err(_) => {
                discard(client);
                Err(unheard())
            }
        }
    }

    /// Writes what the batches come to if the store is as they expect.
    async fn as_expected(&self, turn: Turn, batches: &[&Batch]) -> Result<Vec<Commit>, Failed> {
        let expectations = Expectations::of(batches);
        let decided = decide(batches, |key| expectations.revision(key));
        let plan = Plan::expecting(&decided, &expectations);
        self.finish(turn, &plan, decided.outcomes).await
    }

    /// Reads what is there before it decides.
    async fn as_found(&self, turn: Turn, batches: &[&Batch]) -> Result<Vec<Commit>, Failed> {
        let found = match timeout(self.patience, turn.revisions(&checked(batches))).await {
            Ok(Ok(found)) => found,
            Ok(Err(trouble)) => {
                self.end(turn.client, &trouble).await;
                return Err(Failed::Clean(trouble));
            }
            Err(_) => {
                discard(turn.client);
                return Err(Failed::Clean(unheard()));
            }
        };
        let decided = decide(batches, |key| found.get(key.as_bytes()).copied());
        let plan = Plan::found(&decided);
        self.finish(turn, &plan, decided.outcomes).await
    }

    /// Sends what is planned, with the commit.
    async fn finish(&self, turn: Turn, plan: &Plan<'_>, outcomes: Vec<Commit>) -> Result<Vec<Commit>, Failed> {
        let trouble = match timeout(self.patience, turn.finish(plan)).await {
            Ok(Ok(())) => return Ok(outcomes),
            // What was sent last has ended the transaction.
            Ok(Err(Ending::Unexpected)) => return Err(Failed::Unexpected),
            Ok(Err(Ending::Clean(trouble))) => {
                self.end(turn.client, &trouble).await;
                return Err(Failed::Clean(trouble));
            }
            Ok(Err(Ending::Unclear(trouble))) => trouble,
            // It took its whole time: there is none left for another attempt.
            Err(_) => Trouble::Refused("the database did not answer a commit in time".into()),
        };
        discard(turn.client);
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
        match timeout(self.patience, last_number(&client, &self.id)).await {
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

/// Gives a connection back without its transaction.
async fn roll_back(client: Client, patience: Duration) {
    if !matches!(timeout(patience, client.batch_execute("ROLLBACK")).await, Ok(Ok(()))) {
        discard(client);
    }
}

fn unheard() -> Trouble {
    Trouble::Refused("the database did not answer in time".into())
}
