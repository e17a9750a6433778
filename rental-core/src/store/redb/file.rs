//! The file of an engine: creates it atomically, opens it, and explains to the operator why it cannot be opened.

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

/// A part of the error's text when another process has the file open.
pub const IN_USE: &str = "is in use by another process";

/// Which schema versions of a file are accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Versions {
    /// The present version, without an incomplete upgrade.
    Present,
    /// The present version and every version that can be upgraded.
    Upgradable,
}

/// What [`open`] does when the file does not exist.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Absent {
    /// Creates the file.
    Create,
    /// Fails.
    Fail,
}

/// Opens the file at `path`.
pub(super) fn open(
    path: &Path,
    cache_bytes: usize,
    absent: Absent,
    versions: Versions,
) -> Result<Database, StoreError> {
    let make = absent == Absent::Create;
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes);
    // redb checks page checksums only during a repair, so a damaged page can make it panic.
    let open = AssertUnwindSafe(|| {
        if make && !path.exists() {
            create_file(&builder, path)?;
        }
        refuse_empty(path)?;
        let db = if make { builder.create(path) } else { builder.open(path) }.map_err(|error| refusal(path, error))?;
        if make { prepare(&db, versions) } else { recognize(&db, path, versions) }?;
        Ok(db)
    });
    let damaged = || StoreError::Corrupt(format!("{} is damaged; restore it from a backup", path.display()));
    catch_unwind(open).unwrap_or_else(|_| Err(damaged()))
}

/// Refuses a file of 0 bytes, in which redb would create a new store. A crash cannot leave such a file, because
/// [`create_file`] publishes only complete files. So the data of an existing store was lost.
fn refuse_empty(path: &Path) -> Result<(), StoreError> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() && metadata.len() == 0 => Err(StoreError::Corrupt(format!(
            "{} is empty (0 bytes), so it is no store; restore it from a backup, or remove it to begin with a new store",
            path.display()
        ))),
        // redb reports every other problem.
        _ => Ok(()),
    }
}

/// Creates a file under a temporary name and renames it when it is complete. A crash leaves no incomplete file at `path`.
fn create_file(builder: &Builder, path: &Path) -> Result<(), StoreError> {
    let unfinished = Unfinished::beside(path)?;
    let db = unfinished.database(builder)?;
    prepare(&db, Versions::Present)?;
    db.close().map_err(unavailable)?;
    unfinished.publish()
}

/// A new file with the temporary name `PATH.new`, readable by its owner only. It is removed on drop unless published.
pub(super) struct Unfinished<'p> {
    path: &'p Path,
    at: PathBuf,
    published: bool,
}

impl<'p> Unfinished<'p> {
    /// Creates `PATH.new`, or empties the one that an interrupted run left.
    pub(super) fn beside(path: &'p Path) -> Result<Self, StoreError> {
        let mut at = path.as_os_str().to_owned();
        at.push(".new");
        let at = PathBuf::from(at);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&at).map_err(|error| cannot_make(&at, &error))?;
        // A process that is writing the file holds a lock on it.
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

    /// Gives the file its name, unless a file with this name exists. Then syncs the directory, which redb does not do:
    /// without it a power failure can lose the whole file.
    pub(super) fn publish(mut self) -> Result<(), StoreError> {
        let failed = |error: io::Error| cannot_make(self.path, &error);
        File::open(&self.at).and_then(|file| file.sync_all()).map_err(failed)?;
        // A hard link fails when the name exists; a rename would replace the other file.
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
            // If the file cannot be removed, the next run overwrites it.
            let _ = fs::remove_file(&self.at);
        }
    }
}

fn cannot_make(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Unavailable(format!("cannot make {}: {error}", path.display()))
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

/// Creates the tables of a new file; checks the version of any other file.
pub(super) fn prepare(db: &Database, versions: Versions) -> Result<(), StoreError> {
    match prepare_version(db, SCHEMA_VERSION)? {
        None => Ok(()),
        Some(found) => check_version(db, found, versions),
    }
}

/// Creates the tables and sets the version of a new file. Returns the version of a file that has its tables already.
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

/// Checks, without a change, that this program wrote the file and that its version is accepted.
pub(super) fn recognize(db: &Database, path: &Path, versions: Versions) -> Result<(), StoreError> {
    let meta = match db.begin_read().map_err(unavailable)?.open_table(META) {
        Err(redb::TableError::TableDoesNotExist(_)) => None,
        meta => Some(meta.map_err(unavailable)?),
    };
    let version = meta.map(|meta| meta.get(version::NAME).map(|version| version.map(|version| version.value())));
    match version.transpose().map_err(unavailable)?.flatten() {
        Some(version) => check_version(db, version, versions),
        None => Err(StoreError::Corrupt(format!("{} is a redb file, but no store of this program", path.display()))),
    }
}

/// Checks that the version is accepted.
fn check_version(db: &Database, version: u64, versions: Versions) -> Result<(), StoreError> {
    versioned::known(version).map_err(StoreError::Unavailable)?;
    if versions == Versions::Upgradable {
        return Ok(());
    }
    let rows = db.begin_read().map_err(unavailable)?.open_table(ROWS).map_err(unavailable)?;
    let half = rows.get(marks::upgrade().as_bytes()).map_err(unavailable)?.is_some();
    if version == SCHEMA_VERSION && !half { Ok(()) } else { Err(StoreError::Unavailable(needs_upgrade(version))) }
}

/// Writes rows in one transaction.
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
