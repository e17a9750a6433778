//! The step from version 3 to version 4.
//!
//! Audit entries name who acted and from where. Nobody recorded that before, so older entries have `null` there.

use crate::upgrade::{
    members::Members,
    version::{Lift, Version},
};

/// The lifts of this step.
pub(super) const VERSION: Version =
    Version { number: 4, lifts: &[Lift { object: "audit_entry", tag: 13, lift: audit_entry }] };

fn audit_entry(it: &mut Members, _: &Members) -> Result<(), String> {
    it.add_after("action", "actor", "null")?;
    it.add_after("actor", "actor_id", "null")?;
    it.add_after("actor_id", "address", "null")
}
