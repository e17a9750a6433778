//! The file under the engine: made whole or not at all, opened, refused in a sentence.

use super::{
    row,
    tables::{META, ROWS, unavailable},
    version,
};
use crate::store::{Record, SCHEMA_VERSION, StoreError, marks, needs_upgrade, versioned};
use redb::{Builder, Database, DatabaseError, ReadableDatabase, ReadableTable};
use std::{
    fs::{self, File, OpenOptions},
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

/// Words in the error when another process has the file open.
pub const IN_USE: &str = "is in use by another process";

/// Which files are opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Versions {
    /// Those of the present version that no upgrade left half done.
    Present,
    /// Those that can be upgraded too.
    Upgradable,
}

/// What opening does when there is no file.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Absent {
    /// It makes the file.
    Made,
    /// It fails.
    Refused,
}

/// Opens the file at `path`.
pub(super) fn open(
    path: &Path,
    cache_bytes: usize,
    absent: Absent,
    versions: Versions,
) -> Result<Database, StoreError> {
    let make = absent == Absent::Made;
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes);
    // redb checks page checksums only on repair; a damaged page can make it panic instead of answering.
    let open = AssertUnwindSafe(|| {
        refuse_directory(path)?;
        if make && !path.exists() {
            make_file(&builder, path)?;
        }
        refuse_empty(path)?;
        let db = if make { builder.create(path) } else { builder.open(path) }.map_err(|error| refusal(path, error))?;
        if make { prepare(&db, versions) } else { recognize(&db, path, versions) }?;
        Ok(db)
    });
    let damaged = || StoreError::Corrupt(format!("{} is damaged; restore it from a backup", path.display()));
    catch_unwind(open).unwrap_or_else(|_| Err(damaged()))
}

fn refuse_directory(path: &Path) -> Result<(), StoreError> {
    if !path.is_dir() {
        return Ok(());
    }
    let file = path.join("rental.redb");
    Err(StoreError::Unavailable(format!(
        "{} is a directory, and a store is a file: name the file, such as redb:{}",
        path.display(),
        file.display()
    )))
}

/// Refuses a file of 0 bytes. No crash leaves one, because [`make_file`] names only whole files, so the store that was there
/// is lost. redb would make a new store of it, as if nothing had happened.
fn refuse_empty(path: &Path) -> Result<(), StoreError> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() && metadata.len() == 0 => Err(StoreError::Corrupt(format!(
            "{} is empty (0 bytes), so it is no store; restore it from a backup, or remove it to begin with a new store",
            path.display()
        ))),
        // redb says what else is wrong.
        _ => Ok(()),
    }
}

/// Makes a new file whole before it gets its name, so that a crash meanwhile leaves none that cannot be opened.
fn make_file(builder: &Builder, path: &Path) -> Result<(), StoreError> {
    let unfinished = Unfinished::beside(path)?;
    let db = unfinished.database(builder)?;
    prepare(&db, Versions::Present)?;
    db.close().map_err(unavailable)?;
    unfinished.publish()
}

/// A file under the name `PATH.new`, readable by its owner alone. It is gone unless it is published.
pub(super) struct Unfinished<'p> {
    path: &'p Path,
    at: PathBuf,
    published: bool,
}

impl<'p> Unfinished<'p> {
    /// Takes the name `PATH.new`; what an interrupted run left there is overwritten.
    pub(super) fn beside(path: &'p Path) -> Result<Self, StoreError> {
        let mut at = path.as_os_str().to_owned();
        at.push(".new");
        let at = PathBuf::from(at);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&at).map_err(|error| cannot_make(&at, &error))?;
        // Whoever is at work on it holds a lock.
        if let Err(fs::TryLockError::WouldBlock) = file.try_lock() {
            return Err(StoreError::Unavailable(format!("{} is being made by another process", at.display())));
        }
        file.set_len(0).map_err(|error| cannot_make(&at, &error))?;
        Ok(Self { path, at, published: false })
    }

    pub(super) fn database(&self, builder: &Builder) -> Result<Database, StoreError> {
        builder.create(&self.at).map_err(|error| refusal(&self.at, error))
    }

    pub(super) fn path(&self) -> &Path {
        &self.at
    }

    /// Gives the file its name, unless something has that name by now, and makes the name durable: redb does not, and
    /// without it a power cut can lose the whole file.
    pub(super) fn publish(mut self) -> Result<(), StoreError> {
        let failed = |error: io::Error| cannot_make(self.path, &error);
        File::open(&self.at).and_then(|file| file.sync_all()).map_err(failed)?;
        // A link is refused where the name exists; a rename would take it away from another store.
        match fs::hard_link(&self.at, self.path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(failed(error)),
            Err(_) if !self.path.exists() => fs::rename(&self.at, self.path).map_err(failed)?,
            Err(error) => return Err(failed(error)),
        }
        let _ = fs::remove_file(&self.at);
        self.published = true;
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or_else(|| Path::new("."));
        File::open(parent).and_then(|directory| directory.sync_all()).map_err(failed)
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.published {
            // If it stays, the next run overwrites it.
            let _ = fs::remove_file(&self.at);
        }
    }
}

fn cannot_make(path: &Path, error: &io::Error) -> StoreError {
    let next = match (error.kind(), path.parent()) {
        (io::ErrorKind::NotFound, Some(parent)) => format!("; make the directory {} first", parent.display()),
        (io::ErrorKind::PermissionDenied, Some(parent)) => {
            format!("; let the user of this program write to the directory {}", parent.display())
        }
        _ => String::new(),
    };
    StoreError::Unavailable(format!("cannot make {}: {error}{next}", path.display()))
}

pub(super) fn refusal(path: &Path, error: DatabaseError) -> StoreError {
    let shown = path.display();
    match error {
        DatabaseError::DatabaseAlreadyOpen => StoreError::Unavailable(format!("{shown} {IN_USE}")),
        DatabaseError::Storage(redb::StorageError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
            StoreError::Corrupt(format!(
                "{shown} is not a store of this program, or is damaged ({error}); check the path, or restore it from a backup"
            ))
        }
        DatabaseError::Storage(redb::StorageError::Corrupted(detail)) => {
            StoreError::Corrupt(format!("{shown} is damaged ({detail}); restore it from a backup"))
        }
        other => StoreError::Unavailable(format!("cannot open {shown}: {other}")),
    }
}

/// Makes the tables of a new file, and refuses a file of a version that is not asked for.
pub(super) fn prepare(db: &Database, versions: Versions) -> Result<(), StoreError> {
    match prepare_version(db, SCHEMA_VERSION)? {
        None => Ok(()),
        Some(found) => known(db, found, versions),
    }
}

/// Makes the tables of a new file of this version; gives the version of a file that has its tables.
pub(super) fn prepare_version(db: &Database, version: u64) -> Result<Option<u64>, StoreError> {
    let mut transaction = db.begin_write().map_err(unavailable)?;
    transaction.set_two_phase_commit(true);
    {
        let mut meta = transaction.open_table(META).map_err(unavailable)?;
        let found = meta.get(version::NAME).map_err(unavailable)?.map(|version| version.value());
        match found {
            Some(found) => return Ok(Some(found)),
            None => drop(meta.insert(version::NAME, version).map_err(unavailable)?),
        }
        transaction.open_table(ROWS).map_err(unavailable)?;
    }
    transaction.commit().map_err(unavailable)?;
    Ok(None)
}

/// Refuses what this program did not write, without changing it.
pub(super) fn recognize(db: &impl ReadableDatabase, path: &Path, versions: Versions) -> Result<(), StoreError> {
    let meta = match db.begin_read().map_err(unavailable)?.open_table(META) {
        Err(redb::TableError::TableDoesNotExist(_)) => None,
        meta => Some(meta.map_err(unavailable)?),
    };
    let version = meta.map(|meta| meta.get(version::NAME).map(|version| version.map(|version| version.value())));
    match version.transpose().map_err(unavailable)?.flatten() {
        Some(version) => known(db, version, versions),
        None => Err(StoreError::Corrupt(format!("{} is a redb file, but no store of this program", path.display()))),
    }
}

/// Refuses versions that are not asked for.
fn known(db: &impl ReadableDatabase, version: u64, versions: Versions) -> Result<(), StoreError> {
    versioned::known(version).map_err(StoreError::Unavailable)?;
    if versions == Versions::Upgradable {
        return Ok(());
    }
    let rows = db.begin_read().map_err(unavailable)?.open_table(ROWS).map_err(unavailable)?;
    let half = rows.get(marks::upgrade().as_bytes()).map_err(unavailable)?.is_some();
    if version == SCHEMA_VERSION && !half { Ok(()) } else { Err(StoreError::Unavailable(needs_upgrade(version))) }
}

/// Adds rows that are not there yet, in one transaction.
pub(super) fn add(db: &Database, records: &[Record]) -> Result<(), StoreError> {
    let mut transaction = db.begin_write().map_err(unavailable)?;
    transaction.set_two_phase_commit(true);
    {
        let mut rows = transaction.open_table(ROWS).map_err(unavailable)?;
        for Record { key, revision, value } in records {
            let stored = row::encode(key, *revision, value);
            drop(rows.insert(key.as_bytes(), stored.as_slice()).map_err(unavailable)?);
        }
    }
    transaction.commit().map_err(unavailable)
}
