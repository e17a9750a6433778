//! The step from version 8 to version 9.
//!
//! Tolls and violations that no person decided are found by their transponder and plate, whether they have a vehicle or not. Only
//! their index entries change.

use crate::upgrade::{
    members::Members,
    version::{Lift, Version},
};

/// The lifts of this step.
pub(super) const VERSION: Version = Version { number: 9, lifts: &[TOLL, VIOLATION] };

const TOLL: Lift = Lift { object: "toll", tag: 5, lift: same };
const VIOLATION: Lift = Lift { object: "violation", tag: 6, lift: same };

fn same(_: &mut Members, _: &Members) -> Result<(), String> {
    Ok(())
}
