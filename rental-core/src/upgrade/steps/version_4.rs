//! The step from version 3 to version 4.

use crate::upgrade::version::Version;

/// The lifts of this step.
pub(super) const VERSION: Version = Version { number: 4, lifts: &[] };
