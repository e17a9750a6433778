//! Where a storage comes from, so that the engine can open it again after it found no room.

use super::{
    closed_file,
    file::{self, Pages, Versions},
    read_only::ReadOnlyBackend,
    tables::unavailable,
    watched::{Watch, Watched},
};
use crate::store::{Absent, StoreError};
use redb::{Builder, Database, StorageBackend};
use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
};

/// Bytes that must fit on the disk before writes are taken again.
const PROBE: usize = 1 << 20;

/// A storage that can be opened.
pub(super) trait Source: Send {
    /// Opens the storage. `watch` notes its first failure.
    fn open(&mut self, absent: Absent, watch: &Watch) -> Result<Database, StoreError>;

    /// Opens the storage for reading alone; what is written stays in memory.
    fn open_unchanged(&mut self) -> Result<Database, StoreError>;

    /// Whether the storage has room for more.
    fn has_room(&mut self) -> bool;

    /// The storage has failed: the next program that opens it checks all of it.
    fn note_failure(&mut self) {}
}

/// A file.
pub(super) struct InFile {
    pub(super) path: PathBuf,
    pub(super) cache_bytes: usize,
    pub(super) versions: Versions,
}

impl Source for InFile {
    fn open(&mut self, absent: Absent, watch: &Watch) -> Result<Database, StoreError> {
        file::refuse_other_kinds(&self.path)?;
        // Only the first time: this process has had the file open since.
        if absent == Absent::Create {
            closed_file::refuse_other_version(&self.path, self.versions)?;
        }
        let unchecked = file::unchecked(&self.path);
        let pages = if unchecked.exists() { Pages::Checked } else { Pages::Trusted };
        if pages == Pages::Checked {
            file::drop_cached_pages(&self.path);
        }
        let opened = file::open_watched((&self.path, self.cache_bytes), absent, self.versions, pages, watch)?;
        if absent == Absent::Create {
            // A file that stays costs the next start another check.
            let _ = fs::remove_file(unchecked);
            file::remove_left_over(&self.path);
        }
        Ok(opened)
    }

    fn open_unchanged(&mut self) -> Result<Database, StoreError> {
        closed_file::open_unchanged(&self.path, self.cache_bytes, self.versions)
    }

    /// Writes a nameless file beside the store. The free space that a disk states does not know of quotas.
    fn has_room(&mut self) -> bool {
        let probe = || {
            let mut file = tempfile::tempfile_in(file::directory_of(&self.path))?;
            file.write_all(&vec![1; PROBE])?;
            file.sync_data()
        };
        probe().is_ok()
    }

    /// A disk that takes no new file either is told by the next start itself.
    fn note_failure(&mut self) {
        let _ = File::create(file::unchecked(&self.path)).and_then(|file| file.sync_all());
    }
}

/// A file that is opened for reading alone.
pub(super) struct Unchanged(pub(super) PathBuf, pub(super) usize);

impl Source for Unchanged {
    fn open(&mut self, _: Absent, _: &Watch) -> Result<Database, StoreError> {
        self.open_unchanged()
    }

    fn open_unchanged(&mut self) -> Result<Database, StoreError> {
        closed_file::open_unchanged(&self.0, self.1, Versions::Upgradable)
    }

    fn has_room(&mut self) -> bool {
        true
    }
}

/// A storage of redb that cannot be opened again.
pub(super) fn once(backend: impl StorageBackend, cache_bytes: usize) -> impl Source {
    let mut backend = Some(backend);
    FromBackend { make: move || backend.take(), has_room: || true, cache_bytes }
}

/// Any storage of redb.
pub(super) struct FromBackend<F, R> {
    /// Makes the storage for each opening, or tells that it cannot.
    pub(super) make: F,
    /// Tells whether there is room.
    pub(super) has_room: R,
    pub(super) cache_bytes: usize,
}

impl<B: StorageBackend, F: FnMut() -> Option<B> + Send, R: FnMut() -> bool + Send> FromBackend<F, R> {
    fn make(&mut self) -> Result<B, StoreError> {
        (self.make)().ok_or_else(|| StoreError::Unavailable("the storage is gone".into()))
    }

    fn on(&self, backend: impl StorageBackend) -> Result<Database, StoreError> {
        let db = Builder::new().set_cache_size(self.cache_bytes).create_with_backend(backend);
        db.map_err(|error| file::refusal(Path::new("the storage"), error))
    }
}

impl<B: StorageBackend, F: FnMut() -> Option<B> + Send, R: FnMut() -> bool + Send> Source for FromBackend<F, R> {
    fn open(&mut self, _: Absent, watch: &Watch) -> Result<Database, StoreError> {
        let storage = self.make()?;
        let db = self.on(Watched::new(storage, watch))?;
        file::prepare(&db, Versions::Present)?;
        Ok(db)
    }

    fn open_unchanged(&mut self) -> Result<Database, StoreError> {
        let backend = self.make()?;
        let len = backend.len().map_err(unavailable)?;
        self.on(ReadOnlyBackend::new(backend, len))
    }

    fn has_room(&mut self) -> bool {
        (self.has_room)()
    }
}
