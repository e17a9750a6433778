//! Files of other systems become objects.
//!
//! 1. [`statements`]: a statement of a toll agency or a list of violations becomes checked rows. Formats are data.
//! 2. [`recording`]: these rows become tolls and violations.

mod counts;
pub mod recording;
pub mod statements;

pub use counts::{Counts, Fate, RowError};
