//! The step from version 11 to version 12.
//!
//! The entries of stays have the last day, and rentals that came back before their planned days are a class of stays instead of a
//! look-up of their own. No record changes: every upgrade writes the derived rows of all records, and removes those of before.

use crate::upgrade::version::Version;

/// This step, without lifts.
pub(super) const VERSION: Version = Version { number: 12, lifts: &[] };
