//! Every kind of row in the store: how its key is made and read, and its class.
//!
//! The store knows bytes; this module alone says what they mean. Code that depends on the kind of every row (the check of a
//! store, copies, upgrades, the descriptions for operators) matches on [`Row`]. So a new kind does not compile before each of
//! them handles it.

pub mod claim;
mod decode;
mod encode;
mod index_entries;
pub mod key;
pub mod outbox;
mod row;
mod tag;

pub use row::{Class, Marker, Row};
pub use tag::Tag;

#[cfg(test)]
mod tests;
