//! The step from version 9 to version 10.
//!
//! An open invoice of which credit notes left nothing is not in the list by due date any more. No record changes: the sweep of every
//! upgrade removes the index entry, because it belongs to no record any more.

use crate::upgrade::version::Version;

/// This step, without lifts.
pub(super) const VERSION: Version = Version { number: 10, lifts: &[] };
