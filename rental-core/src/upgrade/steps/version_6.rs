//! The step from version 5 to version 6.

use crate::upgrade::version::Version;

/// The lifts of this step.
pub(super) const VERSION: Version = Version { number: 6, lifts: &[] };
