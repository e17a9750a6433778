//! Deliveries of webhooks, as operators read them.

use crate::{endpoint::Endpoint, operator::collections};
use rental_core::resources::delivery;

/// The endpoints of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![collections::list_of_organization(&delivery::SPEC), collections::retrieve_of_any(&delivery::SPEC)]
}
