//! Rules about the rentals of a fleet: which customer had a vehicle at a time.

pub mod attribution;
