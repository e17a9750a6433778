//! Where a storage comes from, so that the engine can open it again after it found no room.

use super::{
    closed_file,
    file::{self, Absent, Versions},
    watched::{Watch, Watched},
};
use crate::store::StoreError;
use redb::{Builder, Database, StorageBackend};
use std::{
    io::Write,
    path::{Path, PathBuf},
};

/// Bytes that must fit on the disk before writes are taken again.
const PROBE: usize = 1 << 20;

/// A storage that can be opened.
pub(super) trait Source: Send {
    /// Opens the storage. `watch` notes its first failure.
    fn open(&mut self, absent: Absent, watch: &Watch) -> Result<Database, StoreError>;

    /// Whether the storage has room for more.
    fn has_room(&mut self) -> bool {
        true
    }
}

/// A file.
pub(super) struct InFile {
    pub(super) path: PathBuf,
    pub(super) cache_bytes: usize,
    pub(super) versions: Versions,
}

impl Source for InFile {
    fn open(&mut self, absent: Absent, watch: &Watch) -> Result<Database, StoreError> {
        // Only the first time: this process has had the file open since.
        if absent == Absent::Create {
            closed_file::refuse_other_version(&self.path, self.cache_bytes, self.versions)?;
        }
        file::open_watched(&self.path, self.cache_bytes, absent, self.versions, watch)
    }

    /// Writes a nameless file beside the store. The free space that a disk states does not know of quotas.
    fn has_room(&mut self) -> bool {
        let probe = || {
            let mut file = tempfile::tempfile_in(file::directory_of(&self.path))?;
            file.write_all(&[1; PROBE])?;
            file.sync_data()
        };
        probe().is_ok()
    }
}

/// A file that is opened for reading alone.
pub(super) struct Unchanged(pub(super) PathBuf, pub(super) usize);

impl Source for Unchanged {
    fn open(&mut self, _: Absent, _: &Watch) -> Result<Database, StoreError> {
        closed_file::open_unchanged(&self.0, self.1, Versions::Upgradable)
    }
}

/// Any storage of redb; the function makes it again for each opening, or tells that it cannot.
pub(super) struct FromBackend<F>(pub(super) F);

impl<B: StorageBackend, F: FnMut() -> Option<B> + Send> Source for FromBackend<F> {
    fn open(&mut self, _: Absent, watch: &Watch) -> Result<Database, StoreError> {
        let backend = (self.0)().ok_or_else(|| StoreError::Unavailable("the storage is gone".into()))?;
        let db = Builder::new().set_cache_size(1 << 20).create_with_backend(Watched::new(backend, watch));
        let db = db.map_err(|error| file::refusal(Path::new("the storage"), error))?;
        file::prepare(&db, Versions::Present)?;
        Ok(db)
    }
}
