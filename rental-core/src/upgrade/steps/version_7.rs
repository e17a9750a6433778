//! The step from version 6 to version 7.

use crate::upgrade::version::Version;

/// The lifts of this step.
pub(super) const VERSION: Version = Version { number: 7, lifts: &[] };
