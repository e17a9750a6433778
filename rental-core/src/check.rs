//! Checks that the rows of a store are consistent: each value matches its key, each record has its derived rows, and each
//! reference is to an existing row. It reads the rows of any engine by ascending key.

mod audit;
mod decode;
mod expected;
mod file;
mod needs;
pub mod repair;
mod report;

pub use audit::{Audit, Get};
pub(crate) use expected::effects_of;
pub use expected::expected_keys;
pub use file::{of_file, of_file_at};
pub use report::{KeyReport, Problem, Remedy, Report};
