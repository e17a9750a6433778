//! Who pays for a toll or violation, by what is recorded now.

use crate::{
    error::Error,
    fleet::{
        Holders, RentalsAround, VehicleMatch,
        attribution::{Candidate, Verdict, about, decide},
        twins,
    },
    resources::{
        Attributable, Payer, Resource, customer::Customer, organization::Organization, rental::Rental, vehicle::Vehicle,
    },
    store::{Store, get_each},
    value::{CustomerId, Text, Timestamp, VehicleId},
};
use std::{
    borrow::Cow,
    collections::{HashMap, hash_map::Entry},
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

    /// The payer that the server chooses: the customer who clearly pays, else nobody.
    #[must_use]
    pub fn payer(&self) -> Payer {
        match self.clear() {
            Some(candidate) => Payer::automatic(candidate.customer, candidate.rental, &candidate.reason),
            None => self.detached(),
        }
    }

    /// The payer of an object without a customer that is not attached now.
    #[must_use]
    pub fn without_customer<T: Attributable>(&self, object: &T) -> Payer {
        if object.payer().is_detached() { self.detached() } else { self.second_posting().unwrap_or_default() }
    }

    fn second_posting(&self) -> Option<Payer> {
        self.twin.as_ref().map(|(_, reason)| Payer::second_posting(reason.clone()))
    }

    /// Nobody, of an object that the server attaches when it is clear.
    fn detached(&self) -> Payer {
        self.second_posting().unwrap_or_else(|| Payer::detached(self.reason()))
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

/// Vehicles with one number whose customers are shown to the person who decides.
const SHOWN_VEHICLES: usize = 4;
/// Rentals that a derivation keeps at most: a page of tolls has a few of each vehicle and day.
const MOST_RENTALS: usize = 2_000;

/// Derives who pays for some objects, such as a page of a list or a batch of one vehicle. What decides several of them is read
/// once: who has or had a transponder or plate, the rentals of a vehicle on a day, whether a customer is there. So each object is
/// decided by what was recorded when the first one was read, or later.
pub struct Deriving<'a> {
    store: &'a dyn Store,
    organization: &'a Organization,
    holders: HashMap<[Option<String>; 3], Holders>,
    rentals: HashMap<(VehicleId, u32), RentalsAround>,
    /// The number of all these rentals.
    kept: usize,
    vehicles: HashMap<VehicleId, bool>,
    customers: HashMap<CustomerId, bool>,
}

impl<'a> Deriving<'a> {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(store: &'a dyn Store, organization: &'a Organization) -> Self {
        let (holders, rentals) = (HashMap::new(), HashMap::new());
        let (vehicles, customers) = (HashMap::new(), HashMap::new());
        Self { store, organization, holders, rentals, kept: 0, vehicles, customers }
    }

    /// Derives who pays for an object. Its transponder and plate find the vehicle; an object without both keeps the one it has.
    ///
    /// # Errors
    /// The store is not available.
    pub async fn derive<T: Attributable>(&mut self, object: &T) -> Result<Derived, Error> {
        let whose = self.whose(object).await?;
        self.derive_for(object, whose, &[]).await
    }

    /// The vehicle of an object.
    ///
    /// # Errors
    /// The store is not available.
    pub async fn whose<T: Attributable>(&mut self, object: &T) -> Result<VehicleMatch, Error> {
        let [tag, plate, state] = object.identifiers();
        if let Some(vehicle) = object.known_vehicle().filter(|_| tag.is_none() && plate.is_none()) {
            return Ok(VehicleMatch::One(vehicle));
        }
        let (when, zone) = (object.when(), self.organization.time_zone);
        let identifiers = [tag, plate, state].map(|text| text.map(str::to_owned));
        if let Some(known) = self.holders.get(&identifiers) {
            return Ok(known.at(when, zone));
        }
        let holders = Holders::read(self.store, self.organization.id, tag, (plate, state)).await?;
        let found = holders.at(when, zone);
        self.vehicles.extend(holders.present().iter().map(|vehicle| (*vehicle, true)));
        self.holders.insert(identifiers, holders);
        Ok(found)
    }

    /// Derives who pays for an object of this vehicle. `more` are objects of the same change, with the vehicles that they will
    /// have.
    ///
    /// # Errors
    /// The store is not available.
    pub async fn derive_for<T: Attributable>(
        &mut self,
        object: &T,
        whose: VehicleMatch,
        more: &[T],
    ) -> Result<Derived, Error> {
        let (store, organization) = (self.store, self.organization);
        let nobody = |why: &str| Verdict::Nobody(why.to_owned(), Vec::new());
        let when = object.when();
        let vehicle = match whose {
            VehicleMatch::One(vehicle) => vehicle,
            VehicleMatch::None => {
                let verdict = nobody("No vehicle has this transponder or plate.");
                return Ok(Derived { vehicle: None, verdict, twin: None });
            }
            VehicleMatch::Unclear(why, vehicles) => {
                let candidates = self.candidates_of(&vehicles, object).await?;
                return Ok(Derived { vehicle: None, verdict: Verdict::Unclear(why, candidates), twin: None });
            }
        };
        let Some(about) = about(when, organization.time_zone) else {
            let verdict = nobody("It is not known when it happened.");
            return Ok(Derived { vehicle: Some(vehicle), verdict, twin: None });
        };
        let rentals = self.rentals_around(vehicle, about).await?;
        let verdict = decide(rentals, vehicle, when, object.occasion());
        let object = match object.known_vehicle() == Some(vehicle) {
            true => Cow::Borrowed(object),
            false => Cow::Owned(of_vehicle(object, vehicle)),
        };
        let first = twins::first_twin(store, organization.id, &*object, more).await?;
        let twin = first.map(|first| (first.id().uuid(), twins::reason(&first)));
        let verdict = match (verdict, &twin) {
            (Verdict::Clear(candidate), Some((_, reason))) => Verdict::Unclear(reason.to_string(), vec![candidate]),
            (Verdict::Unclear(_, candidates), Some((_, reason))) => Verdict::Unclear(reason.to_string(), candidates),
            (verdict, _) => verdict,
        };
        self.present_only(Derived { vehicle: Some(vehicle), verdict, twin }).await
    }

    /// The candidates when it can have been any of these vehicles, of which a few are looked at.
    async fn candidates_of<T: Attributable>(
        &mut self,
        vehicles: &[VehicleId],
        object: &T,
    ) -> Result<Vec<Candidate>, Error> {
        let when = object.when();
        let Some(about) = about(when, self.organization.time_zone) else { return Ok(Vec::new()) };
        let mut all: Vec<Candidate> = Vec::new();
        for vehicle in vehicles.iter().take(SHOWN_VEHICLES) {
            let rentals = self.rentals_around(*vehicle, about).await?;
            let found = match decide(rentals, *vehicle, when, object.occasion()) {
                Verdict::Clear(candidate) => vec![candidate],
                Verdict::Unclear(_, candidates) => candidates,
                Verdict::Nobody(..) => Vec::new(),
            };
            // A customer can have had one of them after the other.
            all.extend(
                found.into_iter().filter(|one| all.iter().all(|other| other.rental != one.rental)).collect::<Vec<_>>(),
            );
        }
        Ok(all)
    }

    /// The rentals that decide who had a vehicle at a time.
    async fn rentals_around(&mut self, vehicle: VehicleId, about: Timestamp) -> Result<&[Rental], Error> {
        let (store, organization) = (self.store, self.organization.id);
        if self.kept > MOST_RENTALS {
            self.rentals.clear();
            self.kept = 0;
        }
        match self.rentals.entry((vehicle, about.day_number())) {
            Entry::Occupied(known) => {
                let known = known.into_mut();
                let before = known.len();
                known.move_to(store, organization, vehicle, about).await?;
                self.kept += known.len() - before;
                Ok(known.decisive())
            }
            Entry::Vacant(place) => {
                let read = RentalsAround::read(store, organization, vehicle, about).await?;
                self.kept += read.len();
                Ok(place.insert(read).decisive())
            }
        }
    }

    /// The same without a vehicle or customer whose record is damaged or was removed: nothing is attached to them.
    async fn present_only(&mut self, derived: Derived) -> Result<Derived, Error> {
        let organization = self.organization.id;
        let vehicle = derived.vehicle.filter(|id| !self.vehicles.contains_key(id));
        let customer = derived.clear().map(|candidate| candidate.customer);
        let unknown = customer.filter(|id| !self.customers.contains_key(id));
        let places = vehicle.map(|id| Vehicle::key(organization, id));
        let places: Vec<_> = places.into_iter().chain(unknown.map(|id| Customer::key(organization, id))).collect();
        if !places.is_empty() {
            let found = get_each(self.store, &places).await?;
            let mut is_there = found.iter().map(|found| matches!(found, Ok(Some(_))));
            self.vehicles.extend(vehicle.and_then(|id| Some((id, is_there.next()?))));
            self.customers.extend(unknown.and_then(|id| Some((id, is_there.next()?))));
        }
        if derived.vehicle.is_some_and(|id| self.vehicles.get(&id) == Some(&false)) {
            let verdict = Verdict::Nobody("The record of its vehicle is lost.".into(), Vec::new());
            return Ok(Derived { vehicle: None, verdict, ..derived });
        }
        Ok(match derived.verdict {
            Verdict::Clear(candidate) if self.customers.get(&candidate.customer) == Some(&false) => {
                let why = format!("The record of the customer of rental {} is lost.", candidate.rental);
                Derived { verdict: Verdict::Unclear(why, vec![candidate]), ..derived }
            }
            verdict => Derived { verdict, ..derived },
        })
    }
}

/// The object with this vehicle.
#[must_use]
pub fn of_vehicle<T: Attributable>(object: &T, vehicle: VehicleId) -> T {
    let mut object = object.clone();
    *object.vehicle() = Some(vehicle);
    object
}
