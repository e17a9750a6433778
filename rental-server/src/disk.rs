//! Free space on the disk of the store: how much there is, and whether writes are refused because there is too little.

// The paths are written, because the fuzz targets compile this file by its path.
#[path = "disk/room.rs"]
mod room;
#[path = "disk/spool.rs"]
mod spool;

pub(crate) use room::Room;
pub(crate) use spool::{Spool, SpoolReader, Spools, no_spool};

use prometheus_client::{
    metrics::gauge::Gauge,
    registry::{Registry, Unit},
};
use rental_core::store::{Answer, Batch, Commit, Key, Record, Scanned, Span, Store, StoreError};
use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// How often the free space is read. No request reads it.
pub(crate) const SAMPLE: Duration = Duration::from_millis(250);
/// Whether the store has room for writes, as of the last sample.
#[derive(Debug, Default)]
pub(crate) struct Space {
    /// The data file, if the store is one.
    path: Option<PathBuf>,
    /// `--min-free-space` in bytes.
    kept: Option<u64>,
    /// Files for uploads, downloads and dry runs.
    pub(crate) spools: Spools,
    scarce: AtomicBool,
    full: AtomicBool,
    refusing: Gauge,
    data_bytes: Gauge,
    free_bytes: Gauge,
    total_bytes: Gauge,
}

impl Space {
    /// The space of this data file, with a first sample.
    pub(crate) fn of(path: Option<&Path>, kept: Option<u64>) -> Self {
        let spools = Spools::of(path, kept);
        let space = Self { path: path.map(Path::to_owned), kept, spools, ..Self::default() };
        space.note(space.room(), false);
        space
    }

    /// Reads the sizes. A disk that hangs blocks the thread.
    pub(crate) fn room(&self) -> Room {
        self.path.as_deref().map(Room::of).unwrap_or_default()
    }

    /// Notes a sample, and whether the store itself has found no room.
    pub(crate) fn note(&self, room: Room, full: bool) {
        let refused = self.refuses_clients();
        self.scarce.store(room.is_below(self.kept, 1), Ordering::Relaxed);
        self.full.store(full, Ordering::Relaxed);
        let refuses = self.refuses_clients();
        self.refusing.set(i64::from(refuses));
        let sizes = [(&self.data_bytes, room.data), (&self.free_bytes, room.free), (&self.total_bytes, room.total)];
        for (gauge, bytes) in sizes {
            gauge.set(bytes.and_then(|bytes| i64::try_from(bytes).ok()).unwrap_or(0));
        }
        match (refused, refuses) {
            (false, true) => tracing::error!(
                free_bytes = room.free,
                "the disk of the store has too little room: writes of API keys and imports are refused until there is more"
            ),
            (true, false) => tracing::info!(free_bytes = room.free, "the disk of the store has room again"),
            _ => {}
        }
    }

    /// Whether writes of clients and imports are refused.
    pub(crate) fn refuses_clients(&self) -> bool {
        self.scarce.load(Ordering::Relaxed) || self.is_full()
    }

    /// Whether the store refuses every write, because it found no room.
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "storage_full",
            "1 while writes are refused because the disk of the store has too little room",
            self.refusing.clone(),
        );
        // A database has its own disk, which this server does not see.
        if self.path.is_none() {
            return;
        }
        let sizes = [
            ("store_file_size", "Size of the data file", &self.data_bytes),
            ("store_disk_free", "Free space on the disk of the data file", &self.free_bytes),
            ("store_disk_size", "Size of the disk of the data file", &self.total_bytes),
        ];
        for (name, help, gauge) in sizes {
            registry.register_with_unit(name, help, Unit::Bytes, gauge.clone());
        }
    }
}

/// A store whose commits are refused while the disk has too little room. Stored responses are still replayed, because a
/// replay commits nothing.
pub(crate) struct WithinSpace<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) space: &'a Space,
}

impl Store for WithinSpace<'_> {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        self.store.get(keys)
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        self.store.scan(span, limit)
    }

    fn scan_each<'a>(&'a self, scans: &'a [(Span, usize)]) -> Answer<'a, Vec<Vec<Scanned>>> {
        self.store.scan_each(scans)
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        match self.space.refuses_clients() {
            true => Box::pin(std::future::ready(Err(StoreError::NoRoom))),
            false => self.store.commit(batch),
        }
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.store.ready()
    }
}
