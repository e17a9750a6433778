//! Rules about the rentals of a fleet: which customer had a vehicle at a time.

pub mod attribution;
mod candidates;
mod possession;
pub mod twins;
mod vehicle_match;

pub use candidates::rentals_around;
pub(crate) use candidates::rentals_between;
pub(crate) use possession::{Had, recorded};
pub use vehicle_match::{VehicleMatch, vehicle_of};
