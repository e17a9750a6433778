//! What a step of an upgrade is, as data.

use super::members::Members;

/// One step: from the version before to this one.
pub(super) struct Version {
    pub(super) number: u64,
    /// What is done to the records of a resource.
    pub(super) lifts: &'static [Lift],
}

/// What a step does to the records of one resource.
pub(super) struct Lift {
    /// The name of the resource in lines of an export.
    pub(super) object: &'static str,
    /// The tag of the resource in keys.
    pub(super) tag: u8,
    /// Changes an object of the version before; the second argument is its organization, which was lifted before. The
    /// operator's own objects have none.
    pub(super) lift: fn(&mut Members, &Members) -> Result<(), String>,
}
