//! The step from version 4 to version 5.
//!
//! Customers can be erased. No customer of an older store was. Organizations have quotas; `null` is the default of the
//! server.

use crate::upgrade::{
    members::Members,
    version::{Lift, Version},
};

/// The lifts of this step.
pub(super) const VERSION: Version = Version { number: 5, lifts: &[CUSTOMER, ORGANIZATION] };

const CUSTOMER: Lift = Lift { object: "customer", tag: 2, lift: customer };
const ORGANIZATION: Lift = Lift { object: "organization", tag: 8, lift: organization };

fn customer(it: &mut Members, _: &Members) -> Result<(), String> {
    it.add_after("notes", "erased_at", "null")
}

fn organization(it: &mut Members, _: &Members) -> Result<(), String> {
    it.add_after("time_zone", "max_objects", "null")?;
    it.add_after("max_objects", "max_bytes", "null")?;
    it.add_after("max_bytes", "max_requests_per_second", "null")
}
