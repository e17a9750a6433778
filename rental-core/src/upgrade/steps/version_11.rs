//! The step from version 10 to version 11.
//!
//! Rentals that came back before their planned days have a look-up of their own. No record changes: every upgrade writes the derived
//! rows of all records.

use crate::upgrade::version::Version;

/// This step, without lifts.
pub(super) const VERSION: Version = Version { number: 11, lifts: &[] };
