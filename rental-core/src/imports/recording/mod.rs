//! Records the rows of statements as tolls and violations. Each object is recorded once, even if several files contain its
//! row.
//!
//! [`Recorder`] records the rows of one file, in transactions of [`CHUNK`] rows. It looks up each row by its identity, and
//! the commit checks this look-up. So two concurrent imports of one file create each object once. [`Importable`] contains
//! the rules that differ between the resources: identity, corrections and credits. A dry run makes the same decisions. Its
//! store is an [`Overlay`](super::Overlay), which keeps what would be recorded.

mod chunk;
mod credits;
mod importable;
mod recorder;
mod toll;
mod violation;

pub use importable::{Importable, NewObject};
pub use recorder::{CHUNK, Options, Recorder};
