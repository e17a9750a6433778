//! The nights for which a rental holds a vehicle.

use crate::value::{Date, RentalId, VehicleId};

/// The nights `[start, end)` for which a rental holds a vehicle, as day numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Hold {
    pub(crate) vehicle: VehicleId,
    pub(crate) rental: RentalId,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Hold {
    /// The hold from the day of pickup to the day of return. If both are the same day, it is one night long
    /// (`docs/decisions.md`, "Rentals hold vehicles").
    #[must_use]
    pub fn new(vehicle: VehicleId, rental: RentalId, start: Date, end: Date) -> Self {
        let first = start.day_number();
        Self { vehicle, rental, start: first, end: end.day_number().max(first + 1) }
    }

    /// The length class: class n has holds of 2^n to 2^(n+1)-1 nights.
    pub(crate) fn class(self) -> u8 {
        (self.end - self.start).ilog2() as u8
    }

    pub(crate) fn overlaps(self, start: u32, end: u32) -> bool {
        self.start < end && start < self.end
    }
}
