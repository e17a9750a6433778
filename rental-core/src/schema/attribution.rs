//! The fields that say how a toll or violation was assigned to its customer.

use super::{
    field_spec::{FieldSpec, field},
    kind::Kind,
};
use crate::value::words;

words! {
    /// How a toll or violation was assigned to its customer.
    pub enum Attribution {
        /// A request chose the customer, or none.
        Manual = "manual",
        /// The server chose the customer of the rental that had the vehicle at that time.
        Automatic = "automatic",
    }
}

/// The field `attribution`, with a word of [`Attribution`].
pub(crate) const ATTRIBUTION: FieldSpec = field(
    "attribution",
    Kind::Word(Attribution::WORDS),
    "Whether somebody chose the customer, or it followed from the rental that had the vehicle; a choice is never changed \
     by a suggestion.",
    "null",
)
.or_null();
/// The field `time_zone` of a toll or violation: where the clocks are that showed its time.
pub(crate) const STATEMENT_ZONE: FieldSpec = field(
    "time_zone",
    Kind::TimeZone,
    "The time zone in which the statement has the time or the day; null when the time has an offset from UTC.",
    "\"America/New_York\"",
)
.optional()
.fixed();
/// The field `rental_id` of a toll or violation: the rental whose customer the server chose.
pub(crate) const RENTAL_ID: FieldSpec =
    field("rental_id", Kind::Reference("rental"), "The rental from which the customer followed.", "null").or_null();
/// The field `attribution_reason` of a toll or violation: why the server chose the customer.
pub(crate) const ATTRIBUTION_REASON: FieldSpec =
    field("attribution_reason", Kind::Text(255), "Why the server chose the customer; null when a request did.", "null")
        .or_null();
/// The field `review_reason` of a toll or violation: why a person has to look at it although it is attached.
pub(crate) const REVIEW_REASON: FieldSpec = field(
    "review_reason",
    Kind::Text(255),
    "Why a person has to look at it: an invoice bills it, and by what is recorded now somebody else or nobody pays; or, with \
     `PROBABLE_TWIN`, it is probably the same passage as another toll; or, with `DETACHED`, the server detached it, because \
     by what is recorded now it is not clear who pays.",
    "null",
)
.or_null();
