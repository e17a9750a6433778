//! The error of an amount beyond the limit.

use crate::error::{Error, FieldCode};

/// The error of a sum or product that is larger than the largest amount.
pub(super) fn too_large(param: &str) -> Error {
    Error::field(param, FieldCode::Invalid, "would be larger than any amount")
}
