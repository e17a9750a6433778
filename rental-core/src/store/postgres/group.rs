//! What several batches come to, decided one after the other in memory: pure.
//!
//! Nearly always the store is as the batches expect, because they were prepared from it a moment ago. So a group is
//! decided on what its batches expect ([`Expectations::of`]), and its statements are such that the database tells whether
//! that was right: rows taken for new are inserted plainly, and what else is expected is looked at before them.

use crate::store::{Batch, Check, Commit, Key, Prior, Revision, Write};
use bytes::Bytes;
use std::collections::{BTreeSet, HashMap, hash_map::Entry};

/// What a group expects of the store before its first batch: one check for each key that is looked at.
#[derive(Debug, Default)]
pub(super) struct Expectations<'b>(HashMap<&'b Key, &'b Check>);

impl<'b> Expectations<'b> {
    /// Where two batches do not agree, the first one is believed: if it is right, the other one is stale.
    pub(super) fn of(batches: &[&'b Batch]) -> Self {
        let mut all = HashMap::new();
        for check in batches.iter().flat_map(|batch| &batch.checks) {
            let believed = all.entry(check.key()).or_insert(check);
            // No disagreement: it says more.
            if let (Check::Present(_), Check::At(..)) = (&**believed, check) {
                *believed = check;
            }
        }
        Self(all)
    }

    /// The revision that is taken for the stored one.
    pub(super) fn revision(&self, key: &Key) -> Option<Revision> {
        match self.0.get(key)? {
            Check::Absent(_) => None,
            Check::At(_, revision) => Some(*revision),
            Check::Present(_) => Some(Revision::MAX),
        }
    }
}

/// Every key that a check looks at, once.
pub(super) fn checked<'b>(batches: &[&'b Batch]) -> Vec<&'b [u8]> {
    let keys: BTreeSet<&[u8]> =
        batches.iter().flat_map(|batch| &batch.checks).map(|check| check.key().as_bytes()).collect();
    keys.into_iter().collect()
}

/// The outcome of each batch, and what lies at each written key in the end.
#[derive(Debug, Default)]
pub(super) struct Decided<'b> {
    pub(super) outcomes: Vec<Commit>,
    writes: HashMap<&'b Key, Written<'b>>,
}

/// What becomes of a key.
#[derive(Clone, Copy, Debug)]
struct Written<'b> {
    /// What its first write in the group says about the key before the group.
    prior: Prior,
    /// `None` when the key is deleted.
    row: Option<(Revision, &'b Bytes)>,
}

/// Checks and applies each batch in order: each sees the writes of those before it. `stored` gives the revision of what
/// is there before the first.
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

/// Rows as the columns of a statement.
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

/// No revision: the key is not there.
const ABSENT: i64 = -1;
/// No revision: something is there.
const PRESENT: i64 = -2;

/// What the statements of a group write, and what they are to find.
#[derive(Debug, Default)]
pub(super) struct Plan<'b> {
    /// Rows that are not there.
    pub(super) new: Rows<'b>,
    /// Rows that may be there.
    pub(super) other: Rows<'b>,
    /// Keys that go.
    pub(super) gone: Vec<&'b [u8]>,
    /// What has to be looked at first, because no statement that writes tells: the revision, [`ABSENT`] or [`PRESENT`].
    pub(super) guards: Vec<(&'b [u8], i64)>,
}

impl<'b> Plan<'b> {
    /// For a group that was decided on expectations: the database tells whether they are right.
    pub(super) fn expecting(decided: &Decided<'b>, expectations: &Expectations<'b>) -> Self {
        // A put that is called new is inserted plainly, unless a check says more about the key. A wrong `New` is noticed:
        // the insert fails.
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

    /// For a group that was decided on what the database has, so that nothing is left to find out.
    pub(super) fn found(decided: &Decided<'b>) -> Self {
        Self::writing(decided, |_, _| false)
    }

    fn writing(decided: &Decided<'b>, is_new: impl Fn(&Key, &Written<'_>) -> bool) -> Self {
        let mut plan = Self::default();
        for (&key, written) in &decided.writes {
            match written.row {
                None => plan.gone.push(key.as_bytes()),
                Some((revision, value)) => {
                    let rows = if is_new(key, written) { &mut plan.new } else { &mut plan.other };
                    rows.push(key, revision, value);
                }
            }
        }
        plan
    }

    pub(super) fn is_empty(&self) -> bool {
        [&self.new.keys, &self.other.keys, &self.gone].iter().all(|keys| keys.is_empty())
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

        /// What was decided on expectations is what would have been decided on the store, if the database found it so; and it
        /// does where all of them are right.
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
            let confirmed = plan.new.keys.iter().all(|key| revision(key).is_none())
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
            let promised = plan.new.keys.iter().filter(|key| !expectations.0.contains_key(&Key::from_bytes(key)));
            let broken = promised.into_iter().any(|key| revision(key).is_some());
            let right = expectations.0.iter().all(|(key, check)| check.holds(stored.get(key).copied()));
            prop_assert!(confirmed || broken || !right);
            prop_assert!(Plan::found(&found).new.keys.is_empty(), "what was found needs no insert that can fail");
            // Every write is in one statement, once.
            let all = [&plan.new.keys, &plan.other.keys, &plan.gone].map(|keys| keys.len());
            prop_assert_eq!(all.iter().sum::<usize>(), decided.writes.len());
        }
    }
}
