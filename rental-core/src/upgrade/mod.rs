//! Upgrades of stores that an older program wrote.
//!
//! An upgrade is offline, eager, and one pass over the records, through [`Store`](crate::store::Store) alone, so it is the same on every
//! engine. The first transaction claims the new version and writes the marker ([`Marker`]): from then on programs of the
//! version before refuse the store, or fail at their next write. Then come windows: the changes of some thousand records, sorted by
//! key and committed as batches of at most 4,000 rows or 8 MB.
//!
//! 1. **Records.** Each record goes through all lifts from its version to the present one ([`Members`]), is parsed with
//!    the present struct, and gets every row that the present program derives of it. Changed bytes are a new revision;
//!    `updated_at` stays and no event is sent. A damaged record, or one that no lift makes readable, stays as it is and is
//!    counted.
//! 2. **Sweep.** Once the records of an organization are done, derived rows that none of them has are removed. They are
//!    counted first: where there are as many as there should be, nothing is read again.
//! 3. The last batch removes the marker.
//!
//! Every batch checks the revision of the marker, and the last batch of a window moves the marker on. A killed upgrade goes
//! on from the marker; it skips the rows of its last window that are there. Of two servers that upgrade at once one gets
//! [`Step::Outrun`], reads the marker and goes on.
//!
//! A lift leaves an object that it has lifted as it is. Steps are kept for ever, never edited once they are released,
//! and use nothing of the present resources.

mod changes;
mod derive;
mod description;
mod marker;
mod members;
mod state;
mod steps;
mod survey;
mod sweep;
mod version;
mod version_3;
mod walk;
mod window;

pub use crate::tasks::Step;
pub use description::describe;
pub use marker::{Marker, Phase};
pub use members::Members;
pub use state::{State, UpgradeError, state};
pub use steps::lift;
pub use survey::{Survey, survey};
pub use walk::Upgrade;
