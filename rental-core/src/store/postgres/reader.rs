//! Reads of single rows: those of many callers share a statement, as writes share a commit.
//!
//! A statement costs the database far more than a row of it. So a call that finds a lane free is sent at once, and what
//! comes while all lanes are at work is asked together by the next one that is done. Every call still reads from one
//! snapshot, that of its statement, which begins after the call: it sees every commit that was answered before.

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

/// Statements under way at most. Fewer make larger ones: the database has less to do, and a caller waits longer.
const LANES: usize = 2;
/// A statement that asks for this many rows takes no more calls.
const MOST_KEYS: usize = 256;
/// Most calls that wait; a further one is answered [`StoreError::Busy`].
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
    waiting: VecDeque<Ask>,
    /// Lanes at work.
    lanes: usize,
}

/// A call that waits.
struct Ask {
    keys: Vec<Key>,
    answer: oneshot::Sender<Found>,
}

impl Reader {
    pub(super) fn new(connections: Connections) -> Arc<Self> {
        Arc::new(Self { connections, state: Mutex::default() })
    }

    /// These rows, in the order asked.
    pub(super) async fn get(self: &Arc<Self>, keys: &[Key]) -> Found {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let (answer, found) = oneshot::channel();
        self.queue(Ask { keys: keys.to_vec(), answer })?;
        // Once for the statement before, once for its own.
        match timeout(self.connections.patience * 2, found).await {
            Ok(Ok(found)) => found,
            Ok(Err(_)) | Err(_) => Err(unanswered()),
        }
    }

    fn queue(self: &Arc<Self>, ask: Ask) -> Result<(), StoreError> {
        let mut state = self.lock();
        if state.waiting.len() >= QUEUE {
            return Err(StoreError::Busy);
        }
        state.waiting.push_back(ask);
        if state.lanes < LANES {
            state.lanes += 1;
            tokio::spawn(Lane { reader: Arc::clone(self), counted: true }.run());
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Works until nobody waits.
struct Lane {
    reader: Arc<Reader>,
    /// Whether it is one of the lanes at work.
    counted: bool,
}

impl Lane {
    async fn run(mut self) {
        while let Some(group) = self.next() {
            let found = self.find(&group).await;
            for Ask { keys, answer } in group {
                let pick = |rows: &Vec<Record>| {
                    let find =
                        |key: &Key| rows.binary_search_by(|row| row.key.cmp(key)).ok().map(|at| rows[at].clone());
                    keys.iter().map(find).collect()
                };
                // The caller may have gone meanwhile.
                let _ = answer.send(found.as_ref().map(pick).map_err(Clone::clone));
            }
        }
    }

    /// Who is asked for together. With nobody left the lane ends, in the same moment: whoever comes next starts another.
    fn next(&mut self) -> Option<Vec<Ask>> {
        let mut state = self.reader.lock();
        let (mut group, mut keys) = (Vec::new(), 0);
        while keys < MOST_KEYS
            && let Some(ask) = state.waiting.pop_front()
        {
            // A caller that went away needs no answer.
            if !ask.answer.is_closed() {
                keys += ask.keys.len();
                group.push(ask);
            }
        }
        if group.is_empty() {
            state.lanes -= 1;
            self.counted = false;
            return None;
        }
        Some(group)
    }

    /// All that the group asks for and that is there, by rising key.
    async fn find(&self, group: &[Ask]) -> Result<Vec<Record>, StoreError> {
        let mut wanted: Vec<&[u8]> = group.iter().flat_map(|ask| &ask.keys).map(Key::as_bytes).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let rows = self.reader.connections.read(GET, &[&wanted, &self.reader.connections.expected()]).await?;
        let mut found = rows.iter().map(|row| record(row, 0)).collect::<Result<Vec<_>, _>>()?;
        found.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        Ok(found)
    }
}

impl Drop for Lane {
    /// Its task was cut off.
    fn drop(&mut self) {
        if self.counted {
            self.reader.lock().lanes -= 1;
        }
    }
}
