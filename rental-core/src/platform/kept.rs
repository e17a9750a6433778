//! The stored form of errors for idempotency keys, so that a repeated request gets the same error.

use crate::{
    error::{Error, FieldCode, FieldError, FieldErrors},
    resources::spec_of,
    value::{BlockId, Holder, RentalId},
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// The status of a stored response that is an object.
pub(super) const SUCCESS: u16 = 200;
/// The status of a stored response that is an error.
const FAILURE: u16 = 400;

const CODES: [FieldCode; 5] =
    [FieldCode::Invalid, FieldCode::Missing, FieldCode::Unknown, FieldCode::Duplicate, FieldCode::ResourceMissing];

/// The stored form of every error for which [`Error::is_final`] is true.
#[derive(Deserialize, Serialize)]
#[serde(tag = "error", rename_all = "snake_case")]
enum Kept {
    NotFound {
        object: String,
    },
    Invalid {
        fields: Vec<KeptField>,
        unlisted: u32,
    },
    VehicleUnavailable {
        /// Errors of before blocks existed have a rental alone.
        rental: Option<RentalId>,
        block: Option<BlockId>,
        message: String,
    },
    PreconditionFailed,
    Conflict {
        message: String,
    },
}

#[derive(Deserialize, Serialize)]
struct KeptField {
    param: String,
    code: String,
    message: String,
}

/// The status and bytes to store for a final error.
pub(super) fn write(error: &Error) -> (u16, Bytes) {
    let kept = match error.clone() {
        Error::NotFound { object } => Kept::NotFound { object: object.into() },
        Error::Invalid(fields) => Kept::Invalid {
            fields: fields.listed().iter().cloned().map(KeptField::from).collect(),
            unlisted: u32::try_from(fields.unlisted()).unwrap_or(u32::MAX),
        },
        Error::VehicleUnavailable { holder, message } => match holder {
            Holder::Rental(rental) => Kept::VehicleUnavailable { rental: Some(rental), block: None, message },
            Holder::Block(block) => Kept::VehicleUnavailable { rental: None, block: Some(block), message },
        },
        Error::PreconditionFailed => Kept::PreconditionFailed,
        Error::Conflict(message) => Kept::Conflict { message },
        // Cannot occur: `operations::write` stores final errors only.
        other => Kept::Conflict { message: other.to_string() },
    };
    // Strings and ids are always JSON.
    (FAILURE, serde_json::to_vec(&kept).unwrap_or_default().into())
}

/// Parses a stored error.
///
/// # Errors
/// [`Error::Internal`] when the bytes are not from [`write`].
pub(super) fn read(body: &[u8]) -> Result<Error, Error> {
    let damaged = |why: &str| Error::Internal(format!("a stored response is no error: {why}"));
    let kept: Kept = crate::value::read_json(body).map_err(|error| damaged(&error.to_string()))?;
    Ok(match kept {
        Kept::NotFound { object } => {
            Error::NotFound { object: spec_of(&object).ok_or_else(|| damaged("an unknown resource"))?.object }
        }
        Kept::Invalid { fields, unlisted } => {
            let fields: Option<Vec<FieldError>> = fields.into_iter().map(KeptField::read).collect();
            let mut errors = FieldErrors::from(fields.ok_or_else(|| damaged("an unknown code"))?);
            // The list is full when there are unlisted errors, so these are only counted.
            (0..unlisted).for_each(|_| errors.add(|| FieldError::new("body", FieldCode::Invalid, "has more mistakes")));
            Error::Invalid(errors)
        }
        Kept::VehicleUnavailable { rental, block, message } => {
            let holder = rental.map(Holder::Rental).or_else(|| block.map(Holder::Block));
            Error::VehicleUnavailable { holder: holder.ok_or_else(|| damaged("no holder"))?, message }
        }
        Kept::PreconditionFailed => Error::PreconditionFailed,
        Kept::Conflict { message } => Error::Conflict(message),
    })
}

impl From<FieldError> for KeptField {
    fn from(error: FieldError) -> Self {
        Self { param: error.param, code: error.code.as_str().into(), message: error.message }
    }
}

impl KeptField {
    fn read(self) -> Option<FieldError> {
        let code = CODES.into_iter().find(|code| code.as_str() == self.code)?;
        Some(FieldError { param: self.param, code, message: self.message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_final_error_is_read_back_as_it_was() {
        let fields = CODES.map(|code| FieldError::new("daily_rate", code, "is wrong"));
        let many = vec![fields[0].clone(); FieldErrors::MOST + 3];
        let errors = [
            Error::NotFound { object: "vehicle" },
            Error::Invalid(fields.to_vec().into()),
            Error::Invalid(many.into()),
            Error::VehicleUnavailable {
                holder: Holder::Rental(RentalId::from_u128(7)),
                message: "It is \"taken\".".into(),
            },
            Error::VehicleUnavailable {
                holder: Holder::Block(BlockId::from_u128(7)),
                message: "It is blocked.".into(),
            },
            Error::PreconditionFailed,
            Error::Conflict("The invoice is void.".into()),
        ];
        for error in errors {
            assert!(error.is_final(), "{error:?}");
            let (status, body) = write(&error);
            assert_ne!(status, SUCCESS);
            assert_eq!(read(&body), Ok(error));
        }
    }

    #[test]
    fn what_is_no_stored_error_is_reported_as_damage() {
        for body in [
            "",
            "{}",
            r#"{"error":"not_found","object":"spaceship"}"#,
            r#"{"error":"invalid","fields":[{}],"unlisted":0}"#,
        ] {
            assert!(matches!(read(body.as_bytes()), Err(Error::Internal(_))), "{body}");
        }
    }
}
