//! The store: an ordered key-value store with three calls: get, scan, and commit of a batch.
//!
//! An engine checks the preconditions of a batch. It knows no resource, no index and no rule. `conformance.rs` is the
//! test suite of the store's contract, and every engine passes it.

pub mod archive;
#[cfg(feature = "conformance")]
pub mod conformance;
mod engine;
mod engines;
pub mod marks;
mod pages;
mod span;
mod tally;
pub(crate) mod versioned;

pub use engine::{
    Absent, Access, Compacted, Engine, Environment, Finding, Finished, Inspection, Maintenance, Opening, ParsedPlace,
    Place, Restore, RestoreError, Restoring, Scheme, Snapshot, Upgrading,
};
pub use engines::*;
pub use pages::Pages;
pub(crate) use pages::move_behind;
pub use span::{Follow, Key, Order, Span, after};
pub use tally::{Change, Share, ShareOf, Tally};
pub use versioned::{OLDEST_VERSION, SCHEMA_VERSION, Versioned, needs_upgrade};

use bytes::Bytes;
use std::{cell::Cell, future::Future, pin::Pin};

/// How many times a record was written: 1 when it is new. An ETag is this number.
pub type Revision = u64;

/// A value with its key and revision. Index entries and other markers have revision 0.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Record {
    /// The key, unique in the store.
    pub key: Key,
    /// How often the record was written.
    pub revision: Revision,
    /// For a resource: the JSON that a GET returns, byte for byte.
    pub value: Bytes,
}

/// A precondition of a batch.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Check {
    /// The key has exactly this revision.
    At(Key, Revision),
    /// The key has a value.
    Present(Key),
    /// The key has no value.
    Absent(Key),
}

impl Check {
    /// The key whose revision is checked.
    #[must_use]
    pub fn key(&self) -> &Key {
        match self {
            Self::At(key, _) | Self::Present(key) | Self::Absent(key) => key,
        }
    }

    /// Whether the check holds when the key has this revision; `None` when the key has no value.
    #[must_use]
    pub fn holds(&self, found: Option<Revision>) -> bool {
        match self {
            Self::At(_, revision) => found == Some(*revision),
            Self::Present(_) => found.is_some(),
            Self::Absent(_) => found.is_none(),
        }
    }
}

/// What the caller of a put knows about the key's earlier value.
///
/// It is a hint: a put sets the value in both cases. With `New` an engine may use a cheaper statement, but it must detect
/// a wrong `New` and then behave as for `Any`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Prior {
    /// The key has no value: it contains a fresh id, or the same batch checks that it is absent.
    New,
    /// The key may have a value.
    Any,
}

/// One change of one key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Write {
    /// Sets the value and its revision.
    Put(Key, Revision, Bytes, Prior),
    /// Removes the key. A key without a value is no error.
    Delete(Key),
}

/// Checks and writes that the store applies atomically and durably: all writes if every check holds, otherwise none.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Batch {
    /// Preconditions. All must hold.
    pub checks: Vec<Check>,
    /// Changes, applied in this order.
    pub writes: Vec<Write>,
}

impl Batch {
    /// Adds a record with revision 1, and the check that its key has no value.
    pub fn insert(&mut self, key: Key, value: Bytes) {
        self.checks.push(Check::Absent(key.clone()));
        self.writes.push(Write::Put(key, 1, value, Prior::New));
    }

    /// Replaces a record, and adds the check that its revision is still `seen`.
    pub fn replace(&mut self, key: Key, seen: Revision, value: Bytes) {
        self.checks.push(Check::At(key.clone(), seen));
        self.writes.push(Write::Put(key, seen + 1, value, Prior::Any));
    }

    /// Sets a key without a value, such as an index entry.
    pub fn mark(&mut self, key: Key, prior: Prior) {
        self.put(key, Bytes::new(), prior);
    }

    /// Sets a value with revision 0, such as a due row.
    pub fn put(&mut self, key: Key, value: Bytes, prior: Prior) {
        self.writes.push(Write::Put(key, 0, value, prior));
    }

    /// Adds the removal of a key.
    pub fn delete(&mut self, key: Key) {
        self.writes.push(Write::Delete(key));
    }

    /// Whether the batch has no writes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }
}

/// The outcome of a commit. Neither outcome is an error.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Commit {
    /// Every check held; every write is durable and visible to every later read.
    Applied,
    /// The check of this key failed; nothing was written.
    Stale(Key),
}

/// A row whose stored bytes are not what a program wrote there, or an index entry without its record.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DamagedRow {
    /// The key of the damaged row. For an index entry without a record it is the key of the entry.
    pub key: Key,
    /// What is wrong with the row. The text does not name the key.
    pub reason: String,
    /// Whether the damage is of pages of the file, so that other rows can be missing beside this one.
    pub pages: bool,
}

/// What is wrong with a row that damaged pages hide, or that is beside such rows.
pub(crate) const PAGES_DAMAGED: &str = "pages of the file are damaged; stop the server and restore a backup";

impl DamagedRow {
    /// Boxed because scans return many results, and almost none of them is an error.
    #[must_use]
    pub fn new(key: Key, reason: impl Into<String>) -> Box<Self> {
        Box::new(Self { key, reason: reason.into(), pages: false })
    }

    /// The damage of a row that damaged pages hide, or that is beside rows which they hide.
    pub(crate) fn beside_damaged_pages(key: Key) -> Box<Self> {
        Box::new(Self { key, reason: PAGES_DAMAGED.into(), pages: true })
    }

    /// The damage of an index entry whose key is too short to contain an id.
    pub(crate) fn points_nowhere(entry: Key) -> Box<Self> {
        Self::new(entry, "it points nowhere")
    }

    /// The damage of an index entry whose record does not exist.
    pub(crate) fn dangling(entry: Key) -> Box<Self> {
        Self::new(entry, "its record is not there")
    }
}

impl std::fmt::Display for DamagedRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "row {}: {}", hex::encode(self.key.as_bytes()), self.reason)
    }
}

thread_local! {
    /// Set while an engine reads pages that can be damaged.
    pub(crate) static READS_PAGES: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread only says that pages of a file are damaged. The engine turns it into the damage of a row, so a
/// program need not log it.
#[must_use]
pub fn panic_is_damage() -> bool {
    READS_PAGES.get()
}

/// One row of a scan. A damaged row is an error in its place; the other rows of the scan are not affected.
pub type Scanned = Result<Record, Box<DamagedRow>>;

/// The key of a row, damaged or not. The next page begins after it.
#[must_use]
pub fn key_of(row: &Scanned) -> &Key {
    match row {
        Ok(record) => &record.key,
        Err(damaged) => &damaged.key,
    }
}

/// The records of a scan, for a caller that needs all of them.
///
/// # Errors
/// [`StoreError::Damaged`] for the first damaged row.
pub fn all_sound(rows: Vec<Scanned>) -> Result<Vec<Record>, StoreError> {
    rows.into_iter().collect::<Result<_, _>>().map_err(StoreError::Damaged)
}

/// Reads one record.
///
/// # Errors
/// The store is not available, or the row is damaged.
pub async fn get_one(store: &dyn Store, key: &Key) -> Result<Option<Record>, StoreError> {
    Ok(store.get(std::slice::from_ref(key)).await?.pop().flatten())
}

/// Reads these keys like [`Store::get`], with a result for each key. If a row is damaged, the keys are read one by one and
/// the results may come from different snapshots.
///
/// # Errors
/// The store is not available.
pub async fn get_each(
    store: &dyn Store,
    keys: &[Key],
) -> Result<Vec<Result<Option<Record>, Box<DamagedRow>>>, StoreError> {
    match store.get(keys).await {
        Ok(found) => return Ok(found.into_iter().map(Ok).collect()),
        Err(StoreError::Damaged(_)) => {}
        Err(error) => return Err(error),
    }
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        found.push(match get_one(store, key).await {
            Ok(record) => Ok(record),
            Err(StoreError::Damaged(row)) => Err(row),
            Err(error) => return Err(error),
        });
    }
    Ok(found)
}

/// An error of an engine. The text is for the log, not for clients of the API.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StoreError {
    /// The queue is full; nothing was written.
    Busy,
    /// The storage has no room; nothing was written. Reads go on, and writes too once there is room.
    NoRoom,
    /// The program refused the commit, because it cannot trust its clock; nothing was written. See [`CommitObserver::admit`].
    ClockJumped,
    /// The engine is not available; nothing was written.
    Unavailable(String),
    /// Another process has the store open.
    InUse(String),
    /// The store must be upgraded before it can be used; see [`needs_upgrade`].
    NeedsUpgrade(String),
    /// The engine failed during a commit: the batch may or may not have been applied. Read before a retry.
    Unknown(String),
    /// The store as a whole is damaged, or another program wrote it.
    DamagedStore(String),
    /// One row is damaged; all other rows can be read and written.
    Damaged(Box<DamagedRow>),
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Busy => f.write_str("the write queue is full"),
            Self::NoRoom => f.write_str("the storage has no room"),
            Self::ClockJumped => f.write_str("the clock of the server has jumped"),
            Self::Unavailable(detail) | Self::InUse(detail) | Self::NeedsUpgrade(detail) => {
                write!(f, "the store cannot serve: {detail}")
            }
            Self::Unknown(detail) => write!(f, "a commit may or may not have happened: {detail}"),
            Self::DamagedStore(detail) => write!(f, "the store is damaged: {detail}"),
            Self::Damaged(row) => write!(f, "the store is damaged: {row}"),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<Box<DamagedRow>> for StoreError {
    fn from(row: Box<DamagedRow>) -> Self {
        Self::Damaged(row)
    }
}

/// Counters of an engine's writer since the store was opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WriterStats {
    /// Number of durable commits.
    pub commits: u64,
    /// Number of batches that these commits applied.
    pub batches: u64,
}

/// Sees the commits of an engine, to measure them and to refuse them while the clock is wrong: the core reads no clock. A writer
/// makes one commit at a time.
pub trait CommitObserver: Send + Sync {
    /// Is asked before a batch is queued.
    ///
    /// # Errors
    /// The result of the commit, of which nothing is written.
    fn admit(&self) -> Result<(), StoreError>;

    /// The writer has taken batches and begins to commit them.
    fn begun(&self);

    /// The commit is durable; it has applied so many batches, at least one. A commit that failed is not reported.
    fn committed(&self, batches: usize);
}

/// The future that an engine's call returns. Embedded engines return completed futures.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// An ordered key-value store with atomic, conditional, durable batches.
pub trait Store: Send + Sync {
    /// Reads these keys from one snapshot, with the results in the order of `keys`.
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>>;

    /// Reads at most `limit` rows of `span` from one snapshot. A damaged row, or an index entry whose record does not
    /// exist, counts as a row and is an error in its place.
    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>>;

    /// Reads several spans like [`Store::scan`], each with a limit of its own. An engine reads all of them from one snapshot, and
    /// a database in one statement. The spans must not follow index entries.
    ///
    /// For a store around another one, whose `scan` does more than to call it, the default reads one span after the other.
    fn scan_each<'a>(&'a self, scans: &'a [(Span, usize)]) -> Answer<'a, Vec<Vec<Scanned>>> {
        Box::pin(async move {
            let mut found = Vec::with_capacity(scans.len());
            for (span, limit) in scans {
                found.push(self.scan(span, *limit).await?);
            }
            Ok(found)
        })
    }

    /// Applies `batch` if its checks hold. Reads that begin after the future completes see its writes.
    fn commit(&self, batch: Batch) -> Answer<'_, Commit>;

    /// Checks that the engine accepts writes now; the error says why it does not.
    fn ready(&self) -> Answer<'_, ()>;
}
