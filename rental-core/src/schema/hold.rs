//! The nights for which a rental or a block holds a vehicle.

use crate::value::{Date, Holder, VehicleId};

/// The nights `[start, end)` for which a rental or a block holds a vehicle, as day numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Hold {
    pub(crate) vehicle: VehicleId,
    pub(crate) holder: Holder,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// Bits of a calendar in one length class: a class has the lengths of three powers of two. Fewer classes mean fewer ranges to
/// read for the vehicles of a fleet.
const BITS: u8 = 3;
/// Length classes: enough for the longest hold, of 3,652,058 nights.
const CLASSES: u8 = 8;

impl Hold {
    /// The hold from the first day to the day of return. If both are the same day, it is one night long
    /// (`docs/decisions.md`, "Rentals hold vehicles").
    #[must_use]
    pub fn new(vehicle: VehicleId, holder: Holder, start: Date, end: Date) -> Self {
        let first = start.day_number();
        Self { vehicle, holder, start: first, end: end.day_number().max(first + 1) }
    }

    /// The hold on some nights `[start, end)`, as day numbers; `None` for no night.
    pub(crate) fn nights(vehicle: VehicleId, holder: Holder, (start, end): (u32, u32)) -> Option<Self> {
        (start < end).then_some(Self { vehicle, holder, start, end })
    }

    /// The length class: class n has holds of 8^n to 8^(n+1)-1 nights.
    pub(crate) fn class(self) -> u8 {
        (self.end - self.start).ilog2() as u8 / BITS
    }

    /// The bit of the hold in the calendar of its vehicle: the base-2 logarithm of its length.
    pub(crate) fn calendar_bit(self) -> u32 {
        1 << (self.end - self.start).ilog2()
    }

    /// The day numbers on which a hold of a length class can start that contains a night of `[start, end)`.
    pub(crate) fn starts(class: u8, start: u32, end: u32) -> std::ops::Range<u32> {
        start.saturating_sub((1 << (BITS * (class + 1))) - 1)..end
    }

    /// The length classes in use, by the bits of a calendar.
    pub(crate) fn classes(calendar: u32) -> impl Iterator<Item = u8> {
        (0..CLASSES).filter(move |class| calendar & Self::calendar_bits(*class) != 0)
    }

    /// All bits of a length class in a calendar.
    pub(crate) fn calendar_bits(class: u8) -> u32 {
        ((1_u32 << BITS) - 1).checked_shl(u32::from(BITS) * u32::from(class)).unwrap_or(0)
    }

    pub(crate) fn overlaps(self, start: u32, end: u32) -> bool {
        self.start < end && start < self.end
    }
}
