//! The step from version 12 to version 13.
//!
//! What is compared as text (plates, transponders, names, email addresses) is compared in NFC, and so are the derived rows by which it
//! is found. No record changes: every upgrade writes the derived rows of all records, and removes those of before.

use crate::upgrade::version::Version;

/// This step, without lifts.
pub(super) const VERSION: Version = Version { number: 13, lifts: &[] };
