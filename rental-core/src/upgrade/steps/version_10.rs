//! The step from version 9 to version 10.
//!
//! An open invoice of which credit notes left nothing is not in the list by due date any more. Only that index entry changes.

use crate::upgrade::{
    members::Members,
    version::{Lift, Version},
};

/// The lifts of this step.
pub(super) const VERSION: Version = Version { number: 10, lifts: &[INVOICE] };

const INVOICE: Lift = Lift { object: "invoice", tag: 4, lift: same };

fn same(_: &mut Members, _: &Members) -> Result<(), String> {
    Ok(())
}
