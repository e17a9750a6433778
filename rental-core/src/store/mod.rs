//! The store: ordered keys, three calls, and a batch of plain data.
//!
//! Engines check preconditions and nothing else; they know no resource, no index and no rule. Whatever an engine
//! promises is written down once, in `conformance.rs`, and every engine runs that suite.

pub mod archive;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod marks;
pub mod memory;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "redb")]
pub mod redb;
mod span;
pub(crate) mod versioned;

pub use span::{Follow, Key, Order, Span, after};
pub use versioned::{OLDEST_VERSION, SCHEMA_VERSION, Versioned, needs_upgrade};

use bytes::Bytes;
use std::{future::Future, pin::Pin};

/// How many times a record was written: 1 when it is new. An ETag is this number.
pub type Revision = u64;

/// A value with its key and revision. Index entries and other markers have revision 0.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Record {
    /// Where it lies.
    pub key: Key,
    /// How often it was written.
    pub revision: Revision,
    /// For a resource: the JSON that a GET returns, byte for byte.
    pub value: Bytes,
}

/// What must hold for a batch to be applied.
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
    /// The key it looks at.
    #[must_use]
    pub fn key(&self) -> &Key {
        match self {
            Self::At(key, _) | Self::Present(key) | Self::Absent(key) => key,
        }
    }

    /// Whether it holds for a key with this revision, or without a value.
    #[cfg(any(feature = "redb", feature = "postgres"))]
    pub(crate) fn holds(&self, found: Option<Revision>) -> bool {
        match self {
            Self::At(_, revision) => found == Some(*revision),
            Self::Present(_) => found.is_some(),
            Self::Absent(_) => found.is_none(),
        }
    }
}

/// What the caller of a put knows about the key before it.
///
/// It changes no outcome: a put sets the value in both cases. It lets an engine choose a cheaper statement, which must
/// notice a wrong `New` and then do what `Any` does.
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
    /// Removes the key; nothing happens when it is not there.
    Delete(Key),
}

/// All of it or none of it: if every check holds, every write is applied, durably.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Batch {
    /// Preconditions.
    pub checks: Vec<Check>,
    /// Changes, applied in this order.
    pub writes: Vec<Write>,
}

impl Batch {
    /// Adds a record that must not exist yet.
    pub fn insert(&mut self, key: Key, value: Bytes) {
        self.checks.push(Check::Absent(key.clone()));
        self.writes.push(Write::Put(key, 1, value, Prior::New));
    }

    /// Replaces a record that was read at `seen`.
    pub fn replace(&mut self, key: Key, seen: Revision, value: Bytes) {
        self.checks.push(Check::At(key.clone(), seen));
        self.writes.push(Write::Put(key, seen + 1, value, Prior::Any));
    }

    /// Sets a key without a value, such as an index entry.
    pub fn mark(&mut self, key: Key, prior: Prior) {
        self.put(key, Bytes::new(), prior);
    }

    /// Sets a value that has no revision of its own, such as a due row.
    pub fn put(&mut self, key: Key, value: Bytes, prior: Prior) {
        self.writes.push(Write::Put(key, 0, value, prior));
    }

    /// Removes a key.
    pub fn delete(&mut self, key: Key) {
        self.writes.push(Write::Delete(key));
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }
}

/// How a commit ended. Both are outcomes, not errors.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Commit {
    /// Every check held; every write is durable and visible to every later read.
    Applied,
    /// This key was not as the batch expected; nothing was written.
    Stale(Key),
}

/// A row whose stored bytes are not what a program wrote there, or an index entry without its record.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DamagedRow {
    /// The damaged row. Of a followed index entry it is the record; the entry if that record does not exist.
    pub key: Key,
    /// What is wrong with it. The sentence begins with the place, so it does not name the key.
    pub reason: String,
}

impl DamagedRow {
    /// Boxed, because scans return many results and almost none of them is this one.
    #[must_use]
    pub fn new(key: Key, reason: impl Into<String>) -> Box<Self> {
        Box::new(Self { key, reason: reason.into() })
    }

    /// For an index entry whose key is too short to contain an id.
    pub(crate) fn points_nowhere(entry: Key) -> Box<Self> {
        Self::new(entry, "it points nowhere")
    }

    /// For an index entry whose record does not exist.
    pub(crate) fn dangling(entry: Key) -> Box<Self> {
        Self::new(entry, "its record is not there")
    }
}

impl std::fmt::Display for DamagedRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "row {}: {}", hex::encode(self.key.as_bytes()), self.reason)
    }
}

/// One row of a scan. A damaged row takes the place of its record and harms no other row.
pub type Scanned = Result<Record, Box<DamagedRow>>;

/// The key of a row, damaged or not: a page continues behind it.
#[must_use]
pub fn key_of(row: &Scanned) -> &Key {
    match row {
        Ok(record) => &record.key,
        Err(damaged) => &damaged.key,
    }
}

/// All rows of a scan, for a reader that cannot do without any of them.
///
/// # Errors
/// [`StoreError::Damaged`] for the first damaged row.
pub fn all_sound(rows: Vec<Scanned>) -> Result<Vec<Record>, StoreError> {
    rows.into_iter().collect::<Result<_, _>>().map_err(StoreError::Damaged)
}

/// Reads these keys like [`Store::get`], with a result for each. When one of them is damaged the keys are read one by one,
/// so the answers need not come from one snapshot.
///
/// # Errors
/// The store cannot serve.
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
        found.push(match store.get(std::slice::from_ref(key)).await {
            Ok(mut one) => Ok(one.pop().flatten()),
            Err(StoreError::Damaged(row)) => Err(row),
            Err(error) => return Err(error),
        });
    }
    Ok(found)
}

/// What can go wrong in an engine. The text is for the log, never for a caller.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StoreError {
    /// Too much is queued; nothing was written.
    Busy,
    /// The engine cannot serve; nothing was written.
    Unavailable(String),
    /// The engine failed during a commit: it may or may not have happened. Never repeated blindly.
    Unknown(String),
    /// The store as a whole is not one that this program writes.
    Corrupt(String),
    /// One row is damaged; every other row can be read and written.
    Damaged(Box<DamagedRow>),
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Busy => f.write_str("the write queue is full"),
            Self::Unavailable(detail) => write!(f, "the store cannot serve: {detail}"),
            Self::Unknown(detail) => write!(f, "a commit may or may not have happened: {detail}"),
            Self::Corrupt(detail) => write!(f, "the store is damaged: {detail}"),
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

/// What the writer of an engine did since the store was opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WriterStats {
    /// Durable commits.
    pub commits: u64,
    /// Batches that these held.
    pub batches: u64,
}

/// A future that an engine hands out. Embedded engines hand out finished ones.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// An ordered key-value store with atomic, conditional, durable batches.
pub trait Store: Send + Sync {
    /// Reads these keys from one snapshot, in the order asked.
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>>;

    /// Reads at most `limit` rows of `span` from one snapshot. A damaged row, or an index entry whose record does not
    /// exist, counts as one of them and is an error in its place.
    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>>;

    /// Applies `batch` if its checks hold. Reads that begin after the answer see it.
    fn commit(&self, batch: Batch) -> Answer<'_, Commit>;

    /// Whether writes can be served now; the error says why not.
    fn ready(&self) -> Answer<'_, ()>;
}
