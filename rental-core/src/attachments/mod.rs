//! Attachments of tolls and violations to the customers who pay: who pays by what is recorded, and the work that keeps
//! what the server decided true: attachments, detachments and second postings.
//!
//! A write that changes what that rests on marks the vehicle, or the transponder or plate, in its own batch
//! (`operations/recheck.rs`). [`again::step`] takes a mark and derives its tolls and violations again, in bounded batches. A kill
//! loses nothing: each batch moves the mark, the last one removes it, and all check that nobody made the mark again.

pub mod again;
mod derivation;
mod release;
mod review;

pub use derivation::{Derived, Deriving, of_vehicle};
pub use release::Release;
pub use review::{local_time, review};
