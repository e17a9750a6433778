//! Counts by how much the committed batches of this process change the rows of each owner.
//!
//! The engine counts after a commit, so a batch checks no counter and batches of one owner do not wait for each other. A
//! commit whose outcome the engine learned only later is not counted.

use std::{
    collections::HashMap,
    mem,
    sync::{Mutex, PoisonError},
};
use uuid::Uuid;

/// Whose row a key is, and whether the row counts as an object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Share {
    /// The owner of the row.
    pub owner: Uuid,
    /// Whether the row is an object, and not only bytes.
    pub is_object: bool,
}

/// The share of a key; `None` for a row that is not counted.
pub type ShareOf = fn(&[u8]) -> Option<Share>;

/// By how much the rows of one owner have changed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Change {
    /// Objects: those added less those removed.
    pub objects: i64,
    /// Bytes of keys and values: those added less those removed.
    pub bytes: i64,
    /// Objects: those added and those removed.
    pub objects_touched: u64,
    /// Bytes of keys and values: those added and those removed.
    pub bytes_touched: u64,
}

impl Change {
    /// Adds another change.
    pub fn add(&mut self, other: Self) {
        self.objects += other.objects;
        self.bytes += other.bytes;
        self.objects_touched += other.objects_touched;
        self.bytes_touched += other.bytes_touched;
    }

    /// Adds or removes a row of this size.
    fn row(&mut self, sign: i64, is_object: bool, bytes: usize) {
        let (objects, bytes) = (u64::from(is_object), bytes as u64);
        self.add(Self {
            objects: sign * objects.cast_signed(),
            bytes: sign * bytes.cast_signed(),
            objects_touched: objects,
            bytes_touched: bytes,
        });
    }
}

/// The changes that were committed and not taken yet, by owner.
#[derive(Debug)]
pub struct Tally {
    share_of: ShareOf,
    changes: Mutex<HashMap<Uuid, Change>>,
}

impl Tally {
    /// A tally of the rows that have a share.
    #[must_use]
    pub fn new(share_of: ShareOf) -> Self {
        Self { share_of, changes: Mutex::default() }
    }

    /// The changes since the last call.
    #[must_use]
    pub fn take(&self) -> HashMap<Uuid, Change> {
        mem::take(&mut self.changes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Begins to count the changes of a transaction.
    pub(crate) fn begin(&self) -> Changes {
        Changes { share_of: self.share_of, each: Vec::new() }
    }

    /// Adds the changes of a transaction that is committed.
    pub(crate) fn add(&self, committed: Changes) {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        for (owner, change) in committed.each {
            changes.entry(owner).or_default().add(change);
        }
    }
}

/// The changes of a transaction that is not committed yet.
#[derive(Debug)]
pub(crate) struct Changes {
    share_of: ShareOf,
    /// Runs of rows of one owner: an owner can occur more than once.
    each: Vec<(Uuid, Change)>,
}

impl Changes {
    /// Whether rows with this key are counted.
    #[cfg(feature = "postgres")]
    pub(crate) fn counts(&self, key: &[u8]) -> bool {
        (self.share_of)(key).is_some()
    }

    /// Counts a row whose value had `before` bytes and has `after` bytes; `None` for no value.
    pub(crate) fn row(&mut self, key: &[u8], before: Option<usize>, after: Option<usize>) {
        let Some(Share { owner, is_object }) = (self.share_of)(key) else { return };
        if self.each.last().is_none_or(|last| last.0 != owner) {
            self.each.push((owner, Change::default()));
        }
        let Some((_, change)) = self.each.last_mut() else { return };
        for (sign, size) in [(-1, before), (1, after)] {
            if let Some(bytes) = size {
                change.row(sign, is_object, key.len() + bytes);
            }
        }
    }
}
