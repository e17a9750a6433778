//! The trait of tolls and violations: a vehicle caused each of them at a time, and one customer pays.

use super::Occasion;
use crate::{
    resources::{Resource, event::EventType, toll::Toll, violation::Violation},
    schema::Attribution,
    value::{CustomerId, Date, RentalId, Timestamp, VehicleId},
};

/// A resource whose objects are attached to the customer who had the vehicle.
pub trait Attributable: Resource + Clone + PartialEq {
    /// The kind of charge.
    const OCCASION: Occasion;
    /// The event type of an attached object.
    const ATTACHED: EventType;

    /// The id of the vehicle, if it is known.
    fn vehicle(&mut self) -> &mut Option<VehicleId>;
    /// The transponder's number, the plate, and the state of the plate, as reported.
    fn identifiers(&self) -> [Option<&str>; 3];
    /// The instant and the local date, if they are known.
    fn when(&self) -> (Option<Timestamp>, Option<Date>);
    /// Attaches the object to a customer and the rental of that customer.
    fn attach(&mut self, customer: CustomerId, rental: RentalId);
}

impl Attributable for Toll {
    const OCCASION: Occasion = Occasion::Toll;
    const ATTACHED: EventType = EventType::TollAttached;

    fn vehicle(&mut self) -> &mut Option<VehicleId> {
        &mut self.vehicle_id
    }

    fn identifiers(&self) -> [Option<&str>; 3] {
        [&self.transponder_number, &self.plate, &self.plate_state].map(Option::as_deref)
    }

    fn when(&self) -> (Option<Timestamp>, Option<Date>) {
        (self.occurred_at, self.occurred_on)
    }

    fn attach(&mut self, customer: CustomerId, rental: RentalId) {
        (self.customer_id, self.rental_id) = (Some(customer), Some(rental));
        self.attribution = Some(Attribution::Automatic);
    }
}

impl Attributable for Violation {
    const OCCASION: Occasion = Occasion::Violation;
    const ATTACHED: EventType = EventType::ViolationAttached;

    fn vehicle(&mut self) -> &mut Option<VehicleId> {
        &mut self.vehicle_id
    }

    fn identifiers(&self) -> [Option<&str>; 3] {
        [None, self.plate.as_deref(), self.state.as_deref()]
    }

    fn when(&self) -> (Option<Timestamp>, Option<Date>) {
        (self.issued_at, self.issued_on)
    }

    fn attach(&mut self, customer: CustomerId, rental: RentalId) {
        (self.customer_id, self.rental_id) = (Some(customer), Some(rental));
        self.attribution = Some(Attribution::Automatic);
    }
}
