//! What tolls and violations have in common: a vehicle caused each of them at a time, and one customer pays. The rules for
//! that customer, and the look-up of objects without one.

use super::{
    event::EventType,
    resource::Resource,
    rules::{Create, Portable, RuleContext, Update},
};
use crate::{
    error::{Error, FieldCode},
    schema::{Attribution, Fields, IndexPrefix, LookUpSpec, look_up},
    value::{CustomerId, Date, FromFields, RentalId, Timestamp, VehicleId},
};

/// What the vehicle did. After a return, a parked vehicle can be ticketed until the end of the next day.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Occasion {
    /// It was driven: past a toll gantry or a camera.
    Driving,
    /// It was parked, or nobody knows.
    Parking,
}

/// Who pays a toll or violation, and how that was decided.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Payer {
    /// The customer who pays.
    pub customer: Option<CustomerId>,
    /// Whether a request chose the customer or the server did.
    pub attribution: Option<Attribution>,
    /// The rental whose customer the server chose.
    pub rental: Option<RentalId>,
}

/// A resource whose objects are attached to the customer who had the vehicle. It has the rules of this file.
pub trait Attributable: Resource + FromFields + Clone + PartialEq {
    /// The event type of an attached object.
    const ATTACHED: EventType;

    /// What the vehicle did.
    fn occasion(&self) -> Occasion;
    /// The id of the vehicle, if it is known.
    fn vehicle(&mut self) -> &mut Option<VehicleId>;
    /// The transponder's number, the plate, and the state of the plate, as reported.
    fn identifiers(&self) -> [Option<&str>; 3];
    /// The instant and the local date, if they are known.
    fn when(&self) -> (Option<Timestamp>, Option<Date>);
    /// Sets the local date.
    fn set_date(&mut self, date: Date);
    /// Who pays.
    fn payer(&self) -> Payer;
    /// Sets who pays.
    fn set_payer(&mut self, payer: Payer);

    /// Attaches the object to a customer and the rental of that customer.
    fn attach(&mut self, customer: CustomerId, rental: RentalId) {
        let attribution = Some(Attribution::Automatic);
        self.set_payer(Payer { customer: Some(customer), attribution, rental: Some(rental) });
    }
}

impl<T: Attributable> Create for T {
    fn create(&mut self, context: &RuleContext<'_>) -> Result<Vec<EventType>, Error> {
        let payer = self.payer();
        self.set_payer(Payer { attribution: payer.customer.map(|_| Attribution::Manual), ..payer });
        if let (Some(time), None) = self.when() {
            self.set_date(context.organization.time_zone.local(time).date());
        }
        Ok(attached::<T>(None, payer.customer))
    }
}

impl<T: Attributable> Update for T {
    /// A customer that a request sets is its choice. The rental of the customer before is removed.
    fn apply(&mut self, before: &Self, _: &Fields, _: &RuleContext<'_>) -> Result<(), Error> {
        let payer = self.payer();
        if payer.customer != before.payer().customer {
            self.set_payer(Payer { attribution: Some(Attribution::Manual), rental: None, ..payer });
        }
        Ok(())
    }

    fn events(&self, before: &Self, _: bool, _: &Fields) -> Vec<EventType> {
        attached::<T>(before.payer().customer, self.payer().customer)
    }
}

impl<T: Attributable> Portable for T {
    /// Checks that customer, attribution and rental are consistent.
    fn arrive(&self, _: &RuleContext<'_>) -> Result<(), Error> {
        let Payer { customer, attribution, rental } = self.payer();
        match (customer, attribution, rental) {
            (None, None | Some(Attribution::Manual), None)
            | (Some(_), Some(Attribution::Manual), None)
            | (Some(_), Some(Attribution::Automatic), Some(_)) => Ok(()),
            _ => Err(Error::field(
                "attribution",
                FieldCode::Invalid,
                "must be `automatic` with a customer and a rental, `manual` without a rental, or null without both",
            )),
        }
    }
}

/// The event of an object whose customer changed to another customer; no event otherwise.
fn attached<T: Attributable>(before: Option<CustomerId>, after: Option<CustomerId>) -> Vec<EventType> {
    if after.is_some() && after != before { vec![T::ATTACHED] } else { Vec::new() }
}

/// The look-up of unattached tolls and violations: those without a customer, unless a request chose that.
pub(super) const UNATTACHED: LookUpSpec = look_up(128, "unattached");

/// The prefix of the entries of unattached tolls or violations: those without a customer, unless a request chose that.
#[must_use]
pub fn unattached_look_up() -> IndexPrefix {
    UNATTACHED.of(&[])
}

impl Payer {
    /// The entry of a toll or violation in this look-up, if it is unattached.
    pub(super) fn unattached(self) -> Option<IndexPrefix> {
        (self.customer.is_none() && self.attribution.is_none()).then(unattached_look_up)
    }
}
