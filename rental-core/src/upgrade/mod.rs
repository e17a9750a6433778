//! Upgrades of stores that an older program wrote.
//!
//! An upgrade is offline and reads all records once. It uses only [`Versioned`](crate::store::Versioned), so it is the same
//! for every engine. The first transaction sets the new version and writes the marker ([`Marker`]). From then on programs of
//! the old version refuse the store, or fail at their next write. Then the upgrade commits windows: the changes of some
//! thousand records, sorted by key, in batches of at most 4,000 rows or 8 MB.
//!
//! 1. **Records.** All lifts from the old version to the present one change each record ([`Members`]). Then the record is
//!    parsed with the present struct, and its derived rows are written. A changed record gets a new revision; `updated_at`
//!    stays and no event is sent. A damaged record, or one that does not parse, stays unchanged and is counted.
//! 2. **Sweep.** After the records of an organization, derived rows that belong to no record are removed. They are counted
//!    first: a prefix with the expected number of rows is not read again. Counters of numbers and calendars of vehicles are raised to
//!    what the records say.
//! 3. The last batch removes the marker.
//!
//! A repair of a store is an upgrade from the present version to itself ([`Upgrade::again`]).
//!
//! Every batch checks the revision of the marker, and the last batch of a window advances it. After a crash the upgrade
//! continues from the marker and skips rows that are already written. If two servers upgrade at the same time, one of them
//! gets [`Step::Overtaken`], reads the marker again and continues.
//!
//! A lift is idempotent. The steps from [`OLDEST_VERSION`](crate::store::OLDEST_VERSION) on are kept. They never change after a release, and do not
//! use the present resources.

mod billed;
mod changes;
mod derive;
mod description;
mod marker;
mod state;
mod steps;
mod submitted;
mod survey;
mod sweep;
mod version;
mod walk;
mod whole_pages;
mod window;

use crate::value::members;
pub use crate::{tasks::Step, value::Members};
pub use billed::Billed;
pub use description::describe;
pub use marker::{Marker, Phase};
pub use state::{State, UpgradeError, state};
pub use steps::lift;
pub use survey::{Survey, survey};
pub use walk::Upgrade;
