//! The rows derived from an object: index entries, look-ups, holds. A resource computes them as a value.

use super::{hold::Hold, index::IndexPrefix};
use crate::value::{CustomerId, Date, EarlierVehicle, InvoiceId, Money, Timestamp, VehicleId, Zone};

/// Who pays for an object and how much. While invoices bill the object, its customer stays, and its amount does not fall
/// below what they bill.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Charge {
    /// The customer that the object is attached to.
    pub customer: Option<CustomerId>,
    /// The amount; `None` for a violation, whose amount due changes when somebody pays the city.
    pub amount: Option<Money>,
    /// What invoices bill of it, and the last one of them; `None` when that is nothing.
    pub billed: Option<(Money, InvoiceId)>,
}

/// What an object contributes to the question who pays for the tolls and violations of a vehicle. When it changes, what the server
/// decided is derived again.
#[derive(Clone, Debug, PartialEq)]
pub struct Grounds {
    /// The vehicle.
    pub vehicle: VehicleId,
    /// The first day, as a day number, on which the object can decide who had the vehicle.
    pub from: u32,
    /// What decides.
    pub facts: Facts,
}

/// The transponder, the plate and the state of the plate in the fields of a vehicle.
pub type Names = [Option<String>; 3];

impl Grounds {
    /// The vehicles that it concerns.
    pub fn vehicles(&self) -> impl Iterator<Item = VehicleId> {
        let earlier = match &self.facts {
            Facts::Rental { earlier, .. } => earlier.as_slice(),
            Facts::Names(_) | Facts::Assignments(_) | Facts::Attached(_) => &[],
        };
        [self.vehicle].into_iter().chain(earlier.iter().map(|one| one.vehicle_id))
    }
}

/// The facts of an object that decide who pays tolls and violations.
#[derive(Clone, Debug, PartialEq)]
pub enum Facts {
    /// A rental: who can have had the vehicle, and when.
    Rental {
        /// The customer.
        customer: CustomerId,
        /// The word of the status.
        status: &'static str,
        /// The planned days.
        days: [Option<Date>; 2],
        /// The recorded times of pickup and return.
        times: [Option<Timestamp>; 2],
        /// Where the days begin and end.
        zone: Zone,
        /// The vehicles that the customer had before.
        earlier: Vec<EarlierVehicle>,
    },
    /// The transponder, the plate and its state, by which tolls and violations find a vehicle.
    Names(Names),
    /// The look-ups of the tags and plates that a vehicle has and had, each with its state and times.
    Assignments(Vec<(IndexPrefix, String)>),
    /// A toll or violation whose payer is derived again: what it reports of vehicle and time.
    Attached(String),
}

/// The rows derived from an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    /// The nights for which a rental or a block holds vehicles. A rental has several when its vehicle was swapped.
    pub holds: Vec<Hold>,
    /// The entries in indexes and look-ups, without the organization and the id.
    pub entries: Vec<IndexPrefix>,
    /// A text that only one object of the organization can have. It is checked when the object is created.
    pub identity: Option<String>,
    /// The customer whom the personal fields of the object are about.
    pub person: Option<CustomerId>,
    /// The part of the object that an invoice can bill.
    pub charge: Option<Charge>,
    /// What the object contributes to the question who pays.
    pub grounds: Option<Grounds>,
    /// The vehicle and time of a passage, of which there may be another posting.
    pub posting: Option<(VehicleId, Timestamp)>,
}
