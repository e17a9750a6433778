//! The attribution of tolls and violations: how each was assigned to its customer, and the look-up of unassigned ones.

use super::event::EventType;
use crate::{
    error::{Error, FieldCode},
    schema::{Attribution, IndexPrefix, LookUpSpec, look_up},
    value::{CustomerId, RentalId},
};

/// The event of an object whose customer changed to another customer; no event otherwise.
pub(super) fn attached(event: EventType, before: Option<CustomerId>, after: Option<CustomerId>) -> Vec<EventType> {
    if after.is_some() && after != before { vec![event] } else { Vec::new() }
}

/// The look-up of unattached tolls and violations: those without a customer, unless a request chose that.
pub(super) const UNATTACHED: LookUpSpec = look_up(128, "unattached");

/// The prefix of the entries of unattached tolls or violations: those without a customer, unless a request chose that.
#[must_use]
pub fn unattached_look_up() -> IndexPrefix {
    UNATTACHED.of(&[])
}

/// The entry of a toll or violation in this look-up, if it is unattached.
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

/// Checks that customer, attribution and rental of a toll or violation are consistent.
///
/// # Errors
/// [`Error::Invalid`] with the fields that contradict each other.
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
