//! Makes an import of statements and a vehicle's write that happen at the same moment see each other.
//!
//! Each transponder or plate has a counter: a row whose revision counts the writes by which a vehicle got or lost it, or has it at other
//! times. An import checks that the counter has not changed since it read the vehicles with the number, else it reads them again.
//! The first import also notes in the counter that a statement named the number. From then on a vehicle's write marks the number, so
//! that what the statement named is derived again.

use crate::{
    rows::number::{Counted, NAMED},
    store::{Batch, Check, DamagedRow, Key, Prior, Record, Revision, Write},
};
use bytes::Bytes;

/// Adds to the batch of an import that a counter is as it was read; `None` for one that was not there. Returns its state after the commit.
pub(crate) fn check_unchanged(batch: &mut Batch, counter: Key, seen: Option<Counted>) -> Counted {
    let named = |revision| Counted { revision, is_named: true };
    match seen {
        None => {
            batch.insert(counter, Bytes::from_static(NAMED));
            named(1)
        }
        Some(Counted { revision, is_named: false }) => {
            batch.replace(counter, revision, Bytes::from_static(NAMED));
            named(revision + 1)
        }
        Some(Counted { revision, is_named: true }) => {
            batch.checks.push(Check::At(counter, revision));
            named(revision)
        }
    }
}

/// Raises a counter in the batch of a vehicle's write. `fresh` is a revision that the counter never had, for a damaged one. Returns
/// whether a statement can have named the number since numbers have counters.
pub(super) fn raise(
    batch: &mut Batch,
    counter: Key,
    seen: Result<Option<Record>, Box<DamagedRow>>,
    fresh: Revision,
) -> bool {
    let can_be_named = match &seen {
        Ok(row) => row.as_ref().is_some_and(|row| Counted::of(row).is_named),
        Err(_) => true,
    };
    // The fields of a vehicle and its assignments raise it once.
    if batch.writes.iter().any(|write| matches!(write, Write::Put(known, ..) if *known == counter)) {
        return can_be_named;
    }
    match seen {
        Ok(Some(row)) => batch.replace(counter, row.revision, row.value),
        Ok(None) => batch.insert(counter, Bytes::new()),
        Err(_) => batch.writes.push(Write::Put(counter, fresh, Bytes::from_static(NAMED), Prior::Any)),
    }
    can_be_named
}
