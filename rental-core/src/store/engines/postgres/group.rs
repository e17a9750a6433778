//! Decides the outcome of a group of batches in memory, one batch after the other. Pure: no I/O.
//!
//! The checks of a batch nearly always hold, because its caller read the store a moment ago. So a group is first decided
//! as if they held ([`Expectations::of`]). Its statements fail when they do not: rows that should be new are inserted
//! without `ON CONFLICT`, and a guard before them compares all other expected revisions.

use crate::store::{Batch, Check, Commit, Key, Prior, Revision, Write, tally::Changes};
use bytes::Bytes;
use std::collections::{BTreeSet, HashMap, hash_map::Entry};

/// The expected state of the store before the group: one check for each key that a batch checks.
#[derive(Debug, Default)]
pub(super) struct Expectations<'b>(HashMap<&'b Key, &'b Check>);

impl<'b> Expectations<'b> {
    /// When two batches contradict each other, uses the check of the first one: if it holds, the other batch is stale.
    pub(super) fn of(batches: &[&'b Batch]) -> Self {
        let mut all = HashMap::new();
        for check in batches.iter().flat_map(|batch| &batch.checks) {
            let expected = all.entry(check.key()).or_insert(check);
            // The checks do not contradict each other, and `At` is more precise.
            if let (Check::Present(_), Check::At(..)) = (&**expected, check) {
                *expected = check;
            }
        }
        Self(all)
    }

    /// The expected revision of a key.
    pub(super) fn revision(&self, key: &Key) -> Option<Revision> {
        match self.0.get(key)? {
            Check::Absent(_) => None,
            Check::At(_, revision) => Some(*revision),
            Check::Present(_) => Some(Revision::MAX),
        }
    }
}

/// All keys that the batches check, without duplicates.
pub(super) fn checked<'b>(batches: &[&'b Batch]) -> Vec<&'b [u8]> {
    let keys: BTreeSet<&[u8]> =
        batches.iter().flat_map(|batch| &batch.checks).map(|check| check.key().as_bytes()).collect();
    keys.into_iter().collect()
}

/// The outcome of each batch, and the final value of each written key.
#[derive(Debug, Default)]
pub(super) struct Decided<'b> {
    pub(super) outcomes: Vec<Commit>,
    writes: HashMap<&'b Key, Written<'b>>,
}

/// The final value of a written key.
#[derive(Clone, Copy, Debug)]
struct Written<'b> {
    /// The hint of the first write of the key in the group.
    prior: Prior,
    /// `None` when the key is deleted.
    row: Option<(Revision, &'b Bytes)>,
}

/// Checks and applies each batch in its order; each sees the writes of the batches before it. `stored` returns the
/// revision of a key before the group.
pub(super) fn decide<'b>(batches: &[&'b Batch], stored: impl Fn(&Key) -> Option<Revision>) -> Decided<'b> {
    let mut decided = Decided::default();
    for batch in batches {
        let now = |key: &Key| match decided.writes.get(key) {
            Some(write) => write.row.map(|(revision, _)| revision),
            None => stored(key),
        };
        let failed = batch.checks.iter().find(|check| !check.holds(now(check.key())));
        if let Some(failed) = failed {
            decided.outcomes.push(Commit::Stale(failed.key().clone()));
            continue;
        }
        for write in &batch.writes {
            let (key, prior, row) = match write {
                Write::Put(key, revision, value, prior) => (key, *prior, Some((*revision, value))),
                Write::Delete(key) => (key, Prior::Any, None),
            };
            match decided.writes.entry(key) {
                Entry::Occupied(mut written) => written.get_mut().row = row,
                Entry::Vacant(place) => drop(place.insert(Written { prior, row })),
            }
        }
        decided.outcomes.push(Commit::Applied);
    }
    decided
}

/// Rows as columns, which are the parameters of a statement.
#[derive(Debug, Default)]
pub(super) struct Rows<'b> {
    pub(super) keys: Vec<&'b [u8]>,
    pub(super) revisions: Vec<i64>,
    pub(super) values: Vec<&'b [u8]>,
}

impl<'b> Rows<'b> {
    fn push(&mut self, key: &'b Key, revision: Revision, value: &'b [u8]) {
        self.keys.push(key.as_bytes());
        self.revisions.push(revision.cast_signed());
        self.values.push(value);
    }
}

/// In a guard, instead of a revision: the key has no value.
const ABSENT: i64 = -1;
/// In a guard, instead of a revision: the key has a value.
const PRESENT: i64 = -2;

/// The parameters of a group's statements.
#[derive(Debug, Default)]
pub(super) struct Plan<'b> {
    /// New rows. The statement fails when one of them exists.
    pub(super) inserts: Rows<'b>,
    /// Rows that may exist.
    pub(super) upserts: Rows<'b>,
    /// Keys to remove.
    pub(super) deletes: Vec<&'b [u8]>,
    /// Keys that no insert checks, each with its expected revision, [`ABSENT`] or [`PRESENT`].
    pub(super) guards: Vec<(&'b [u8], i64)>,
}

impl<'b> Plan<'b> {
    /// The plan of a group that was decided on expectations. The database checks them.
    pub(super) fn expecting(decided: &Decided<'b>, expectations: &Expectations<'b>) -> Self {
        // A put with the hint `New` becomes an insert unless a check of the key says otherwise. If the hint is wrong, the
        // insert fails.
        let is_new = |key: &Key, written: &Written<'_>| match expectations.0.get(key) {
            Some(check) => matches!(check, Check::Absent(_)),
            None => written.prior == Prior::New,
        };
        let mut plan = Self::writing(decided, is_new);
        for (key, check) in &expectations.0 {
            let expected = match check {
                Check::Absent(_) if decided.writes.get(key).is_some_and(|written| written.row.is_some()) => continue,
                Check::Absent(_) => ABSENT,
                Check::Present(_) => PRESENT,
                Check::At(_, revision) => revision.cast_signed(),
            };
            plan.guards.push((key.as_bytes(), expected));
        }
        plan
    }

    /// The plan of a group that was decided on rows read in the same transaction, so it needs no check.
    pub(super) fn found(decided: &Decided<'b>) -> Self {
        Self::writing(decided, |_, _| false)
    }

    fn writing(decided: &Decided<'b>, is_new: impl Fn(&Key, &Written<'_>) -> bool) -> Self {
        let mut plan = Self::default();
        for (&key, written) in &decided.writes {
            match written.row {
                None => plan.deletes.push(key.as_bytes()),
                Some((revision, value)) => {
                    let rows = if is_new(key, written) { &mut plan.inserts } else { &mut plan.upserts };
                    rows.push(key, revision, value);
                }
            }
        }
        plan
    }

    /// The keys whose rows the plan may replace or remove.
    pub(super) fn replaced(&self) -> impl Iterator<Item = &'b [u8]> {
        self.upserts.keys.iter().chain(&self.deletes).copied()
    }

    /// Counts what the plan changes. `before` is the size of the value of a key that is replaced or removed.
    pub(super) fn count(&self, changes: &mut Changes, before: impl Fn(&[u8]) -> Option<usize>) {
        for (key, value) in self.inserts.keys.iter().zip(&self.inserts.values) {
            changes.row(key, None, Some(value.len()));
        }
        for (key, value) in self.upserts.keys.iter().zip(&self.upserts.values) {
            changes.row(key, before(key), Some(value.len()));
        }
        for key in &self.deletes {
            changes.row(key, before(key), None);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        [&self.inserts.keys, &self.upserts.keys, &self.deletes].iter().all(|keys| keys.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys() -> impl Strategy<Value = Key> {
        (0..2u8, 0..2u8).prop_map(|(kind, id)| Key::from_bytes(&[&[kind][..], &[id; 16]].concat()))
    }

    fn batches() -> impl Strategy<Value = Vec<Batch>> {
        let check = (keys(), 0..6u8, 0..2u64).prop_map(|(key, kind, revision)| match kind {
            0..2 => Check::At(key, revision),
            2 | 3 => Check::Present(key),
            _ => Check::Absent(key),
        });
        let write = (keys(), 0..4u8, 0..2u64).prop_map(|(key, kind, revision)| match kind {
            0 => Write::Delete(key),
            1 => Write::Put(key, revision, Bytes::new(), Prior::New),
            _ => Write::Put(key, revision, Bytes::new(), Prior::Any),
        });
        let batch = (prop::collection::vec(check, 0..3), prop::collection::vec(write, 0..4));
        prop::collection::vec(batch.prop_map(|(checks, writes)| Batch { checks, writes }), 1..6)
    }

    fn written(decided: &Decided<'_>) -> HashMap<Key, Option<Revision>> {
        decided.writes.iter().map(|(&key, write)| (key.clone(), write.row.map(|(revision, _)| revision))).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        /// If the database confirms the expectations, the decision equals the one made from the stored rows. The database
        /// confirms them whenever all of them hold.
        #[test]
        fn what_the_database_confirms_is_right(
            stored in prop::collection::hash_map(keys(), 0..2u64, 0..5),
            batches in batches(),
        ) {
            let batches: Vec<&Batch> = batches.iter().collect();
            let revision = |key: &[u8]| stored.get(&Key::from_bytes(key)).copied();
            let expectations = Expectations::of(&batches);
            let decided = decide(&batches, |key| expectations.revision(key));
            let plan = Plan::expecting(&decided, &expectations);
            let confirmed = plan.inserts.keys.iter().all(|key| revision(key).is_none())
                && plan.guards.iter().all(|(key, expected)| match *expected {
                    ABSENT => revision(key).is_none(),
                    PRESENT => revision(key).is_some(),
                    before => revision(key) == Some(before.cast_unsigned()),
                });
            let found = decide(&batches, |key| stored.get(key).copied());
            if confirmed {
                prop_assert_eq!(&decided.outcomes, &found.outcomes);
                prop_assert_eq!(written(&decided), written(&found));
            }
            let promised = plan.inserts.keys.iter().filter(|key| !expectations.0.contains_key(&Key::from_bytes(key)));
            let broken = promised.into_iter().any(|key| revision(key).is_some());
            let right = expectations.0.iter().all(|(key, check)| check.holds(stored.get(key).copied()));
            prop_assert!(confirmed || broken || !right);
            prop_assert!(Plan::found(&found).inserts.keys.is_empty(), "what was found needs no insert that can fail");
            // Every write is in exactly one statement.
            let all = [&plan.inserts.keys, &plan.upserts.keys, &plan.deletes].map(|keys| keys.len());
            prop_assert_eq!(all.iter().sum::<usize>(), decided.writes.len());
        }
    }
}
