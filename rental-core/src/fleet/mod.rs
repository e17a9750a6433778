//! Rules about the rentals of a fleet: which vehicle had a tag or plate at a time, and which customer had the vehicle.

pub mod attribution;
mod candidates;
mod possession;
pub mod twins;
mod vehicle_match;

pub use candidates::rentals_around;
pub(crate) use candidates::{RentalsAround, first_booking, rentals_of_days, vehicles_still_out};
pub(crate) use possession::{Had, recorded};
pub use vehicle_match::{Held, Holders, VehicleMatch};
pub(crate) use vehicle_match::{has_holders, holders, recorded_holders};
