//! Parses a JSON body into typed fields, as a [`ResourceSpec`](crate::schema::ResourceSpec) describes them. The error lists
//! all bad fields.
//!
//! Numbers are parsed from their text, so money is exact; `raw_data` is kept byte for byte. This module reads no store:
//! the operations check later whether a referenced object exists.

mod check;
mod duplicates;
mod event_list;
mod fields;
mod lines;
mod members;
mod plain_value;
mod suggestion;
mod verb;

#[cfg(test)]
pub(crate) use fields::READINGS;
pub(crate) use members::Members;
pub(crate) use suggestion::{did_you_mean, shorten};
pub use verb::Verb;

#[cfg(test)]
mod tests;
