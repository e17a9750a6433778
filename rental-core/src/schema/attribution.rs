//! The fields that tell how a toll or violation got its customer.

use super::{
    field_spec::{FieldSpec, field},
    kind::Kind,
};
use crate::value::words;

words! {
    /// How a toll or violation got its customer.
    pub enum Attribution {
        /// Somebody chose the customer, or that there is none.
        Manual = "manual",
        /// The customer followed from the rental that had the vehicle.
        Automatic = "automatic",
    }
}

/// How a toll or violation got its customer.
pub const ATTRIBUTION: FieldSpec = field(
    "attribution",
    Kind::Word(Attribution::WORDS),
    "Whether somebody chose the customer, or it followed from the rental that had the vehicle; a choice is never changed \
     by a suggestion.",
    "null",
)
.or_null();
/// The rental from which the customer of a toll or violation followed.
pub const RENTAL_ID: FieldSpec =
    field("rental_id", Kind::Reference("rental"), "The rental from which the customer followed.", "null").or_null();
