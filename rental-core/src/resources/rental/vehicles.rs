//! The vehicles of one rental: the present one, and those that its customer had before a swap.

use super::{Rental, RentalStatus};
use crate::{
    error::{Error, FieldCode},
    schema::{Fields, Hold},
    value::{EarlierVehicle, Holder, Period, Timestamp, VehicleId},
};

impl Rental {
    /// The periods of the rental, in order. The last one is that of the present vehicle.
    pub(crate) fn periods(&self) -> impl Iterator<Item = Period> {
        let swaps = || self.earlier_vehicles.iter().map(|one| Some(one.until));
        let vehicles = self.earlier_vehicles.iter().map(|one| one.vehicle_id).chain([self.vehicle_id]);
        let times = [None].into_iter().chain(swaps()).zip(swaps().chain([None]));
        vehicles.zip(times).map(|(vehicle, (from, until))| Period { vehicle, from, until })
    }

    /// The nights that the rental holds its vehicles: each one from the day on which the customer got it to the day of the next
    /// swap. If the rental begins and ends on the same day, that day is held (`docs/decisions.md`, "Rentals hold vehicles").
    pub(super) fn holds(&self) -> Vec<Hold> {
        let (true, Some(start), Some(end)) = (self.holds_vehicles(), self.start_date, self.end_date) else {
            return Vec::new();
        };
        let day = |at: Timestamp| self.time_zone.local(at).date().day_number();
        let (start, end) = (start.day_number(), end.day_number().max(start.day_number() + 1));
        let holder = Holder::Rental(self.id);
        let hold = |one: Period| {
            let (from, to) = (one.from.map_or(start, day).max(start), one.until.map_or(end, day).min(end));
            Hold::nights(one.vehicle, holder, (from, to))
        };
        self.periods().filter_map(hold).collect()
    }

    fn holds_vehicles(&self) -> bool {
        matches!(self.status, RentalStatus::Approved | RentalStatus::Active)
    }

    /// Whether the customer has the vehicle: it was handed over, and nobody recorded the return.
    pub(super) fn is_out(&self) -> bool {
        let is_out = match self.status {
            RentalStatus::Active => true,
            RentalStatus::Approved => self.activated_at.is_some(),
            RentalStatus::New | RentalStatus::Completed | RentalStatus::Cancelled => false,
        };
        is_out && self.completed_at.is_none()
    }

    fn was_handed_over(&self) -> bool {
        match self.status {
            RentalStatus::New => false,
            RentalStatus::Approved | RentalStatus::Cancelled => self.activated_at.is_some(),
            RentalStatus::Active | RentalStatus::Completed => true,
        }
    }

    /// Records the swap that a PATCH says: the customer has `vehicle_id` since `vehicle_changed_at`. Without a time, another
    /// vehicle is a swap now while the customer has the vehicle, and otherwise replaces the present one.
    pub(super) fn change_vehicle(&mut self, before: &Self, sent: &Fields, now: Timestamp) -> Result<(), Error> {
        let is_other = self.vehicle_id != before.vehicle_id;
        let since = match sent.has("vehicle_changed_at") {
            true => self.vehicle_changed_at,
            false if is_other && before.is_out() && self.is_out() => Some(now),
            false => {
                self.forget_swaps_to_itself();
                return Ok(());
            }
        };
        let had_it_before = |at: &Timestamp| self.began_before(*at);
        match since.filter(had_it_before) {
            None => self.earlier_vehicles.clear(),
            Some(at) => {
                self.check_swap(at, now)?;
                let last = EarlierVehicle { vehicle_id: before.vehicle_id, until: Timestamp::LAST };
                match self.earlier_vehicles.last_mut() {
                    _ if is_other => self.earlier_vehicles.push(last),
                    // The time of the last swap changes.
                    Some(last) => last.until = Timestamp::LAST,
                    None => return Err(refused("needs `vehicle_id` too: the customer had no other vehicle before")),
                }
                let swapped = self.earlier_vehicles.iter().position(|one| one.until >= at);
                self.earlier_vehicles.truncate(swapped.map_or(0, |place| place + 1));
                if let Some(last) = self.earlier_vehicles.last_mut() {
                    last.until = at;
                }
            }
        }
        self.forget_swaps_to_itself();
        if self.earlier_vehicles.len() > EarlierVehicle::MOST {
            let most = EarlierVehicle::MOST;
            let rule =
                format!("would be swap {} of this rental, and it can have {most}; create another rental", most + 1);
            return Err(refused(&rule));
        }
        Ok(())
    }

    /// A swap to the vehicle that the customer has is none.
    fn forget_swaps_to_itself(&mut self) {
        while self.earlier_vehicles.last().is_some_and(|last| last.vehicle_id == self.vehicle_id) {
            self.earlier_vehicles.pop();
        }
        self.vehicle_changed_at = self.earlier_vehicles.last().map(|last| last.until);
    }

    /// Whether the pickup was before a time, by its recorded time, else by its planned day.
    fn began_before(&self, at: Timestamp) -> bool {
        match (self.activated_at, self.start_date) {
            (Some(pickup), _) => pickup < at,
            (None, Some(start)) => start <= self.time_zone.local(at).date(),
            (None, None) => true,
        }
    }

    fn check_swap(&self, at: Timestamp, now: Timestamp) -> Result<(), Error> {
        if !self.was_handed_over() {
            return Err(refused("cannot be set before the vehicle is handed over; send `vehicle_id` alone"));
        }
        if at > now {
            return Err(refused("must not be in the future; send it when the customer has the other vehicle"));
        }
        if self.completed_at.is_some_and(|back| at > back) {
            return Err(refused("must not be after `completed_at`"));
        }
        Ok(())
    }

    /// Checks that the swaps are in order, and between the recorded pickup and return.
    pub(super) fn check_swaps(&self) -> Result<(), Error> {
        let swaps: Vec<Timestamp> = self.earlier_vehicles.iter().map(|one| one.until).collect();
        if let (Some(first), Some(pickup)) = (swaps.first(), self.activated_at)
            && *first <= pickup
        {
            return Err(misplaced(
                "activated_at",
                &format!("must be before the first swap of the vehicle, at {first}"),
            ));
        }
        if let (Some(last), Some(back)) = (swaps.last(), self.completed_at)
            && back < *last
        {
            return Err(misplaced(
                "completed_at",
                &format!("must not be before the last swap of the vehicle, at {last}"),
            ));
        }
        let vehicles: Vec<VehicleId> = self.periods().map(|one| one.vehicle).collect();
        let is_list = swaps.is_sorted_by(|one, next| one < next) && vehicles.windows(2).all(|pair| pair[0] != pair[1]);
        if !is_list {
            return Err(misplaced(
                "earlier_vehicles",
                "must be in order of time, each one another vehicle than the next",
            ));
        }
        if swaps.last().copied() != self.vehicle_changed_at {
            return Err(refused("must be the last `until` of `earlier_vehicles`, or null without them"));
        }
        Ok(())
    }
}

fn refused(rule: &str) -> Error {
    misplaced("vehicle_changed_at", rule)
}

fn misplaced(field: &str, rule: &str) -> Error {
    Error::field(field, FieldCode::Invalid, rule)
}
