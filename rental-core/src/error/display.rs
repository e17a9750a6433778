//! Errors as sentences, for programs that link this crate. The HTTP server has its own texts.

use super::{Error, KeyProblem};
use std::fmt;

/// One sentence that says what happened and what to do next.
///
/// It includes the details of [`Error::Unavailable`], [`Error::Damaged`] and [`Error::Internal`], which are for a log. Do
/// not show these three to untrusted clients.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unauthenticated(KeyProblem::Missing) => f.write_str("There is no API key in the request."),
            Self::Unauthenticated(KeyProblem::Malformed) => f.write_str("The request does not present its API key as it should."),
            Self::Unauthenticated(KeyProblem::Invalid) => f.write_str("This API key does not exist."),
            Self::Unauthenticated(KeyProblem::Revoked) => f.write_str("This API key was revoked. Use another one."),
            Self::Unauthenticated(KeyProblem::Expired) => f.write_str("This API key has expired. Use another one."),
            Self::PlanRequired => f.write_str("API access requires the Pro plan."),
            Self::ScopeRequired => {
                f.write_str("This API key has the scope `read`; writing needs one with `read_write`.")
            }
            Self::NotFound { object } => write!(f, "There is no such {}.", object.replace('_', " ")),
            Self::Malformed(message) | Self::Conflict(message) | Self::VehicleUnavailable { message, .. } => {
                f.write_str(message)
            }
            Self::Invalid(errors) => {
                let messages: Vec<&str> = errors.listed().iter().map(|error| error.message.as_str()).collect();
                f.write_str(&messages.join(" "))?;
                match errors.unlisted() {
                    0 => Ok(()),
                    more => write!(f, " There are {more} more errors."),
                }
            }
            Self::PreconditionFailed => {
                f.write_str("The object has changed since the expected revision. Read it again, then repeat the change if you still want it.")
            }
            Self::IdempotencyReused => {
                f.write_str("This idempotency key was used for another request. Use a new key for a new request.")
            }
            Self::IdempotencyInUse => {
                f.write_str("The first request with this idempotency key still runs. Try again in a second.")
            }
            Self::Unavailable(detail) => {
                write!(
                    f,
                    "The store cannot serve this request now ({detail}). Try again, with the same idempotency key."
                )
            }
            Self::StorageFull => f.write_str(
                "The storage has no room, so nothing was written. Free some, then try again with the same idempotency key.",
            ),
            Self::ClockJumped => {
                f.write_str("The clock of the server has jumped, so nothing was written. Set the clock, then try again.")
            }
            Self::Damaged(row) => write!(f, "A row of the store is damaged ({row}). Check the store."),
            Self::Internal(detail) => write!(f, "The stored data is damaged, or this is a bug: {detail}."),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use crate::error::{Error, FieldCode, FieldError, FieldErrors};

    #[test]
    fn every_wrong_field_is_named() {
        let errors = [("name", "is required"), ("year", "must be a whole number from 1900 to 2100")];
        let errors = errors.map(|(param, rule)| FieldError::new(param, FieldCode::Invalid, rule));
        let text = Error::Invalid(errors.to_vec().into()).to_string();
        assert_eq!(text, "`name` is required. `year` must be a whole number from 1900 to 2100.");
        let many = vec![errors[0].clone(); FieldErrors::MOST + 2];
        assert!(Error::Invalid(many.into()).to_string().ends_with("`name` is required. There are 2 more errors."));
    }

    #[test]
    fn a_missing_object_has_its_name_in_words() {
        assert_eq!(Error::NotFound { object: "api_key" }.to_string(), "There is no such api key.");
    }
}
