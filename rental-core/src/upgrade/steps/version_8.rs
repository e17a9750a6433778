//! The step from version 7 to version 8.
//!
//! Tolls and violations have the time zone of their statement. Nobody recorded it before: older ones get that of their
//! organization, which is a guess. Before, the zone of each rental decided.

use crate::upgrade::{
    members::Members,
    version::{Lift, Version},
};

/// The lifts of this step.
pub(super) const VERSION: Version = Version { number: 8, lifts: &[TOLL, VIOLATION] };

const TOLL: Lift = Lift { object: "toll", tag: 5, lift: toll };
const VIOLATION: Lift = Lift { object: "violation", tag: 6, lift: violation };

fn toll(it: &mut Members, organization: &Members) -> Result<(), String> {
    it.add_after("occurred_on", "time_zone", zone(organization)?)
}

fn violation(it: &mut Members, organization: &Members) -> Result<(), String> {
    it.add_after("issued_at", "time_zone", zone(organization)?)
}

fn zone(organization: &Members) -> Result<&str, String> {
    organization.get("time_zone").ok_or_else(|| "its organization has no `time_zone`".into())
}
