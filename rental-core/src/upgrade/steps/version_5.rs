//! The step from version 4 to version 5.
//!
//! Organizations have quotas. `null` is the default of the server.

use crate::upgrade::{
    members::Members,
    version::{Lift, Version},
};

/// The lifts of this step.
pub(super) const VERSION: Version =
    Version { number: 5, lifts: &[Lift { object: "organization", tag: 8, lift: organization }] };

fn organization(it: &mut Members, _: &Members) -> Result<(), String> {
    it.add_after("time_zone", "max_objects", "null")?;
    it.add_after("max_objects", "max_bytes", "null")?;
    it.add_after("max_bytes", "max_requests_per_second", "null")
}
