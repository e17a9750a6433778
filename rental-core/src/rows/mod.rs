//! The kinds of rows in the store: their keys and classes.
//!
//! Only this module defines the meaning of keys. Code that handles all kinds of rows (the check of a store, copies,
//! upgrades, the descriptions for operators) matches on [`Row`], so it does not compile until it handles a new kind.

pub mod calendar_feed;
pub mod claim;
mod decode;
mod encode;
mod index_entries;
pub mod key;
pub(crate) mod number;
pub mod outbox;
pub mod recheck;
mod row;
mod tag;
pub mod usage;
pub mod vehicle_feed;

pub use row::{Class, Marker, Row};
pub use tag::Tag;

#[cfg(test)]
mod tests;
