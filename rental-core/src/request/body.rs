//! Parses a JSON body into typed fields, as a [`ResourceSpec`](crate::schema::ResourceSpec) describes them. The error lists
//! all bad fields.
//!
//! Numbers are parsed from their text, so money is exact; `raw_data` is kept byte for byte. This module reads no store:
//! the operations check later whether a referenced object exists.

mod assignments;
mod check;
mod credit_lines;
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
pub use {lines::MOST_LINES, verb::Verb};

use crate::error::{Error, FieldCode, FieldError, FieldErrors};

/// Checks that a body is empty or an object without members.
///
/// # Errors
/// [`Error::Malformed`] when it is not one JSON object, else [`Error::Invalid`] with every member.
pub fn nothing(body: &[u8]) -> Result<(), Error> {
    let sent = if body.is_empty() { Members::default() } else { members::members(body)? };
    let mut errors = FieldErrors::default();
    for (name, _) in sent.0 {
        errors.add(|| {
            FieldError::new(&shorten(&name), FieldCode::Unknown, "cannot be sent: this request takes no fields")
        });
    }
    errors.or(())
}

#[cfg(test)]
mod tests;
