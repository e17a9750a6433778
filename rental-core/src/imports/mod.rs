//! Files of other systems become objects.
//!
//! 1. [`statements`]: a statement of a toll agency or a list of violations becomes checked rows. It needs no store.
//! 2. [`recording`]: the rows become tolls and violations, each object once.
//! 3. [`organization`]: the export of an organization, and its import into another one.
//!
//! [`Counts`] is the result of every import.

mod counts;
pub mod organization;
pub mod recording;
pub mod statements;

pub use counts::{Counts, RowError, RowOutcome};
