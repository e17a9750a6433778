//! The step from version 6 to version 7.
//!
//! Blocks can come from a calendar feed; those of before came from none.

use crate::upgrade::{
    members::Members,
    version::{Lift, Version},
};

/// The lifts of this step.
pub(super) const VERSION: Version = Version { number: 7, lifts: &[BLOCK] };

const BLOCK: Lift = Lift { object: "block", tag: 21, lift: block };

fn block(it: &mut Members, _: &Members) -> Result<(), String> {
    it.add_after("source", "calendar_feed_id", "null")?;
    it.add_after("calendar_feed_id", "calendar_uid", "null")?;
    it.add_after("calendar_uid", "conflicts_with", "null")
}
