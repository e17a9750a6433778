//! What programs need of a store beside its calls: a URL names its place, the place opens or restores it, and the open
//! store tells about itself, takes snapshots and closes.

use super::{
    Answer, CommitObserver, DamagedRow, Key, Record, Span, StoreError, Tally, Versioned,
    archive::{ArchiveError, Reader, Summary},
};
use crate::value::Timestamp;
use bytes::Bytes;
use std::{ffi::OsString, fmt, future::Future, io::Read, path::Path, pin::Pin, sync::Arc, time::Duration};
use uuid::Uuid;

/// One engine in the table of engines, as URLs name it.
#[derive(Clone, Copy, Debug)]
pub struct Scheme {
    /// The form of its URLs, for messages: `redb:PATH`.
    pub form: &'static str,
    /// Whether several servers can use one store at the same time. Otherwise the store is a file of one process.
    pub shared: bool,
    /// The place that a URL names; `None` for a URL of another engine. The text of an error contains no value of the URL.
    pub parse: fn(&str) -> Option<ParsedPlace>,
}

/// The place of a URL, or a sentence that says what is wrong with it.
pub type ParsedPlace = Result<Arc<dyn Place>, String>;

/// Where a store is, parsed from a URL. Neither `Display` nor `Debug` shows a password.
pub trait Place: fmt::Debug + fmt::Display + Send + Sync {
    /// The data file; `None` when the store is no file of this machine.
    fn file(&self) -> Option<&Path>;

    /// What the operator should check when the store cannot be used.
    fn advice(&self) -> &'static str;

    /// Opens the store. Without a store, creates an empty one or fails, as `opening.absent` says.
    fn open<'a>(&'a self, access: Access, opening: &'a Opening<'a>) -> Answer<'a, Arc<dyn Engine>>;

    /// Creates the store from an archive, and verifies it by reading it back.
    fn restore<'a>(&'a self, opening: &'a Opening<'a>, restore: Restore<'a>) -> Restoring<'a>;

    /// Maintenance of a store that no program has open.
    ///
    /// # Errors
    /// The engine needs none; the text says why.
    fn maintenance(&self) -> Result<&dyn Maintenance, &'static str>;
}

/// Which schema versions [`Place::open`] accepts, and whether it may change the store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    /// The present version, without an incomplete upgrade.
    Present,
    /// Also every version that can be upgraded; see [`crate::upgrade::state`].
    Upgradable,
    /// As `Upgradable`, for reading alone. Commits to a file stay in memory and are lost when the store is closed. The
    /// caller must not commit to a database.
    Unchanged,
}

/// What [`Place::open`] does when there is no store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Absent {
    /// Creates an empty store.
    Create,
    /// Fails.
    Fail,
}

/// What a program gives to an engine that opens a store.
pub struct Opening<'a> {
    /// Size of the page cache of an engine that has one, in bytes.
    pub cache_bytes: usize,
    /// What to do when there is no store.
    pub absent: Absent,
    /// Identifies this process among those that share the store. It must be new at every start.
    pub writer: Uuid,
    /// Longest single wait for a database. One call can make up to eight such waits.
    pub patience: Duration,
    /// The environment of the program, which this crate does not read itself.
    pub environment: &'a dyn Environment,
}

/// Environment variables and small files, for passwords and certificates.
pub trait Environment: Sync {
    /// The value of an environment variable.
    fn variable(&self, name: &str) -> Option<OsString>;

    /// The content of a file.
    ///
    /// # Errors
    /// A sentence for the operator, which names the file.
    fn file(&self, path: &Path) -> Result<Vec<u8>, String>;

    /// The content of a file with passwords, which a program can refuse when other users can read it.
    ///
    /// # Errors
    /// A sentence for the operator, which names the file.
    fn secret_file(&self, path: &Path) -> Result<Vec<u8>, String> {
        self.file(path)
    }
}

/// An open store. The last owner that drops it closes it.
pub trait Engine: Versioned {
    /// The name of the engine, as the status shows it.
    fn name(&self) -> &'static str;

    /// Whether other servers can change the store.
    fn is_shared(&self) -> bool {
        false
    }

    /// The clock of the machine that keeps the data; `None` for an engine on this machine.
    fn time(&self) -> Answer<'_, Option<Timestamp>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Reports the commits of this process from now on to `observer`, which can refuse them. Only the first call has an effect.
    fn observe(&self, observer: Arc<dyn CommitObserver>);

    /// Counts the changes of the batches that are committed from now on in `tally`. Only the first call has an effect.
    fn count(&self, tally: Arc<Tally>);

    /// Completes when the store has failed permanently, with the reason. The process should stop then. Never completes for
    /// an engine that recovers by itself.
    fn failed(&self) -> Pin<Box<dyn Future<Output = String> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    /// The bytes of a row as the engine stores them, also those of a damaged row; `None` if there is no such row.
    fn stored<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Bytes>> {
        Box::pin(async move {
            let found = self.get(std::slice::from_ref(key)).await?.pop().flatten();
            Ok(found.map(|record| record.value))
        })
    }

    /// Takes a snapshot of the present state, for long reads.
    fn snapshot(&self) -> Answer<'_, Box<dyn Snapshot>>;

    /// Creates or replaces views for people who query the store with SQL, each a name and its statement. An engine without
    /// SQL ignores them. The error says why a view could not be created.
    fn make_views<'a>(&'a self, views: &'a [(&'a str, &'a str)]) -> Finished<'a> {
        let _ = views;
        Box::pin(std::future::ready(Ok(())))
    }

    /// Commits the queued batches and closes the store. When there are other owners, the last of them closes it.
    fn close(self: Arc<Self>) -> Answer<'static, ()>;
}

/// All rows of a store at one moment. Later writes do not change it. Drop it soon: an engine keeps replaced rows for it.
pub trait Snapshot: Send {
    /// Reads the first rows of `rest` by ascending key, a few hundred at most, and sets `rest.from` behind the last one. The
    /// list is empty at the end. Ignores `rest.order` and `rest.follow`. Fails when one of the rows is damaged.
    fn next<'a>(&'a mut self, rest: &'a mut Span) -> Answer<'a, Vec<Record>>;
}

/// The future of an operation whose error is a sentence for the operator.
pub type Finished<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// The future of [`Place::restore`]: the totals of the archive.
pub type Restoring<'a> = Pin<Box<dyn Future<Output = Result<Summary, RestoreError>> + 'a>>;

/// Upgrades a new store whose rows have an older version.
pub type Upgrading<'a> =
    dyn for<'s> Fn(&'s dyn Versioned) -> Pin<Box<dyn Future<Output = Result<(), String>> + 's>> + 'a;

/// An archive that becomes a store.
pub struct Restore<'a> {
    /// The archive, of which nothing but the first line has been read.
    pub archive: &'a mut Reader<Box<dyn Read>>,
    /// Whether a row belongs into the new store.
    pub moves: fn(&Key) -> bool,
    /// Is called with the number of rows that were written and read back so far.
    pub progress: &'a mut dyn FnMut(u64),
    /// Is called for an archive of an older version, after the verification.
    pub upgrade: &'a Upgrading<'a>,
}

/// Why a restore failed.
#[derive(Debug)]
pub enum RestoreError {
    /// The archive cannot be read.
    Archive(ArchiveError),
    /// The rows of the archive have this schema version, which is not supported.
    Version(u64),
    /// There is a store already, which was not changed: what was found, and what to do.
    Exists(String, &'static str),
    /// The new store cannot be written or verified.
    Store(StoreError),
}

impl From<StoreError> for RestoreError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<ArchiveError> for RestoreError {
    fn from(error: ArchiveError) -> Self {
        Self::Archive(error)
    }
}

/// Maintenance of a store that no program has open.
pub trait Maintenance {
    /// Opens the store for an inspection, which does not change it, and checks every page in use.
    ///
    /// # Errors
    /// There is no store, it is open in another process, has another version, or is damaged so that it cannot be opened.
    fn inspect(&self, cache_bytes: usize) -> Result<Box<dyn Inspection>, StoreError>;

    /// Checks every page in use, of a store of any version that can be upgraded. Does not change the store.
    ///
    /// # Errors
    /// [`StoreError::DamagedStore`] when a page is damaged; otherwise as for [`Maintenance::inspect`].
    fn check_pages(&self, cache_bytes: usize) -> Result<(), StoreError>;

    /// Returns the space of deleted and replaced rows to the file system.
    ///
    /// # Errors
    /// A sentence for the operator: the store is open in another process, damaged, of another version, or cannot be written.
    fn compact(&self, cache_bytes: usize) -> Result<Compacted, StoreError>;
}

/// The result of a compaction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Compacted {
    /// Size of the file before compaction, in bytes.
    pub before: u64,
    /// Size of the file after compaction, in bytes.
    pub after: u64,
}

/// A store that no program has open, read-only. Its rows can be read also when some pages are damaged.
pub trait Inspection {
    /// Whether every page in use has a correct checksum.
    ///
    /// # Errors
    /// The engine's description of the damage.
    fn pages(&self) -> Result<(), &str>;

    /// Number of rows according to the store's own counter; `None` when it cannot be read.
    fn count(&self) -> Option<u64>;

    /// Reads the record at `key`.
    ///
    /// # Errors
    /// The row is damaged, or the pages that lead to it are.
    fn get(&self, key: &Key) -> Result<Option<Record>, StoreError>;

    /// Reads all rows by ascending key and calls `each` for every finding, until `each` returns false.
    fn walk(&self, each: &mut dyn FnMut(Finding) -> bool);
}

/// One finding of [`Inspection::walk`].
#[derive(Debug)]
pub enum Finding {
    /// A row with a correct checksum.
    Row(Record),
    /// A row that is damaged, with its key and the reason.
    Damaged(Box<DamagedRow>),
    /// An unknown number of rows after this key cannot be read; `None` at the start of the store. The text says why.
    Gap(Option<Key>, String),
}
