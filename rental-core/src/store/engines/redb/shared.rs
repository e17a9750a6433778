//! State that the writer and the readers of one store share.

use super::{
    tables::{Rows, snapshot},
    version,
    watched::{Failure, Watch},
};
use crate::store::{CommitObserver, StoreError, Tally};
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
    /// Counts the changes of committed batches, if it is set.
    pub(super) tally: OnceLock<Arc<Tally>>,
    /// Measures the commits, if it is set.
    pub(super) observer: OnceLock<Arc<dyn CommitObserver>>,
    /// The schema version of the file.
    pub(super) version: AtomicU64,
    /// Writes are refused, because the storage has no room.
    no_room: AtomicBool,
    /// How often the storage was opened again.
    openings: AtomicU64,
    /// The failure of the present opening.
    watch: ArcSwap<Watch>,
}

impl Shared {
    pub(super) fn new(db: &Database, watch: Watch) -> Result<Self, StoreError> {
        let rows = ArcSwap::from_pointee(snapshot(db)?);
        watch.opened();
        Ok(Self {
            rows,
            failure: OnceLock::new(),
            changed: Notify::new(),
            commits: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            tally: OnceLock::new(),
            observer: OnceLock::new(),
            version: AtomicU64::new(version::read(db)?),
            no_room: AtomicBool::new(false),
            openings: AtomicU64::new(0),
            watch: ArcSwap::from_pointee(watch),
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
        self.watch.load().failure() == Some(Failure::NoRoom)
    }

    /// The number of the present opening. Rows that are read after it are of this opening or a later one.
    pub(super) fn opening(&self) -> u64 {
        self.openings.load(Ordering::Acquire)
    }

    /// Publishes the rows of a storage that was opened again.
    pub(super) fn opened_again(&self, db: &Database, watch: Watch) -> Result<(), StoreError> {
        let rows = snapshot(db)?;
        watch.opened();
        self.version.store(version::read(db)?, Ordering::Release);
        self.rows.store(Arc::new(rows));
        // In this order: a reader of an earlier opening always finds the later one, or the failure of its own.
        self.openings.fetch_add(1, Ordering::AcqRel);
        self.watch.store(Arc::new(watch));
        self.changed.notify_waiters();
        Ok(())
    }

    /// Whether there is or will be an opening after this one.
    pub(super) fn opens_again(&self, seen: u64) -> bool {
        self.failure.get().is_none() && (self.opening() > seen || self.found_no_room())
    }

    /// Waits for an opening after this one.
    pub(super) async fn next_opening(&self, seen: u64) -> Result<u64, StoreError> {
        loop {
            let changed = self.changed.notified();
            if let Some(failure) = self.failure.get() {
                return Err(StoreError::Unavailable(failure.clone()));
            }
            let present = self.opening();
            if present > seen {
                return Ok(present);
            }
            changed.await;
        }
    }
}
