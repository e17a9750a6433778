//! Maintenance of a file that no program has open: compaction, and restore from a backup.

use super::{
    closed_file::{self, ClosedFile, Finding},
    file,
    tables::unavailable,
};
use crate::store::{
    SCHEMA_VERSION, StoreError,
    archive::{ArchiveError, Reader, Summary, digest_row},
    versioned,
};
use redb::Builder;
use sha2::{Digest, Sha256};
use std::{
    io::Read,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

/// Most bytes of rows in one transaction of a restore.
const STEP: usize = 32 << 20;

/// The result of [`compact`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Compacted {
    /// Size of the file before compaction, in bytes.
    pub before: u64,
    /// Size of the file after compaction, in bytes.
    pub after: u64,
}

/// Compacts a file: returns the space of deleted and replaced rows to the file system.
///
/// # Errors
/// A sentence for the operator: the file is open in another process, damaged, of another version, or cannot be written.
pub fn compact(path: &Path, cache_bytes: usize) -> Result<Compacted, StoreError> {
    let size = || std::fs::metadata(path).map(|file| file.len()).map_err(unavailable);
    closed_file::refuse_other_version(path, cache_bytes, file::Versions::Present)?;
    let mut db = file::open(path, cache_bytes, file::Absent::Fail, file::Versions::Present)?;
    let before = size()?;
    let compacting = AssertUnwindSafe(|| {
        // Each call compacts a part of the file, and returns false when nothing is left to compact.
        while db.compact().map_err(unavailable)? {}
        db.close().map_err(unavailable)
    });
    let damaged = || StoreError::DamagedStore(format!("{} is damaged; restore it from a backup", path.display()));
    catch_unwind(compacting).unwrap_or_else(|_| Err(damaged()))?;
    Ok(Compacted { before, after: size()? })
}

/// The result of a restore.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Restored {
    /// The totals of the backup, as its end states them.
    pub archive: Summary,
    /// Size of the new file, in bytes.
    pub bytes: u64,
}

/// Why a restore failed. No file was created at the path.
#[derive(Debug)]
pub enum RestoreError {
    /// The backup cannot be read.
    Archive(ArchiveError),
    /// The rows of the backup have this schema version, which is not supported.
    Version(u64),
    /// A file exists at the path.
    Exists,
    /// The new file cannot be written or verified.
    Store(StoreError),
}

impl From<StoreError> for RestoreError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Creates a file at `path` from a backup of the present version.
///
/// # Errors
/// See [`restore_and_upgrade`]; a backup of an older version is refused.
pub fn restore<R: Read>(
    path: &Path,
    cache_bytes: usize,
    archive: &mut Reader<R>,
    progress: &mut dyn FnMut(u64),
) -> Result<Restored, RestoreError> {
    let version = archive.header().schema_version;
    if version != SCHEMA_VERSION {
        return Err(RestoreError::Version(version));
    }
    restore_and_upgrade(path, cache_bytes, archive, progress, &mut |_| Ok(()))
}

/// Creates a file at `path` from a backup. The file gets this name only after it is complete, verified and durable.
///
/// Calls `progress` with the number of rows so far. If the backup has an older version, calls `upgrade` with the temporary
/// path of the new file, which must upgrade it to the present version.
///
/// # Errors
/// See [`RestoreError`].
pub fn restore_and_upgrade<R: Read>(
    path: &Path,
    cache_bytes: usize,
    archive: &mut Reader<R>,
    progress: &mut dyn FnMut(u64),
    upgrade: &mut dyn FnMut(&Path) -> Result<(), StoreError>,
) -> Result<Restored, RestoreError> {
    let version = archive.header().schema_version;
    versioned::known(version).map_err(|_| RestoreError::Version(version))?;
    if path.exists() {
        return Err(RestoreError::Exists);
    }
    let unfinished = file::Unfinished::beside(path)?;
    let mut builder = Builder::new();
    let db = unfinished.database(builder.set_cache_size(cache_bytes))?;
    file::prepare_version(&db, version)?;
    let (mut waiting, mut size, mut digest, mut rows) = (Vec::new(), 0, Sha256::new(), 0u64);
    while let Some(frame) = archive.next_frame().map_err(RestoreError::Archive)? {
        rows += frame.len() as u64;
        for record in frame {
            digest_row(&mut digest, &record);
            size += record.key.as_bytes().len() + record.value.len();
            waiting.push(record);
        }
        if size > STEP {
            file::add(&db, &waiting)?;
            (size, waiting) = (0, Vec::new());
            progress(rows);
        }
    }
    let summary = archive.summary().cloned().ok_or(RestoreError::Archive(ArchiveError::Unread))?;
    file::add(&db, &waiting)?;
    db.close().map_err(unavailable)?;
    progress(rows);
    verify(unfinished.path(), cache_bytes, rows, digest)?;
    if version < SCHEMA_VERSION {
        upgrade(unfinished.path())?;
    }
    let bytes = std::fs::metadata(unfinished.path()).map_err(unavailable)?.len();
    unfinished.publish().map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => RestoreError::Exists,
        _ => RestoreError::Store(file::cannot_make(path, &error)),
    })?;
    Ok(Restored { archive: summary, bytes })
}

/// Verifies the new file: every page has a correct checksum, and its rows have the same count and digest as the backup's.
fn verify(path: &Path, cache_bytes: usize, rows: u64, written: Sha256) -> Result<(), StoreError> {
    let closed = ClosedFile::of(path, cache_bytes, file::Versions::Upgradable)?;
    let (mut digest, mut found, mut problem) = (Sha256::new(), 0, closed.pages().err().map(str::to_owned));
    closed.walk(&mut |step| {
        match step {
            Finding::Row(record) => {
                digest_row(&mut digest, &record);
                found += 1;
            }
            Finding::Damaged(row) => problem = Some(row.to_string()),
            Finding::Gap(_, detail) => problem = Some(detail),
        }
        problem.is_none()
    });
    if problem.is_none() && found == rows && digest.finalize() == written.finalize() {
        return Ok(());
    }
    let detail = problem.unwrap_or_else(|| format!("{found} of {rows} rows were read back"));
    Err(StoreError::DamagedStore(format!(
        "what was written could not be read back as it was ({detail}); check the disk"
    )))
}
