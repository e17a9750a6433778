//! Writes what can be read of a file that redb cannot open to a new file, which takes its place.
//!
//! After a crash redb checks every page before it opens a file, and one damaged page keeps it from opening. The rows have
//! checksums of their own, so all rows outside of pages that cannot be read are as good as before. A damaged row is copied
//! as it is: whoever reads it is told, as in any other file.

use super::{
    closed_file::ClosedFile,
    file::{self, Unfinished, Versions, cannot_make, directory_of},
    pages::Pages,
    row,
    tables::{ROWS, unavailable},
};
use crate::store::{Inspection as _, Key, SCHEMA_VERSION, Salvaged, StoreError, marks};
use redb::{Builder, Database};
use std::{
    fs::{self, File, TryLockError},
    io,
    path::Path,
};

/// Most bytes of rows in one transaction.
const STEP: usize = 32 << 20;

/// Keeps other processes from a salvage in the same directory while it exists.
pub(super) struct Alone {
    _directory: File,
}

/// # Errors
/// Another process works on a damaged file of this directory, or this process may not read the directory.
pub(super) fn alone(path: &Path) -> Result<Alone, StoreError> {
    // The directory in which the new file will be.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let refused = |error: &io::Error| {
        let (shown, directory) = (path.display(), directory_of(path).display());
        StoreError::Unavailable(format!(
            "{shown} is damaged, and cannot be replaced by what can be read of it: cannot read the directory {directory}: {error}; let the user of this program read and write it, or run `rental-cli store repair` as root"
        ))
    };
    let directory = File::open(directory_of(path)).map_err(|error| refused(&error))?;
    match directory.try_lock() {
        Ok(()) => Ok(Alone { _directory: directory }),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse(format!(
            "{} is damaged, and another process writes what can be read of it to a new file",
            path.display()
        ))),
        Err(TryLockError::Error(error)) => Err(refused(&error)),
    }
}

/// Which rows may be lost.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Loss {
    /// Those of damaged pages, and none of a file that was cut: the missing part can be somewhere.
    Unasked,
    /// Also those of a file that was cut: somebody was asked about that.
    OfCutFile,
    /// Any, also of an older version: somebody was asked.
    Any,
}

/// The message of a program that does not salvage a file by itself, because a part of it cannot be read: somebody may have the
/// other part, or a disk from which it can be read.
pub(super) fn needs_a_person(path: &Path, damage: &str) -> StoreError {
    match Pages::open(path, Versions::Upgradable, None) {
        Err(refused) => refused.of(path, damage),
        Ok(_) => StoreError::Unreadable(format!(
            "{damage}; look at the disk, then `rental-cli store repair --dry-run` tells how many rows can be read, or restore it from a backup"
        )),
    }
}

/// Replaces the file at `path` by one with the rows that can be read. The damaged file is kept. `damage` says why it cannot
/// be opened, and `stated` which schema version it has if it has lost that. The new file has the same version.
///
/// # Errors
/// Nothing can be read, because the first pages are damaged or the file has another version; more is lost than `loss` allows; there
/// is no room for the new file. Then nothing has changed.
pub(super) fn salvage(
    (path, versions): (&Path, Versions),
    cache_bytes: usize,
    (damage, stated): (&str, Option<u64>),
    loss: Loss,
    _: &Alone,
) -> Result<Salvaged, StoreError> {
    let pages = Pages::open(path, versions, stated).map_err(|refused| refused.of(path, damage))?;
    let damage = file::without_advice(damage);
    let write = || {
        let path = fs::canonicalize(path).map_err(unavailable)?;
        file::refuse_without_name_to_keep(&path)?;
        let unfinished = Unfinished::instead(&path)?;
        unfinished.belongs_to_the_owner_of(&path)?;
        let db = unfinished.database(Builder::new().set_cache_size(cache_bytes))?;
        file::prepare_version(&db, pages.schema_version())?;
        let copied = copy(&pages, &db)?;
        db.close().map_err(unavailable)?;
        ClosedFile::of(unfinished.path(), cache_bytes, versions, None)?.pages().map_err(|detail| {
            StoreError::Unavailable(format!("what was written could not be read back ({detail}); check the disk"))
        })?;
        Ok((path, unfinished, copied))
    };
    let (path, unfinished, copied) = write().map_err(|error: StoreError| {
        let why = match error {
            StoreError::Unavailable(why) => why,
            error => error.to_string(),
        };
        StoreError::Unavailable(format!(
            "{damage}; what can be read of it could not be written to a new file beside it: {why}"
        ))
    })?;
    if copied.rows == 0 && (pages.count() > 0 || copied.gaps > 0) {
        let all = pages.count();
        return Err(StoreError::DamagedStore(format!(
            "{damage}; 0 of {all} rows can be read; restore it from a backup"
        )));
    }
    if loss == Loss::Unasked && copied.gaps > 0 && file::was_cut(&path) {
        return Err(needs_a_person(&path, &file::unreadable(&path, "its end")));
    }
    let lost = pages.count().saturating_sub(copied.rows);
    // An upgrade, also the rest of one that was interrupted, removes what guards others, such as the nights of a rental that is lost.
    let is_half = pages.get(&marks::upgrade()).is_ok_and(|marker| marker.is_some());
    let is_older = is_half || pages.schema_version() != SCHEMA_VERSION;
    if loss != Loss::Any && is_older && lost + copied.gaps > 0 {
        return Err(StoreError::DamagedStore(format!(
            "{damage}; {} of {} rows can be read, and `rental-cli store upgrade --keep-damaged` keeps them; or restore it from a backup",
            copied.rows,
            pages.count()
        )));
    }
    let kept = unfinished.replace().map_err(|error| cannot_make(&path, &error))?;
    let corrected = pages.damaged().iter().filter(|page| page.corrected).count() as u64;
    Ok(Salvaged { lost, corrected, kept, ..copied })
}

/// Copies all rows that can be read.
fn copy(pages: &Pages, db: &Database) -> Result<Salvaged, StoreError> {
    let mut salvaged = Salvaged::default();
    let (mut waiting, mut size, mut written) = (Vec::new(), 0, Ok(()));
    pages.walk(&mut |found| {
        match found {
            Ok((key, stored)) => {
                let key = Key::from_bytes(key);
                salvaged.rows += 1;
                salvaged.damaged += u64::from(row::split(&key, stored).is_err());
                size += key.as_bytes().len() + stored.len();
                waiting.push((key, stored.to_vec()));
            }
            Err(_) => salvaged.gaps += 1,
        }
        if size > STEP {
            written = add(db, &waiting);
            (size, waiting) = (0, Vec::new());
        }
        written.is_ok()
    });
    written?;
    add(db, &waiting)?;
    Ok(salvaged)
}

/// Writes stored rows in one transaction.
fn add(db: &Database, stored: &[(Key, Vec<u8>)]) -> Result<(), StoreError> {
    let mut transaction = db.begin_write().map_err(unavailable)?;
    transaction.set_two_phase_commit(true);
    {
        let mut rows = transaction.open_table(ROWS).map_err(unavailable)?;
        for (key, stored) in stored {
            drop(rows.insert(key.as_bytes(), stored.as_slice()).map_err(unavailable)?);
        }
    }
    transaction.commit().map_err(unavailable)
}
