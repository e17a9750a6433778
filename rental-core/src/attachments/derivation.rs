//! Who pays for a toll or violation, by what is recorded now.

use crate::{
    error::Error,
    fleet::{
        Holders, VehicleMatch,
        attribution::{Candidate, Verdict, When, decide},
        rentals_around, twins,
    },
    resources::{Attributable, Payer, Resource, customer::Customer, organization::Organization, vehicle::Vehicle},
    store::{Store, get_each},
    value::{Text, VehicleId},
};
use uuid::Uuid;

/// Who pays for an object, by what is recorded now.
#[derive(Clone, Debug, PartialEq)]
pub struct Derived {
    /// The vehicle, if it is known.
    pub vehicle: Option<VehicleId>,
    /// Whether one customer clearly pays.
    pub verdict: Verdict,
    /// Another posting of the same passage, which comes before this one: its id, and the reason to look at this one.
    pub twin: Option<(Uuid, Text)>,
}

impl Derived {
    /// The rental whose customer clearly pays.
    #[must_use]
    pub fn clear(&self) -> Option<&Candidate> {
        match &self.verdict {
            Verdict::Clear(candidate) => Some(candidate),
            Verdict::Unclear(..) | Verdict::Nobody(..) => None,
        }
    }

    /// Who pays for an object that is not attached.
    #[must_use]
    pub fn unattached(&self) -> Payer {
        Payer { review: self.twin.as_ref().map(|(_, reason)| reason.clone()), ..Payer::default() }
    }

    /// Why.
    #[must_use]
    pub fn reason(&self) -> &str {
        match &self.verdict {
            Verdict::Clear(candidate) => &candidate.reason,
            Verdict::Unclear(reason, _) | Verdict::Nobody(reason, _) => reason,
        }
    }
}

/// Derives who pays for an object. Its transponder and plate find the vehicle; an object without both keeps the one it has.
///
/// # Errors
/// The store is not available.
pub async fn derive<T: Attributable>(
    store: &dyn Store,
    organization: &Organization,
    object: &T,
) -> Result<Derived, Error> {
    let whose = whose(store, organization, object).await?;
    derive_for(store, organization, object, whose, &[]).await
}

/// The vehicle of an object.
///
/// # Errors
/// The store is not available.
pub async fn whose<T: Attributable>(
    store: &dyn Store,
    organization: &Organization,
    object: &T,
) -> Result<VehicleMatch, Error> {
    let [tag, plate, state] = object.identifiers();
    Ok(match object.known_vehicle() {
        Some(vehicle) if tag.is_none() && plate.is_none() => VehicleMatch::One(vehicle),
        _ => {
            let (at, on) = object.when();
            let holders = Holders::read(store, organization.id, tag, (plate, state)).await?;
            holders.at(When { at, on }, organization.time_zone)
        }
    })
}

/// Derives who pays for an object of this vehicle. `more` are objects of the same change, with the vehicles that they will have.
///
/// # Errors
/// The store is not available.
pub async fn derive_for<T: Attributable>(
    store: &dyn Store,
    organization: &Organization,
    object: &T,
    whose: VehicleMatch,
    more: &[T],
) -> Result<Derived, Error> {
    let nobody = |why: &str| Verdict::Nobody(why.to_owned(), Vec::new());
    let (at, on) = object.when();
    let when = When { at, on };
    let vehicle = match whose {
        VehicleMatch::One(vehicle) => vehicle,
        VehicleMatch::None => {
            let verdict = nobody("No vehicle has this transponder or plate.");
            return Ok(Derived { vehicle: None, verdict, twin: None });
        }
        VehicleMatch::Unclear(why) => {
            return Ok(Derived { vehicle: None, verdict: Verdict::Unclear(why, Vec::new()), twin: None });
        }
    };
    let Some(about) = when.about(organization.time_zone) else {
        let verdict = nobody("It is not known when it happened.");
        return Ok(Derived { vehicle: Some(vehicle), verdict, twin: None });
    };
    let rentals = rentals_around(store, organization.id, vehicle, about).await?;
    let verdict = decide(&rentals, vehicle, when, object.occasion());
    let first = twins::first_twin(store, organization.id, &of_vehicle(object, vehicle), more).await?;
    let twin = first.map(|first| (first.id().uuid(), twins::reason(&first)));
    let verdict = match (verdict, &twin) {
        (Verdict::Clear(candidate), Some((_, reason))) => Verdict::Unclear(reason.to_string(), vec![candidate]),
        (Verdict::Unclear(_, candidates), Some((_, reason))) => Verdict::Unclear(reason.to_string(), candidates),
        (verdict, _) => verdict,
    };
    present_only(store, organization, Derived { vehicle: Some(vehicle), verdict, twin }).await
}

/// The object with this vehicle.
#[must_use]
pub fn of_vehicle<T: Attributable>(object: &T, vehicle: VehicleId) -> T {
    let mut object = object.clone();
    *object.vehicle() = Some(vehicle);
    object
}

/// The same without a vehicle or customer whose record is damaged or was removed: nothing is attached to them.
async fn present_only(store: &dyn Store, organization: &Organization, derived: Derived) -> Result<Derived, Error> {
    let vehicle = derived.vehicle.map(|id| Vehicle::key(organization.id, id));
    let customer = derived.clear().map(|candidate| Customer::key(organization.id, candidate.customer));
    let is_vehicle_known = vehicle.is_some();
    let places: Vec<_> = vehicle.into_iter().chain(customer).collect();
    let found = get_each(store, &places).await?;
    let mut is_there = found.iter().map(|found| matches!(found, Ok(Some(_))));
    if is_vehicle_known && is_there.next() == Some(false) {
        let verdict = Verdict::Nobody("The record of its vehicle is lost.".into(), Vec::new());
        return Ok(Derived { vehicle: None, verdict, ..derived });
    }
    Ok(match derived.verdict {
        Verdict::Clear(candidate) if is_there.next() == Some(false) => {
            let why = format!("The record of the customer of rental {} is lost.", candidate.rental);
            Derived { verdict: Verdict::Unclear(why, vec![candidate]), ..derived }
        }
        verdict => Derived { verdict, ..derived },
    })
}
