//! Counters of transponders and plates: how often a vehicle got or lost one, and whether a statement named it.

use super::{key, recheck::Marked};
use crate::{
    store::{Key, Record, Revision},
    value::OrganizationId,
};

/// The first characters of the names of these counters.
pub(crate) const PREFIX: &str = "number-";

/// The value of the counter of a number that a statement named; that of the others is empty.
pub(crate) const NAMED: &[u8] = b"named";

/// The key of the counter of a number.
pub(crate) fn counter(organization: OrganizationId, number: Marked) -> Key {
    key::counter(organization, &format!("{PREFIX}{}", hex::encode(number.as_bytes())))
}

/// The state of a counter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Counted {
    /// How often a vehicle's write raised it, and 1 for the write that noted a statement.
    pub(crate) revision: Revision,
    /// Whether a statement named the number.
    pub(crate) is_named: bool,
}

impl Counted {
    /// The state of the counter in this row.
    pub(crate) fn of(row: &Record) -> Self {
        Self { revision: row.revision, is_named: !row.value.is_empty() }
    }
}
