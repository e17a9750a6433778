//! The step from version 4 to version 5.
//!
//! Customers can be erased. No customer of an older store was.

use crate::upgrade::{
    members::Members,
    version::{Lift, Version},
};

/// The lifts of this step.
pub(super) const VERSION: Version =
    Version { number: 5, lifts: &[Lift { object: "customer", tag: 2, lift: customer }] };

fn customer(it: &mut Members, _: &Members) -> Result<(), String> {
    it.add_after("notes", "erased_at", "null")
}
