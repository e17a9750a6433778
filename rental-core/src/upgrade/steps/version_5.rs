//! The step from version 4 to version 5.

use crate::upgrade::version::Version;

/// The lifts of this step.
pub(super) const VERSION: Version = Version { number: 5, lifts: &[] };
