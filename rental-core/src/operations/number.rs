//! Who came first: a vehicle that gets or loses a transponder or plate, or a toll or violation that names it.
//!
//! Neither reads what the other one writes. So each number has a counter from its first write on. A vehicle's write raises it, and a row
//! of a statement is recorded only if it was not raised since the vehicles with the number were read. What was recorded before is
//! derived again after a vehicle's write. So whichever of both comes second knows of the first one.

use crate::{
    rows::{key, recheck::Marked},
    store::{Batch, Check, DamagedRow, Key, Prior, Record, Revision, Write},
    value::OrganizationId,
};
use bytes::Bytes;

/// The key of the counter of a number.
pub(crate) fn counter(organization: OrganizationId, number: Marked) -> Key {
    key::counter(organization, &format!("number-{}", hex::encode(number.as_bytes())))
}

/// Adds to the batch of what names a number that its counter still is as it was read.
pub(crate) fn keep(batch: &mut Batch, counter: Key, seen: Option<Revision>) {
    match seen {
        Some(revision) => batch.checks.push(Check::At(counter, revision)),
        None => batch.insert(counter, Bytes::new()),
    }
}

/// Adds to the batch of a vehicle that it gets or loses a number, or has it at other times. `other` is a revision that the counter
/// never had. Returns whether a counter was there, so that a statement can have named the number since numbers have counters.
pub(super) fn raise(
    batch: &mut Batch,
    counter: Key,
    seen: Result<Option<Record>, Box<DamagedRow>>,
    other: Revision,
) -> bool {
    let was_there = !matches!(seen, Ok(None));
    // The fields of a vehicle and its assignments raise it once.
    if batch.writes.iter().any(|write| matches!(write, Write::Put(known, ..) if *known == counter)) {
        return was_there;
    }
    match seen {
        Ok(Some(row)) => batch.replace(counter, row.revision, Bytes::new()),
        Ok(None) => batch.insert(counter, Bytes::new()),
        Err(_) => batch.writes.push(Write::Put(counter, other, Bytes::new(), Prior::Any)),
    }
    was_there
}
