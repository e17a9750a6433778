//! State that the writer and the readers of one store share.

use super::{
    tables::{Rows, snapshot},
    version,
    watched::{Failure, Watch},
};
use crate::store::StoreError;
use arc_swap::ArcSwap;
use redb::Database;
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
use tokio::sync::Notify;

pub(super) struct Shared {
    /// The snapshot for readers: the rows after the last durable commit.
    pub(super) rows: ArcSwap<Rows>,
    /// The reason, when the engine has failed permanently.
    pub(super) failure: OnceLock<String>,
    /// Is signalled when the engine fails permanently and when the storage was opened again.
    pub(super) changed: Notify,
    pub(super) commits: AtomicU64,
    pub(super) batches: AtomicU64,
    /// The schema version of the file.
    pub(super) version: AtomicU64,
    /// Writes are refused, because the storage has no room.
    no_room: AtomicBool,
    opening: ArcSwap<Opening>,
}

/// One opening of the storage.
pub(super) struct Opening {
    number: u64,
    watch: Watch,
}

impl Shared {
    pub(super) fn new(db: &Database, watch: Watch) -> Result<Self, StoreError> {
        Ok(Self {
            rows: ArcSwap::from_pointee(snapshot(db)?),
            failure: OnceLock::new(),
            changed: Notify::new(),
            commits: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            version: AtomicU64::new(version::read(db)?),
            no_room: AtomicBool::new(false),
            opening: ArcSwap::from_pointee(Opening { number: 0, watch }),
        })
    }

    /// Fails the engine permanently: it acknowledges no further write.
    pub(super) fn fail(&self, reason: String) {
        let _ = self.failure.set(reason);
        self.changed.notify_waiters();
    }

    /// Whether writes are taken; the error says why not.
    pub(super) fn takes_writes(&self) -> Result<(), StoreError> {
        match self.failure.get() {
            Some(failure) => Err(StoreError::Unavailable(failure.clone())),
            None if self.no_room.load(Ordering::Acquire) => Err(StoreError::NoRoom),
            None => Ok(()),
        }
    }

    pub(super) fn refuse_writes(&self, refuse: bool) {
        self.no_room.store(refuse, Ordering::Release);
    }

    /// Whether the present opening failed only because it found no room.
    pub(super) fn found_no_room(&self) -> bool {
        self.opening.load().watch.failure() == Some(Failure::NoRoom)
    }

    pub(super) fn opening(&self) -> Arc<Opening> {
        self.opening.load_full()
    }

    /// Publishes the rows of a storage that was opened again.
    pub(super) fn opened_again(&self, db: &Database, watch: Watch) -> Result<(), StoreError> {
        let rows = snapshot(db)?;
        self.version.store(version::read(db)?, Ordering::Release);
        self.rows.store(Arc::new(rows));
        let number = self.opening.load().number + 1;
        self.opening.store(Arc::new(Opening { number, watch }));
        self.changed.notify_waiters();
        Ok(())
    }

    /// Whether there is or will be an opening after this one.
    pub(super) fn opens_again(&self, seen: &Opening) -> bool {
        self.failure.get().is_none()
            && (self.opening.load().number > seen.number || seen.watch.failure() == Some(Failure::NoRoom))
    }

    /// Waits for an opening after this one.
    pub(super) async fn next_opening(&self, seen: Arc<Opening>) -> Result<Arc<Opening>, StoreError> {
        loop {
            let changed = self.changed.notified();
            if let Some(failure) = self.failure.get() {
                return Err(StoreError::Unavailable(failure.clone()));
            }
            let present = self.opening.load_full();
            if present.number > seen.number {
                return Ok(present);
            }
            changed.await;
        }
    }
}
