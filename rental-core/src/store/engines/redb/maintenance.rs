//! Maintenance of a file that no program has open: compaction, and restore from a backup.

use super::{
    closed_file::{self, ClosedFile},
    engine::Redb,
    file::{self, Unfinished},
    tables::unavailable,
};
use crate::store::{
    Absent, Compacted, Finding, Inspection, Key, Restore, RestoreError, SCHEMA_VERSION, StoreError,
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

/// Compacts a file: returns the space of deleted and replaced rows to the file system.
///
/// # Errors
/// A sentence for the operator: the file is open in another process, damaged, of another version, or cannot be written.
pub fn compact(path: &Path, cache_bytes: usize) -> Result<Compacted, StoreError> {
    let size = || std::fs::metadata(path).map(|file| file.len()).map_err(unavailable);
    file::refuse_other_kinds(path)?;
    // Pages that are written again would get right checksums.
    let checked = ClosedFile::open(path, cache_bytes)?;
    checked.pages().map_err(|damage| StoreError::DamagedStore(damage.to_owned()))?;
    drop(checked);
    closed_file::refuse_other_version(path, file::Versions::Present)?;
    let mut db = file::open(path, cache_bytes, Absent::Fail, file::Versions::Present)?;
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

/// Creates a file at `path` from a backup of the present version.
///
/// # Errors
/// See [`RestoreError`]; a backup of an older version is refused. On an error no file was created at `path`.
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
    let (file, summary) = fill(path, cache_bytes, archive, |_| true, progress)?;
    publish(path, file, summary)
}

/// Creates a file at `path` from a backup. The file gets this name only after it is complete, verified, upgraded and
/// durable.
///
/// # Errors
/// See [`RestoreError`]. On an error no file was created at `path`.
pub async fn restore_and_upgrade(
    path: &Path,
    cache_bytes: usize,
    restore: Restore<'_>,
) -> Result<Restored, RestoreError> {
    let Restore { archive, moves, progress, upgrade } = restore;
    let (file, summary) = fill(path, cache_bytes, archive, moves, progress)?;
    if archive.header().schema_version < SCHEMA_VERSION {
        let store = Redb::open_any_version(file.path(), cache_bytes)?;
        upgrade(&store).await.map_err(StoreError::Unavailable)?;
        store.close()?;
    }
    publish(path, file, summary)
}

/// Writes the rows of a backup to a new file, which does not have its name yet, and verifies it.
fn fill<R: Read>(
    path: &Path,
    cache_bytes: usize,
    archive: &mut Reader<R>,
    moves: fn(&Key) -> bool,
    progress: &mut dyn FnMut(u64),
) -> Result<(Unfinished, Summary), RestoreError> {
    let version = archive.header().schema_version;
    versioned::known(version).map_err(|_| RestoreError::Version(version))?;
    if path.exists() {
        return Err(exists(path));
    }
    file::remove_left_over(path);
    let unfinished = Unfinished::beside(path)?;
    let mut builder = Builder::new();
    let db = unfinished.database(builder.set_cache_size(cache_bytes))?;
    file::prepare_version(&db, version)?;
    let (mut waiting, mut size, mut digest, mut rows) = (Vec::new(), 0, Sha256::new(), 0u64);
    while let Some(frame) = archive.next_frame()? {
        for record in frame.into_iter().filter(|record| moves(&record.key)) {
            digest_row(&mut digest, &record);
            rows += 1;
            size += record.key.as_bytes().len() + record.value.len();
            waiting.push(record);
        }
        if size > STEP {
            file::add(&db, &waiting)?;
            (size, waiting) = (0, Vec::new());
            progress(rows);
        }
    }
    let summary = archive.summary().cloned().ok_or(ArchiveError::Unread)?;
    file::add(&db, &waiting)?;
    db.close().map_err(unavailable)?;
    progress(rows);
    verify(unfinished.path(), cache_bytes, rows, digest)?;
    Ok((unfinished, summary))
}

fn publish(path: &Path, file: Unfinished, archive: Summary) -> Result<Restored, RestoreError> {
    let bytes = std::fs::metadata(file.path()).map_err(unavailable)?.len();
    file.publish().map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => exists(path),
        _ => RestoreError::Store(file::cannot_make(path, &error)),
    })?;
    Ok(Restored { archive, bytes })
}

fn exists(path: &Path) -> RestoreError {
    let problem = format!("{} exists; nothing was written", path.display());
    RestoreError::Exists(problem, "choose another path, or move the file away")
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
