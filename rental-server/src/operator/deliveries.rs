//! Deliveries of webhooks, as operators read them.

use crate::{endpoint::Endpoint, operator};
use rental_core::resources::delivery;

/// The endpoints of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![operator::list_of_organization(&delivery::SPEC), operator::retrieve_of_any(&delivery::SPEC)]
}
