//! The file of an engine: creates it atomically, opens it, and explains to the operator why it cannot be opened.

use super::{
    holder, row,
    tables::{META, ROWS, unavailable},
    version,
    watched::{Watch, Watched},
};
use crate::store::{Absent, Record, SCHEMA_VERSION, StoreError, archive, marks, needs_upgrade, versioned};
use redb::{Builder, Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, backends::FileBackend};
use rustix::{
    fs::{Advice, FlockOperation, fadvise, flock},
    io::Errno,
};
use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::FileTypeExt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::NamedTempFile;

/// How often the opening of a file that another process has open is retried.
const RETRIES: u32 = 5;
/// Pause before each retry.
const RETRY_PAUSE: Duration = Duration::from_millis(40);

/// Which schema versions of a file are accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Versions {
    /// The present version, without an incomplete upgrade.
    Present,
    /// The present version and every version that can be upgraded.
    Upgradable,
}

/// Opens the file at `path`.
pub(super) fn open(
    path: &Path,
    cache_bytes: usize,
    absent: Absent,
    versions: Versions,
) -> Result<Database, StoreError> {
    open_watched((path, cache_bytes), absent, versions, Pages::Trusted, &Watch::default())
}

/// Whether all pages of a file are read and checked when it is opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Pages {
    Checked,
    Trusted,
}

/// Opens the file at `path`; `watch` notes its first failure.
pub(super) fn open_watched(
    (path, cache_bytes): (&Path, usize),
    absent: Absent,
    versions: Versions,
    pages: Pages,
    watch: &Watch,
) -> Result<Database, StoreError> {
    let make = absent == Absent::Create;
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes).set_check_integrity_on_open(pages == Pages::Checked);
    // redb checks page checksums only during a repair, so a damaged page can make it panic.
    let open = AssertUnwindSafe(|| {
        refuse_other_kinds(path)?;
        if make && !path.exists() {
            create_file(&builder, path)?;
        }
        refuse_empty(path)?;
        let open = || {
            let file = File::options().read(true).write(true).open(path);
            let file = file.map_err(|error| DatabaseError::Storage(StorageError::Io(error)))?;
            builder.create_with_backend(Watched::new(FileBackend::new(file)?, watch))
        };
        let db = wait_for(open, |error| matches!(error, DatabaseError::DatabaseAlreadyOpen));
        let db = db.map_err(|error| refusal(path, error))?;
        if make { prepare(&db, versions) } else { recognize(&db, path, versions) }?;
        Ok(db)
    });
    catch_unwind(open).unwrap_or_else(|_| Err(damaged(path)))
}

/// Drops what the system has cached of a file, so that its check reads what is on the disk. After a failed sync the cached pages
/// need not be the same. Pages that wait to be written stay; the recovery syncs them.
pub(super) fn drop_cached_pages(path: &Path) {
    if let Ok(file) = File::open(path) {
        // It is advice: a file system without page cache refuses it.
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
    }
}

/// The file beside a store whose disk failed. While it is there, what the disk has of the store is not known.
pub(super) fn unchecked(path: &Path) -> PathBuf {
    let mut name = target_of(path).into_os_string();
    name.push(".unchecked");
    name.into()
}

/// Tries again while another process has the file open, because a process that only reads the version of a file holds the lock for a
/// moment, and one that ends closes its file.
pub(super) fn wait_for<T, E>(open: impl Fn() -> Result<T, E>, is_in_use: impl Fn(&E) -> bool) -> Result<T, E> {
    for _ in 0..RETRIES {
        match open() {
            Err(error) if is_in_use(&error) => std::thread::sleep(RETRY_PAUSE),
            opened => return opened,
        }
    }
    open()
}

/// Refuses what is no regular file. A program that opened a named pipe would wait for ever.
pub(super) fn refuse_other_kinds(path: &Path) -> Result<(), StoreError> {
    // The opening reports that there is nothing, or that it may not be looked at.
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    let shown = path.display();
    if found.is_file() {
        return match other_kind(path) {
            Some(kind) => Err(StoreError::Unavailable(format!("{shown} is {kind}, and no store; check the path"))),
            None => Ok(()),
        };
    }
    if found.is_dir() {
        let file = path.join("rental.redb");
        return Err(StoreError::Unavailable(format!(
            "{shown} is a directory, and a store is a file: name the file, such as redb:{}",
            file.display()
        )));
    }
    let kind = match found.file_type() {
        kind if kind.is_fifo() => "a named pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Err(StoreError::Unavailable(format!("{shown} is {kind}, and a store is a regular file; check the path")))
}

/// What a regular file is, if its beginning shows that it never was a store. A store whose beginning is damaged is none of these.
fn other_kind(path: &Path) -> Option<&'static str> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(512).read_to_end(&mut head).ok()?;
    let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0x80..);
    match head.as_slice() {
        [] => None,
        head if head.starts_with(archive::MAGIC) => Some("a backup (`rental-cli store restore` makes a store of it)"),
        head if head.starts_with(b"SQLite format 3\0") => Some("a database of SQLite"),
        head if head.starts_with(b"PK\x03\x04") => Some("a zip file, such as a spreadsheet"),
        head if head.iter().all(is_text) && (head.contains(&b'\n') || std::str::from_utf8(head).is_ok()) => {
            Some("a text file, such as CSV or JSON")
        }
        _ => None,
    }
}

/// Refuses a file of 0 bytes, in which redb would create a new store. A crash cannot leave such a file, because
/// [`create_file`] publishes only complete files. So the data of an existing store was lost.
fn refuse_empty(path: &Path) -> Result<(), StoreError> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() && metadata.len() == 0 => Err(StoreError::DamagedStore(format!(
            "{} is empty (0 bytes), so it is no store; restore it from a backup, or remove it to begin with a new store",
            path.display()
        ))),
        // redb reports every other problem.
        _ => Ok(()),
    }
}

/// Creates a file under a temporary name and renames it when it is complete. A crash leaves no incomplete file at `path`.
/// When another process creates the file first, that file stays.
fn create_file(builder: &Builder, path: &Path) -> Result<(), StoreError> {
    let unfinished = Unfinished::beside(path)?;
    let db = unfinished.database(builder)?;
    prepare(&db, Versions::Present)?;
    db.close().map_err(unavailable)?;
    match unfinished.publish() {
        // The one that created it has removed the unfinished file.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists || path.exists() => Ok(()),
        published => published.map_err(|error| cannot_make(path, &error)),
    }
}

/// End of the name of an unfinished file.
const NEW: &str = ".new";
/// Length of the random part of its name.
const RANDOM: usize = 12;

/// `path`; if it is a symbolic link, what it leads to.
fn target_of(path: &Path) -> PathBuf {
    let target = fs::read_link(path).map(|target| directory_of(path).join(target));
    target.unwrap_or_else(|_| path.to_owned())
}

/// Removes the unfinished files beside `path` that killed processes have left: they have the data of what was restored. One that
/// a process has open is left alone.
pub(super) fn remove_left_over(path: &Path) {
    let path = target_of(path);
    let begin = path.file_name().map(|name| name.to_string_lossy().into_owned() + ".").unwrap_or_default();
    let is_unfinished = |name: &str| {
        let random = name.strip_prefix(&begin).and_then(|rest| rest.strip_suffix(NEW));
        random.is_some_and(|random| random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    };
    for found in fs::read_dir(directory_of(&path)).into_iter().flatten().flatten() {
        if !found.file_name().to_str().is_some_and(is_unfinished) {
            continue;
        }
        let file = File::open(found.path()).ok().filter(|_| found.file_type().is_ok_and(|kind| kind.is_file()));
        if file.is_some_and(|file| flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()) {
            let _ = fs::remove_file(found.path());
        }
    }
}

/// A new file with a temporary name that no other process uses, `PATH.RANDOM.new`, readable by its owner only. It is removed
/// on drop unless published; a crash leaves it, and the next start on `PATH` or restore to it removes it.
pub(super) struct Unfinished {
    path: PathBuf,
    file: NamedTempFile,
}

impl Unfinished {
    /// Creates the file in the directory of `path`. If `path` is a symbolic link, that is the directory of its target.
    pub(super) fn beside(path: &Path) -> Result<Self, StoreError> {
        let path = target_of(path);
        let mut prefix = path.file_name().unwrap_or_default().to_owned();
        prefix.push(".");
        let file =
            tempfile::Builder::new().prefix(&prefix).rand_bytes(RANDOM).suffix(NEW).tempfile_in(directory_of(&path));
        let file = file.map_err(|error| cannot_make(&path, &error))?;
        Ok(Self { path, file })
    }

    pub(super) fn database(&self, builder: &Builder) -> Result<Database, StoreError> {
        builder.create(self.path()).map_err(|error| refusal(self.path(), error))
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Gives the file its name, unless a file with this name exists. Then syncs the directory, which redb does not do:
    /// without it a power failure can lose the whole file.
    pub(super) fn publish(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        self.file.persist_noclobber(&self.path)?;
        File::open(directory_of(&self.path))?.sync_all()
    }
}

pub(super) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

pub(super) fn cannot_make(path: &Path, error: &io::Error) -> StoreError {
    let next = match (error.kind(), path.parent()) {
        (io::ErrorKind::NotFound, Some(parent)) => format!("; make the directory {} first", parent.display()),
        (io::ErrorKind::PermissionDenied, Some(parent)) => {
            format!("; let the user of this program write to the directory {}", parent.display())
        }
        (io::ErrorKind::IsADirectory, _) => "; move this directory away".to_owned(),
        _ => String::new(),
    };
    StoreError::Unavailable(format!("cannot make {}: {error}{next}", path.display()))
}

pub(super) fn damaged(path: &Path) -> StoreError {
    StoreError::DamagedStore(format!("{} is damaged; restore it from a backup", path.display()))
}

pub(super) fn in_use(path: &Path) -> StoreError {
    let by = holder::of(path).map(|who| format!(": {who}")).unwrap_or_default();
    StoreError::InUse(format!("{} is in use by another process{by}", path.display()))
}

pub(super) fn refusal(path: &Path, error: DatabaseError) -> StoreError {
    let shown = path.display();
    match error {
        DatabaseError::DatabaseAlreadyOpen => in_use(path),
        DatabaseError::Storage(StorageError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
            StoreError::DamagedStore(format!(
                "{shown} is not a store of this program, or is damaged ({error}); check the path, or restore it from a backup"
            ))
        }
        DatabaseError::Storage(StorageError::Corrupted(detail)) => {
            StoreError::DamagedStore(format!("{shown} is damaged ({detail}); restore it from a backup"))
        }
        // It was cut, or one of its pages names another one behind the end.
        DatabaseError::Storage(StorageError::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
            StoreError::DamagedStore(format!("{shown} is damaged (a part of it is missing); restore it from a backup"))
        }
        DatabaseError::Storage(StorageError::Io(error)) if Errno::from_io_error(&error) == Some(Errno::IO) => {
            StoreError::DamagedStore(format!(
                "{shown} cannot be read ({error}): look at the disk; restore it from a backup"
            ))
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
pub(super) fn recognize(db: &impl ReadableDatabase, path: &Path, versions: Versions) -> Result<(), StoreError> {
    let meta = match db.begin_read().map_err(unavailable)?.open_table(META) {
        Err(redb::TableError::TableDoesNotExist(_)) => None,
        meta => Some(meta.map_err(unavailable)?),
    };
    let version = meta.map(|meta| meta.get(version::NAME).map(|version| version.map(|version| version.value())));
    match version.transpose().map_err(unavailable)?.flatten() {
        Some(version) => check_version(db, version, versions),
        None => {
            Err(StoreError::DamagedStore(format!("{} is a redb file, but no store of this program", path.display())))
        }
    }
}

/// Checks that the version is accepted.
fn check_version(db: &impl ReadableDatabase, version: u64, versions: Versions) -> Result<(), StoreError> {
    accept(version, versions, || {
        let rows = db.begin_read().map_err(unavailable)?.open_table(ROWS).map_err(unavailable)?;
        Ok(rows.get(marks::upgrade().as_bytes()).map_err(unavailable)?.is_some())
    })
}

/// Checks that a version is accepted; `half` says whether an upgrade is incomplete.
pub(super) fn accept(
    version: u64,
    versions: Versions,
    half: impl FnOnce() -> Result<bool, StoreError>,
) -> Result<(), StoreError> {
    versioned::known(version).map_err(StoreError::Unavailable)?;
    if versions == Versions::Upgradable || (version == SCHEMA_VERSION && !half()?) {
        return Ok(());
    }
    Err(StoreError::NeedsUpgrade(needs_upgrade(version)))
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
