//! What several batches come to, decided one after the other in memory: pure.

use crate::store::{Batch, Check, Commit, Key, Revision, Write};
use bytes::Bytes;
use std::collections::{BTreeSet, HashMap};

/// The outcome of each batch, and what lies at each written key in the end.
#[derive(Debug, Default)]
pub(super) struct Decided<'b> {
    pub(super) outcomes: Vec<Commit>,
    /// `None` where the key is deleted.
    pub(super) writes: HashMap<&'b Key, Option<(Revision, &'b Bytes)>>,
}

/// Every key that a check looks at, once.
pub(super) fn checked<'b>(batches: &[&'b Batch]) -> Vec<&'b [u8]> {
    let keys: BTreeSet<&[u8]> =
        batches.iter().flat_map(|batch| &batch.checks).map(|check| check.key().as_bytes()).collect();
    keys.into_iter().collect()
}

/// Checks and applies each batch in order: each sees the writes of those before it. `stored` has the revisions of the
/// keys of [`checked`] that are there.
pub(super) fn decide<'b>(batches: &[&'b Batch], stored: &HashMap<Vec<u8>, Revision>) -> Decided<'b> {
    let mut decided = Decided::default();
    for batch in batches {
        let now = |key: &Key| match decided.writes.get(key) {
            Some(write) => write.map(|(revision, _)| revision),
            None => stored.get(key.as_bytes()).copied(),
        };
        let failed = batch.checks.iter().find(|check| match check {
            Check::At(key, expected) => now(key) != Some(*expected),
            Check::Present(key) => now(key).is_none(),
            Check::Absent(key) => now(key).is_some(),
        });
        if let Some(failed) = failed {
            decided.outcomes.push(Commit::Stale(failed.key().clone()));
            continue;
        }
        for write in &batch.writes {
            let _ = match write {
                Write::Put(key, revision, value) => decided.writes.insert(key, Some((*revision, value))),
                Write::Delete(key) => decided.writes.insert(key, None),
            };
        }
        decided.outcomes.push(Commit::Applied);
    }
    decided
}
