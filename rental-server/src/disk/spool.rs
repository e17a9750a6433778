//! Files for what is on its way from or to a client. They have no name: nothing of them is left when the process ends, however
//! it ends.

use super::room::Room;
use rental_core::error::Error;
use rustix::fs::{FallocateFlags, fallocate};
use std::{
    env,
    fs::{self, File},
    io::{self, ErrorKind, Seek, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

/// Spools leave this many times the room below which the store refuses writes, so that no upload or download stops them.
const ROOM_LEFT: u64 = 2;
/// Bytes that are written between two looks at the room.
const UNCHECKED: usize = 4 << 20;

/// Where spools are made, and how much room they leave.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spools {
    folder: PathBuf,
    kept: Option<u64>,
}

impl Spools {
    /// Beside the data file; with a database in the folder for temporary files, which `TMPDIR` names.
    pub(super) fn of(store: Option<&Path>, kept: Option<u64>) -> Self {
        let file = store.and_then(|path| fs::canonicalize(path).ok());
        let folder = file.as_deref().and_then(Path::parent).map(Path::to_owned);
        Self { folder: folder.unwrap_or_else(env::temp_dir), kept }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A new spool.
    pub(crate) async fn begin(&self) -> Result<Spool, Error> {
        let spools = self.clone();
        let begun = tokio::task::spawn_blocking(move || spools.spool()).await;
        let begun = begun.map_err(|error| Error::Internal(format!("a look at the disk ended early: {error}")))?;
        begun.map_err(|error| no_spool(&error))
    }

    fn spool(self) -> io::Result<Spool> {
        self.check_room()?;
        Ok(Spool { file: tempfile::tempfile_in(&self.folder)?, spools: self, unchecked: 0 })
    }

    /// Fails with [`ErrorKind::StorageFull`] when a spool may not grow.
    pub(crate) fn check_room(&self) -> io::Result<()> {
        if Room::of(&self.folder).is_below(self.kept, ROOM_LEFT) {
            return Err(io::Error::new(ErrorKind::StorageFull, "the disk has too little room"));
        }
        Ok(())
    }
}

/// The error of a request whose spool cannot be made or written.
pub(crate) fn no_spool(error: &io::Error) -> Error {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Error::StorageFull,
        _ => Error::Unavailable(format!("a temporary file: {error}")),
    }
}

/// A file without a name that grows while there is room.
#[derive(Debug)]
pub(crate) struct Spool {
    file: File,
    spools: Spools,
    unchecked: usize,
}

impl Spool {
    /// The file, to read from its beginning.
    pub(crate) fn into_file(mut self) -> io::Result<File> {
        self.file.rewind().map(|()| self.file)
    }

    /// The same file, to read it while it is written.
    pub(crate) fn reader(&self) -> io::Result<SpoolReader> {
        self.file.try_clone().map(SpoolReader)
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.unchecked >= UNCHECKED {
            self.spools.check_room()?;
            self.unchecked = 0;
        }
        let written = self.file.write(bytes)?;
        self.unchecked += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a spool.
pub(crate) struct SpoolReader(File);

impl SpoolReader {
    /// Reads the bytes from `at` on.
    pub(crate) fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        self.0.read_exact_at(bytes, at)
    }

    /// Gives the room of the bytes before `at` back to the disk, so that a spool takes no more than its client lags behind.
    pub(crate) fn forget_before(&self, at: u64) {
        // A file system that cannot do that keeps them until the end.
        let _ = fallocate(&self.0, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_spool_has_no_name_and_gives_back_what_was_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spools { folder: folder.path().to_owned(), kept: Some(0) }.spool().unwrap();
        spool.write_all(&[7; 1 << 20]).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let (reader, mut last) = (spool.reader().unwrap(), [0; 2]);
        let full = reader.0.metadata().unwrap().blocks();
        reader.forget_before(1 << 19);
        reader.read_at(&mut last, (1 << 20) - 2).unwrap();
        assert_eq!(last, [7; 2]);
        assert!(reader.0.metadata().unwrap().blocks() < full);
    }

    #[test]
    fn a_spool_ends_before_the_room_that_is_kept_free() {
        let folder = tempfile::tempdir().unwrap();
        let refused = Spools { folder: folder.path().to_owned(), kept: Some(u64::MAX / 4) }.spool().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::StorageFull);
    }
}
