//! The rows of statements become tolls and violations, each object once, however often and in however many files its row
//! comes.
//!
//! [`Recorder`] records the rows of one file. It writes them in chunks of [`CHUNK`], each one transaction. A row is
//! looked up by its identity, and this look-up is a check of the commit, so two concurrent imports of one file make each
//! object once. [`Importable`] has what differs between the resources: identity, corrections and credits.
//! A dry run makes the same decisions and commits nothing.

mod chunk;
mod credits;
mod importable;
mod recorder;
mod toll;
mod violation;

pub use importable::{Importable, NewObject};
pub use recorder::{CHUNK, Options, Recorder};
