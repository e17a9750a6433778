//! The writer thread: applies many batches in one transaction, with one durable commit.

use super::{
    batch,
    tables::{ROWS, Rows, snapshot, unavailable},
    version,
};
use crate::store::{Batch, Commit, StoreError};
use arc_swap::ArcSwap;
use redb::Database;
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::Duration,
};
use tokio::sync::{Notify, oneshot};

/// Most batches in one commit.
const GROUP: usize = 256;
/// After this time without a write, one more commit saves redb's allocator state. Without it redb scans the whole file when
/// it opens it after a crash. To save it in every commit would cost a quarter of the throughput.
const IDLE: Duration = Duration::from_millis(250);

/// The outcome of one batch.
pub(super) type Outcome = Result<Commit, StoreError>;

/// A queued batch.
pub(super) struct Job {
    pub(super) batch: Batch,
    /// For a step of an upgrade: the version that the store must have, and its new version.
    pub(super) version_change: Option<(u64, u64)>,
    pub(super) answer: oneshot::Sender<Outcome>,
}

/// State that the writer and the readers of one store share.
pub(super) struct Shared {
    /// The snapshot for readers: the rows after the last durable commit.
    pub(super) rows: ArcSwap<Rows>,
    /// The reason, when the engine has failed permanently.
    pub(super) failure: OnceLock<String>,
    pub(super) failed: Notify,
    pub(super) commits: AtomicU64,
    pub(super) batches: AtomicU64,
    /// The schema version of the file.
    pub(super) version: AtomicU64,
}

impl Shared {
    /// Fails the engine permanently: it acknowledges no further write.
    pub(super) fn fail(&self, reason: String) {
        let _ = self.failure.set(reason);
        self.failed.notify_waiters();
    }
}

/// Runs until the queue is closed and empty, or until the engine has failed.
pub(super) fn run(db: &Database, shared: &Shared, jobs: &Receiver<Job>) {
    let mut idle = true;
    loop {
        let first =
            if idle { jobs.recv().map_err(|_| RecvTimeoutError::Disconnected) } else { jobs.recv_timeout(IDLE) };
        match first {
            Ok(first) => {
                let group = std::iter::once(first).chain(std::iter::from_fn(|| jobs.try_recv().ok())).take(GROUP);
                let (batches, answers): (Vec<_>, Vec<_>) =
                    group.map(|job| ((job.batch, job.version_change), job.answer)).unzip();
                answer(shared, apply(db, shared, batches), answers);
                idle = false;
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = save_allocator_state(db) {
                    shared.fail(error.to_string());
                }
                idle = true;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if let Some(failure) = shared.failure.get() {
            // No further write may be acknowledged. Callers in the queue get the failure here, later ones from `enqueue`.
            while let Ok(job) = jobs.try_recv() {
                let _ = job.answer.send(Err(StoreError::Unavailable(failure.clone())));
            }
            return;
        }
    }
}

/// Applies all batches in one transaction. The checks of a batch see the writes of the batches before it.
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
        for (batch, version_change) in batches {
            if let Some((from, to)) = version_change {
                outcomes.push(Ok(version::change(&transaction, &mut rows, batch, from, to)?));
                continue;
            }
            match batch::apply(&mut rows, batch) {
                // A check found the damage before any write of its batch, so the other batches are not affected.
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
    // Published before any caller is answered, so a caller can read its own write.
    shared.rows.store(Arc::new(snapshot(db).map_err(|error| StoreError::Unknown(error.to_string()))?));
    shared.version.store(version::read(db).map_err(|error| StoreError::Unknown(error.to_string()))?, Ordering::Release);
    shared.commits.fetch_add(1, Ordering::Relaxed);
    shared.batches.fetch_add(applied as u64, Ordering::Relaxed);
    Ok(outcomes)
}

fn answer(
    shared: &Shared,
    outcome: Result<Vec<Outcome>, StoreError>,
    answers: Vec<oneshot::Sender<Result<Commit, StoreError>>>,
) {
    match outcome {
        Ok(outcomes) => {
            for (answer, outcome) in answers.into_iter().zip(outcomes) {
                // The caller may have dropped its future; its batch is committed anyway.
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

/// Makes an empty commit that saves the allocator state.
fn save_allocator_state(db: &Database) -> Result<(), StoreError> {
    let mut transaction = db.begin_write().map_err(unavailable)?;
    transaction.set_quick_repair(true);
    transaction.commit().map_err(unavailable)
}
