//! Reads of single rows. Requests of many callers share a statement, as batches share a commit.
//!
//! A statement costs the database far more than one more row in it. So a request starts a worker at once if fewer than
//! [`WORKERS`] run. Otherwise it is queued, and the next worker that completes its statement reads all queued requests
//! together. Each request is still read from one snapshot, which begins after the call, so it sees every acknowledged
//! commit.

use super::{
    connections::{Connections, unanswered},
    record::record,
    version::guard,
};
use crate::store::{Key, Record, StoreError};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{sync::oneshot, time::timeout};

/// Most statements at the same time. Fewer statements are larger: less work for the database, longer waits for callers.
const WORKERS: usize = 2;
/// A statement with this many keys takes no more requests.
const MOST_KEYS: usize = 256;
/// Most queued requests. When the queue is full, a read fails with [`StoreError::Busy`].
const QUEUE: usize = 4096;

const GET: &str = concat!("SELECT key, revision, value FROM rental.rows WHERE key = ANY($1) AND ", guard!(2));

type Found = Result<Vec<Option<Record>>, StoreError>;

/// Shares statements between callers.
pub(super) struct Reader {
    connections: Connections,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Request>,
    /// Number of running workers.
    workers: usize,
}

/// A queued read.
struct Request {
    keys: Vec<Key>,
    answer: oneshot::Sender<Found>,
}

impl Reader {
    pub(super) fn new(connections: Connections) -> Arc<Self> {
        Arc::new(Self { connections, state: Mutex::default() })
    }

    /// Reads these rows, with the results in the order of `keys`.
    pub(super) async fn get(self: &Arc<Self>, keys: &[Key]) -> Found {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let (answer, found) = oneshot::channel();
        self.queue(Request { keys: keys.to_vec(), answer })?;
        // Twice the time-out: for the worker's statement before, and for the one of this request.
        match timeout(self.connections.patience * 2, found).await {
            Ok(Ok(found)) => found,
            Ok(Err(_)) | Err(_) => Err(unanswered()),
        }
    }

    fn queue(self: &Arc<Self>, request: Request) -> Result<(), StoreError> {
        let mut state = self.lock();
        if state.waiting.len() >= QUEUE {
            return Err(StoreError::Busy);
        }
        state.waiting.push_back(request);
        if state.workers < WORKERS {
            state.workers += 1;
            tokio::spawn(Worker { reader: Arc::clone(self), counted: true }.run());
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task that reads queued requests until the queue is empty.
struct Worker {
    reader: Arc<Reader>,
    /// Whether [`State::workers`] counts this worker.
    counted: bool,
}

impl Worker {
    async fn run(mut self) {
        while let Some(group) = self.next() {
            let found = self.find(&group).await;
            for Request { keys, answer } in group {
                let pick = |rows: &Vec<Record>| {
                    let find =
                        |key: &Key| rows.binary_search_by(|row| row.key.cmp(key)).ok().map(|at| rows[at].clone());
                    keys.iter().map(find).collect()
                };
                // The caller may have dropped its future.
                let _ = answer.send(found.as_ref().map(pick).map_err(Clone::clone));
            }
        }
    }

    /// Takes the next requests from the queue. If it is empty, the worker stops counting as running under the same lock,
    /// so that the next request starts another one.
    fn next(&mut self) -> Option<Vec<Request>> {
        let mut state = self.reader.lock();
        let (mut group, mut keys) = (Vec::new(), 0);
        while keys < MOST_KEYS
            && let Some(request) = state.waiting.pop_front()
        {
            // Skips requests whose callers dropped their futures.
            if !request.answer.is_closed() {
                keys += request.keys.len();
                group.push(request);
            }
        }
        if group.is_empty() {
            state.workers -= 1;
            self.counted = false;
            return None;
        }
        Some(group)
    }

    /// Reads the existing rows of all requests, by ascending key.
    async fn find(&self, group: &[Request]) -> Result<Vec<Record>, StoreError> {
        let mut wanted: Vec<&[u8]> = group.iter().flat_map(|request| &request.keys).map(Key::as_bytes).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let rows = self.reader.connections.read(GET, &[&wanted, &self.reader.connections.expected()]).await?;
        let mut found = rows.iter().map(|row| record(row, 0)).collect::<Result<Vec<_>, _>>()?;
        found.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        Ok(found)
    }
}

impl Drop for Worker {
    /// Corrects the count when the runtime stops the task or it panics.
    fn drop(&mut self) {
        if self.counted {
            self.reader.lock().workers -= 1;
        }
    }
}
