//! The writer thread: applies many batches in one transaction, with one durable commit.

use super::{
    batch,
    shared::Shared,
    source::Source,
    tables::{ROWS, snapshot, unavailable, without_panic},
    version,
    watched::{Failure, Watch},
};
use crate::store::{Absent, Batch, Commit, StoreError};
use redb::Database;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::Duration,
};
use tokio::sync::oneshot;

/// Most batches in one commit.
const GROUP: usize = 256;
/// After this time without a write, one more commit saves redb's allocator state. Without it redb scans the whole file when
/// it opens it after a crash. To save it in every commit would cost a quarter of the throughput.
const IDLE: Duration = Duration::from_millis(250);

/// How long writes are refused before the storage is asked again whether it has room.
const NO_ROOM_PAUSE: Duration = Duration::from_secs(1);

/// The outcome of one batch.
pub(super) type Outcome = Result<Commit, StoreError>;

/// A queued batch.
pub(super) struct Job {
    pub(super) batch: Batch,
    /// For a step of an upgrade: the version that the store must have, and its new version.
    pub(super) version_change: Option<(u64, u64)>,
    pub(super) answer: oneshot::Sender<Outcome>,
}

/// Why [`serve`] ended.
enum End {
    /// The queue is closed and empty.
    Closed,
    /// The storage has no room.
    NoRoom,
    /// The engine has failed permanently.
    Failed,
}

/// Serves the queue until it is closed and empty, or until the engine has failed; then closes the storage. When the storage
/// finds no room, opens it again.
pub(super) fn run(
    mut db: Database,
    mut source: Box<dyn Source>,
    shared: &Shared,
    jobs: &Receiver<Job>,
) -> Result<(), StoreError> {
    loop {
        let end = catch_unwind(AssertUnwindSafe(|| serve(&db, shared, jobs)));
        if end.is_err() {
            shared.fail("the writer panicked".into());
        }
        let closed = db.close().map_err(unavailable);
        if !matches!(end, Ok(End::NoRoom)) {
            if shared.failure.get().is_some() {
                source.note_failure();
            }
            return closed;
        }
        match open_again(source.as_mut(), shared, jobs) {
            Some(opened) => db = opened,
            None => return closed,
        }
        // Reads go on now. Writes wait until there is room.
        if !source.has_room() && wait_for_room(source.as_mut(), jobs) == Queue::Closed {
            return db.close().map_err(unavailable);
        }
        shared.refuse_writes(false);
    }
}

/// Opens the storage again; `None` when the engine has failed or is closed.
fn open_again(source: &mut dyn Source, shared: &Shared, jobs: &Receiver<Job>) -> Option<Database> {
    loop {
        let watch = Watch::default();
        let opened = source.open(Absent::Fail, &watch).and_then(|db| {
            shared.opened_again(&db, watch.clone())?;
            Ok(db)
        });
        match opened {
            Ok(db) => return Some(db),
            // The recovery writes, too. Until there is room for it, reads go on from a recovery in memory.
            Err(_) if watch.failure() == Some(Failure::NoRoom) => {
                let unchanged = source.open_unchanged().and_then(|db| {
                    shared.opened_again(&db, watch)?;
                    Ok(db)
                });
                let queue = wait_for_room(source, jobs);
                // Closes it, so that the next opening gets the lock.
                drop(unchanged);
                if queue == Queue::Closed {
                    return None;
                }
            }
            Err(error) => {
                shared.fail(format!("the storage found no room, and could not be opened again: {error}"));
                refuse_all(jobs, &StoreError::NoRoom);
                return None;
            }
        }
    }
}

/// Refuses batches until the storage has room, or the queue is closed.
fn wait_for_room(source: &mut dyn Source, jobs: &Receiver<Job>) -> Queue {
    loop {
        if refuse_for_a_while(jobs) == Queue::Closed {
            return Queue::Closed;
        }
        if source.has_room() {
            return Queue::Open;
        }
    }
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Queue {
    Open,
    Closed,
}

/// Waits for [`NO_ROOM_PAUSE`], and refuses the batches that were queued before writes were refused.
fn refuse_for_a_while(jobs: &Receiver<Job>) -> Queue {
    loop {
        match jobs.recv_timeout(NO_ROOM_PAUSE) {
            Ok(job) => drop(job.answer.send(Err(StoreError::NoRoom))),
            Err(RecvTimeoutError::Timeout) => return Queue::Open,
            Err(RecvTimeoutError::Disconnected) => return Queue::Closed,
        }
    }
}

fn refuse_all(jobs: &Receiver<Job>, error: &StoreError) {
    while let Ok(job) = jobs.try_recv() {
        let _ = job.answer.send(Err(error.clone()));
    }
}

/// Serves the queue on one opening of the storage.
fn serve(db: &Database, shared: &Shared, jobs: &Receiver<Job>) -> End {
    let mut idle = true;
    loop {
        let first =
            if idle { jobs.recv().map_err(|_| RecvTimeoutError::Disconnected) } else { jobs.recv_timeout(IDLE) };
        match first {
            Ok(first) => {
                let group = std::iter::once(first).chain(std::iter::from_fn(|| jobs.try_recv().ok())).take(GROUP);
                let (batches, answers): (Vec<_>, Vec<_>) =
                    group.map(|job| ((job.batch, job.version_change), job.answer)).unzip();
                answer(shared, without_panic(|| apply(db, shared, batches)), answers);
                idle = false;
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = save_allocator_state(db) {
                    failed(shared, &error);
                }
                idle = true;
            }
            Err(RecvTimeoutError::Disconnected) => return End::Closed,
        }
        // No further write may be acknowledged. Callers in the queue get the reason here, later ones from `enqueue`.
        match shared.takes_writes() {
            Ok(()) => {}
            Err(error) => {
                refuse_all(jobs, &error);
                return if error == StoreError::NoRoom { End::NoRoom } else { End::Failed };
            }
        }
    }
}

/// Refuses writes from now on: until there is room, or for good.
fn failed(shared: &Shared, error: &StoreError) {
    if shared.found_no_room() {
        shared.refuse_writes(true);
    } else {
        shared.fail(error.to_string());
    }
}

/// Applies all batches in one transaction. The checks of a batch see the writes of the batches before it.
fn apply(
    db: &Database,
    shared: &Shared,
    batches: Vec<(Batch, Option<(u64, u64)>)>,
) -> Result<Vec<Outcome>, StoreError> {
    let observer = shared.observer.get();
    observer.inspect(|observer| observer.begun());
    let mut transaction = db.begin_write().map_err(unavailable)?;
    transaction.set_two_phase_commit(true);
    let mut outcomes = Vec::with_capacity(batches.len());
    let tally = shared.tally.get();
    let mut changes = tally.map(|tally| tally.begin());
    {
        let mut rows = transaction.open_table(ROWS).map_err(unavailable)?;
        for (batch, version_change) in batches {
            if let Some((from, to)) = version_change {
                outcomes.push(Ok(version::change(&transaction, &mut rows, batch, from, to)?));
                continue;
            }
            match batch::apply(&mut rows, batch, changes.as_mut()) {
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
    observer.inspect(|observer| observer.committed(applied));
    if let (Some(tally), Some(changes)) = (tally, changes) {
        tally.add(changes);
    }
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
            failed(shared, &error);
            let no_room = shared.found_no_room() && matches!(error, StoreError::Unavailable(_));
            let error = if no_room { StoreError::NoRoom } else { error };
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
