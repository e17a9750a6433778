//! How a toll or violation gets its customer, and where those without one are found.

use super::event::EventType;
use crate::{
    error::{Error, FieldCode},
    schema::{Attribution, IndexPrefix, LookUpSpec, look_up},
    value::{CustomerId, RentalId},
};

/// The event of an object that got a customer, or another customer; none otherwise.
pub(super) fn attached(event: EventType, before: Option<CustomerId>, after: Option<CustomerId>) -> Vec<EventType> {
    if after.is_some() && after != before { vec![event] } else { Vec::new() }
}

/// Finds tolls and violations without a customer for which nobody chose that.
pub(super) const UNATTACHED: LookUpSpec = look_up(128, "unattached");

/// The entries of tolls and violations without a customer for which nobody chose that.
#[must_use]
pub fn unattached_look_up() -> IndexPrefix {
    UNATTACHED.of(&[])
}

/// The entry of a toll or violation in the look-up of those without a customer, if it belongs there.
pub(super) fn unattached(customer: Option<CustomerId>, attribution: Option<Attribution>) -> Vec<IndexPrefix> {
    if customer.is_none() && attribution.is_none() { vec![unattached_look_up()] } else { Vec::new() }
}

/// The attribution of a toll or violation after a request that may have set its customer.
pub(super) fn chosen(
    attribution: Option<Attribution>,
    before: Option<CustomerId>,
    after: Option<CustomerId>,
) -> Option<Attribution> {
    if before == after { attribution } else { Some(Attribution::Manual) }
}

/// Checks that customer, attribution and rental of a toll or violation go together.
///
/// # Errors
/// The rules of the product cannot lead to this combination.
pub(super) fn check_attribution(
    customer: Option<CustomerId>,
    attribution: Option<Attribution>,
    rental: Option<RentalId>,
) -> Result<(), Error> {
    match (customer, attribution, rental) {
        (None, None | Some(Attribution::Manual), None)
        | (Some(_), Some(Attribution::Manual), None)
        | (Some(_), Some(Attribution::Automatic), Some(_)) => Ok(()),
        _ => Err(Error::field(
            "attribution",
            FieldCode::Invalid,
            "must be `automatic` with a customer and a rental, `manual` without a rental, or null without both",
        )),
    }
}
