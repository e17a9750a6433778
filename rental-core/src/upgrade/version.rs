//! The description of a step of an upgrade.

use super::members::Members;

/// One step: from the version before to this version.
pub(super) struct Version {
    pub(super) number: u64,
    /// The lifts of this step, one for each resource whose records change.
    pub(super) lifts: &'static [Lift],
}

/// The change that a step makes to the records of one resource.
pub(super) struct Lift {
    /// The name of the resource in lines of an export.
    pub(super) object: &'static str,
    /// The tag of the resource in keys.
    pub(super) tag: u8,
    /// Changes an object of the version before. The second argument is its organization, already lifted; it is empty for
    /// the operator's own objects.
    pub(super) lift: fn(&mut Members, &Members) -> Result<(), String>,
}
