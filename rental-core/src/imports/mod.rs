//! Imports of files as objects, and the export of an organization.
//!
//! 1. [`statements`] parses a statement of a toll agency or a list of violations into checked rows. It needs no store.
//! 2. [`recording`] records the rows as tolls and violations, each object once.
//! 3. [`organization`] exports an organization and imports it into another one.
//!
//! [`Counts`] is the result of every import.

mod counts;
pub mod organization;
mod overlay;
pub mod recording;
pub mod statements;

pub use counts::{Amounts, Counts, RowError, RowOutcome};
pub use overlay::Overlay;
