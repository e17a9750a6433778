//! Rules over the rentals of a fleet: who had a vehicle at a time.

pub mod attribution;
