//! A fleet with plates, a tag, rentals and tolls, and the changes of it.

use super::clock::{Clock, time, wait};
use proptest::prelude::*;
use rental_core::{
    attachments::{Derived, Deriving, again},
    error::Error,
    operations::{self, Intent, assignments::Assign},
    resources::{
        Attributable, Billable, Payer, Resource, customer::Customer, organization::Organization, organization::SYSTEM,
        parse, rental::Rental, toll::Toll, vehicle::Vehicle,
    },
    rows::key,
    schema::Attribution,
    store::{Batch, Commit, Record, Store, memory::Memory},
    tasks::Step,
    value::{CustomerId, Date, InvoiceId, Money, OrganizationId, RentalId, Text, TollId, VehicleId},
};
use serde_json::json;

pub(crate) const ORGANIZATION: OrganizationId = OrganizationId::from_u128(7);
pub(crate) const PLATES: [&str; 3] = ["AAA111", "BBB222", "CCC333"];
pub(crate) const TAG: &str = "00412345678";
pub(crate) const VEHICLES: u128 = 3;
pub(crate) const RENTALS: u128 = 5;
pub(crate) const TOLLS: u128 = 18;
/// The tolls from this one on are read by tag a minute after the one this many before, so they are probably its twins.
pub(crate) const TWINS: u128 = 12;

/// One change of what attachments rest on, or one step of the work that keeps them true.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// A rental gets another customer, vehicle, status, days and times.
    Rental(u128, Box<Rental>),
    /// A vehicle gets a plate, or loses the one that it has.
    Plate(u128, Option<usize>),
    /// A vehicle gets the tag, or loses it.
    Tag(u128, bool),
    /// An operator says since when a vehicle has its plate, and when it had another one.
    Assign(u128, Option<i64>, Option<(usize, Option<i64>, Option<i64>)>),
    /// All tolls that are unattached and clear are attached, as `suggest --attach` does it.
    AttachAll,
    /// A person chooses the customer of a toll.
    Choose(u128, u128),
    /// A person gives a toll to nobody.
    Dismiss(u128),
    /// An invoice bills a toll, or bills it no longer.
    Bill(u128, bool),
    /// One step of each mark.
    Step,
    /// One step of each mark as it was read before the last change: another server was slow.
    LateStep,
}

pub(crate) fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => (0..RENTALS, rental()).prop_map(|(id, rental)| Change::Rental(id, Box::new(rental))),
        2 => (0..VEHICLES, prop::option::of(0..PLATES.len())).prop_map(|(id, plate)| Change::Plate(id, plate)),
        1 => (0..VEHICLES, any::<bool>()).prop_map(|(id, tag)| Change::Tag(id, tag)),
        2 => assign(),
        4 => Just(Change::AttachAll),
        1 => (0..TOLLS, 1..4u128).prop_map(|(toll, customer)| Change::Choose(toll, customer)),
        1 => (0..TOLLS).prop_map(Change::Dismiss),
        1 => (0..TOLLS, any::<bool>()).prop_map(|(toll, billed)| Change::Bill(toll, billed)),
        3 => Just(Change::Step),
        2 => Just(Change::LateStep),
    ]
}

pub(crate) fn assign() -> impl Strategy<Value = Change> {
    let hour = || prop::option::of(0i64..1_200);
    let former = prop::option::weighted(0.3, (0..PLATES.len(), hour(), hour()));
    (0..VEHICLES, hour(), former).prop_map(|(id, since, former)| Change::Assign(id, since, former))
}

/// Any rental, also one whose dates, times and status contradict each other.
pub(crate) fn rental() -> impl Strategy<Value = Rental> {
    let hour = || prop::option::of(0i64..1_200);
    let status = prop::sample::select(vec!["NEW", "APPROVED", "ACTIVE", "COMPLETED", "COMPLETED", "CANCELLED"]);
    let swap = prop_oneof![2 => Just(None), 1 => (1i64..300, 0..VEHICLES).prop_map(Some)];
    let vehicles = (0..VEHICLES, swap);
    (hour(), 0i64..600, any::<bool>(), hour(), 0i64..600, any::<bool>(), 1u128..4, vehicles, status).prop_map(
        |(start, days, ends, activated, length, back, customer, (vehicle, swap), status)| {
            let swap = swap.filter(|(_, earlier)| *earlier != vehicle);
            let swapped = swap.map(|(later, _)| time(activated.or(start).unwrap_or(0) + later));
            let earlier = swap.map(|(_, earlier)| json!({"vehicle_id": vehicle_id(earlier), "until": swapped}));
            let date = |hours: i64| Date::from_day_number(time(hours).day_number()).unwrap();
            let members = json!({
                "id": RentalId::from_u128(0), "object": "rental", "booking_id": null,
                "customer_id": CustomerId::from_u128(customer), "vehicle_id": vehicle_id(vehicle),
                "start_date": start.map(date), "end_date": start.filter(|_| ends).map(|start| date(start + days)),
                "rental_days": null, "pickup_type": null, "delivery_location": null, "final_price": 0, "currency": "USD",
                "status": status, "damage_at_return": false, "activated_at": activated.map(time),
                "completed_at": activated.or(start).filter(|_| back).map(|out| time(out + 300 + length)),
                "vehicle_changed_at": swapped, "earlier_vehicles": Vec::from_iter(earlier),
                "time_zone": "America/New_York", "amount_billed": 0, "invoice_ids": [], "created_at": time(0),
                "updated_at": time(0),
            });
            serde_json::from_value(members).unwrap()
        },
    )
}

pub(crate) fn vehicle_id(number: u128) -> VehicleId {
    VehicleId::from_u128(100 + number)
}

pub(crate) fn toll_id(number: u128) -> TollId {
    TollId::from_u128(300 + number)
}

pub(crate) fn organization() -> Organization {
    let members = json!({
        "id": ORGANIZATION, "object": "organization", "name": "Fleet", "plan": "pro",
        "default_currency": "USD", "time_zone": "America/New_York", "booking_policy": "open",
        "invoice_language": "en", "tax_included": false,
        "created_at": time(0), "updated_at": time(0),
    });
    serde_json::from_value(members).unwrap()
}

pub(crate) fn vehicle(number: u128) -> Vehicle {
    let members = json!({
        "id": vehicle_id(number), "object": "vehicle", "name": "Car", "plate": PLATES[number as usize],
        "currency": "USD", "status": "available", "organization_id": ORGANIZATION, "created_at": time(0),
        "updated_at": time(0),
    });
    serde_json::from_value(members).unwrap()
}

pub(crate) fn customer(number: u128) -> Customer {
    let members = json!({
        "id": CustomerId::from_u128(number), "object": "customer", "full_name": "Ada", "email": null, "phone": null,
        "preferred_language": "en", "language_chosen": false, "source_channel": null, "notes": null, "erased_at": null, "created_at": time(0),
        "updated_at": time(0),
    });
    serde_json::from_value(members).unwrap()
}

pub(crate) fn toll(number: u128) -> Toll {
    let (passage, is_twin) = (number % TWINS, number >= TWINS);
    let at = time(i64::try_from(passage).unwrap() * 97).plus_millis(if is_twin { 60_000 } else { 0 });
    let members = json!({
        "id": toll_id(number), "object": "toll", "amount": 1, "currency": "USD", "agency": "MTAB&T",
        "transaction_id": number.to_string(), "occurred_at": at,
        "transponder_number": is_twin.then_some(TAG), "plaza": number.is_multiple_of(2).then_some("RKB"),
        "plate": PLATES[number as usize % PLATES.len()], "vehicle_id": vehicle_id(number % VEHICLES),
        "amount_billed": 0, "invoice_ids": [],
        "created_at": time(0), "updated_at": time(0),
    });
    serde_json::from_value(members).unwrap()
}

/// A rental of vehicle 0 by customer 1, from the first hour to the last.
pub(crate) fn held(status: &str) -> Rental {
    let members = json!({
        "id": RentalId::from_u128(200), "object": "rental", "booking_id": null, "customer_id": CustomerId::from_u128(1),
        "vehicle_id": vehicle_id(0), "start_date": null, "end_date": null, "rental_days": null, "pickup_type": null,
        "delivery_location": null, "final_price": 0, "currency": "USD", "status": status, "damage_at_return": false,
        "activated_at": time(0), "completed_at": time(1_100), "time_zone": "America/New_York", "amount_billed": 0,
        "invoice_ids": [], "earlier_vehicles": [], "created_at": time(0), "updated_at": time(0),
    });
    serde_json::from_value(members).unwrap()
}

/// The store, and what a test does with it.
pub(crate) struct World {
    pub(crate) store: Memory,
    pub(crate) clock: Clock,
    pub(crate) owner: Organization,
    /// The marks before the last change.
    pub(crate) before: Vec<Record>,
}

impl World {
    pub(crate) fn new() -> Self {
        let world = Self { store: Memory::default(), clock: Clock::new(), owner: organization(), before: Vec::new() };
        let mut batch = Batch::default();
        batch.insert(Organization::key(SYSTEM, ORGANIZATION), serde_json::to_vec(&world.owner).unwrap().into());
        wait(world.store.commit(batch)).unwrap();
        (0..VEHICLES).for_each(|number| world.insert(vehicle(number)));
        (1..=3).for_each(|number| world.insert(customer(number)));
        (0..TOLLS).for_each(|number| world.insert(toll(number)));
        world
    }

    pub(crate) fn insert<T: Resource>(&self, object: T) {
        let made = wait(operations::insert(&self.store, &self.clock, &self.owner, object, Batch::default())).unwrap();
        assert_eq!(wait(self.store.commit(made.batch)).unwrap(), Commit::Applied);
    }

    /// Changes an object; false if the change was refused.
    pub(crate) fn edit<T: Resource>(&self, record: Record, rule: impl FnOnce(&mut T)) -> bool {
        let rule = |object: &mut T| {
            rule(object);
            Ok(Vec::new())
        };
        match wait(operations::edit(&self.store, &self.clock, &self.owner, record, rule)) {
            Ok(made) => wait(self.store.commit(made.batch)).unwrap() == Commit::Applied,
            Err(Error::Conflict(_)) => false,
            Err(error) => panic!("{error:?}"),
        }
    }

    pub(crate) fn record<T: Resource>(&self, id: rental_core::value::Id<T::Kind>) -> Option<Record> {
        wait(self.store.get(&[T::key(ORGANIZATION, id)])).unwrap().pop().flatten()
    }

    pub(crate) fn tolls(&self) -> Vec<Toll> {
        let record = |number| self.record::<Toll>(toll_id(number)).unwrap();
        (0..TOLLS).map(record).map(|record| parse(&record.key, &record.value).unwrap()).collect()
    }

    pub(crate) fn derived(&self, toll: &Toll) -> Derived {
        wait(Deriving::new(&self.store, &self.owner).derive(toll)).unwrap()
    }

    pub(crate) fn is_billed(&self, toll: TollId) -> bool {
        let record = self.record::<Toll>(toll).unwrap();
        parse::<Toll>(&record.key, &record.value).unwrap().billed().is_some()
    }

    pub(crate) fn marks(&self) -> Vec<Record> {
        let rows = wait(self.store.scan(&key::rechecks(), 1_000)).unwrap();
        rows.into_iter().map(Result::unwrap).collect()
    }

    pub(crate) fn step(&self, mark: &Record) -> Step {
        let mut damaged = Vec::new();
        let step = wait(again::step(&self.store, &self.clock, mark, &mut damaged)).unwrap();
        assert!(damaged.is_empty(), "{damaged:?}");
        step
    }

    pub(crate) fn perform(&mut self, change: Change) {
        let marks = self.marks();
        self.clock.set(self.clock.hour() + 40);
        match change {
            Change::Rental(number, mut rental) => {
                rental.id = RentalId::from_u128(200 + number);
                match self.record::<Rental>(rental.id) {
                    Some(record) => assert!(self.edit(record, |present: &mut Rental| *present = *rental)),
                    None => self.insert(*rental),
                }
            }
            Change::Plate(number, plate) => {
                let record = self.record::<Vehicle>(vehicle_id(number)).unwrap();
                let plate = plate.map(|plate| Text::fit(PLATES[plate], 255));
                assert!(self.edit(record, |vehicle: &mut Vehicle| vehicle.plate = plate));
            }
            Change::Tag(number, tag) => {
                let record = self.record::<Vehicle>(vehicle_id(number)).unwrap();
                let tag = tag.then(|| Text::fit(TAG, 255));
                assert!(self.edit(record, |vehicle: &mut Vehicle| vehicle.transponder_number = tag));
            }
            Change::Assign(number, since, former) => self.assign(number, since, former),
            Change::AttachAll => self.attach_all(),
            Change::Choose(number, customer) => self.choose(number, Some(CustomerId::from_u128(customer))),
            Change::Dismiss(number) => self.choose(number, None),
            Change::Bill(number, billed) => self.bill(number, billed),
            // The step of one mark can change another one: a toll moves to the vehicle of that mark.
            Change::Step => marks.iter().for_each(|mark| {
                let present = self.marks().iter().any(|now| (&now.key, now.revision) == (&mark.key, mark.revision));
                assert!(!present || self.step(mark) != Step::Overtaken);
            }),
            Change::LateStep => {
                for mark in &self.before {
                    self.step(mark);
                }
            }
        }
        self.before = marks;
    }

    pub(crate) fn choose(&self, number: u128, customer: Option<CustomerId>) {
        let record = self.record::<Toll>(toll_id(number)).unwrap();
        self.edit(record, |toll: &mut Toll| {
            let attribution = Some(Attribution::Manual);
            toll.set_payer(Payer { customer, attribution, ..Default::default() });
        });
    }

    /// Replaces the assignments of a vehicle by these and its present plate, if that is allowed.
    pub(crate) fn assign(&self, number: u128, since: Option<i64>, former: Option<(usize, Option<i64>, Option<i64>)>) {
        let record = self.record::<Vehicle>(vehicle_id(number)).unwrap();
        let vehicle: Vehicle = parse(&record.key, &record.value).unwrap();
        let entry = |plate: &str, from: Option<i64>, to: Option<i64>| json!({"kind": "plate", "number": plate, "from": from.map(time), "to": to.map(time)});
        let mut entries: Vec<_> = former.map(|(plate, from, to)| entry(PLATES[plate], from, to)).into_iter().collect();
        entries.extend(vehicle.plate.as_deref().map(|plate| entry(plate, since, None)));
        entries.extend(vehicle.transponder_number.map(|tag| json!({"kind": "toll_tag", "number": tag})));
        let body = json!({"assignments": entries}).to_string();
        let id = vehicle.id.to_string();
        let assign = Assign { organization: &self.owner, vehicle: &id, body: body.as_bytes(), expected: &|_| true };
        match wait(assign.prepare(&self.store, &self.clock)) {
            Ok(made) => assert_eq!(wait(self.store.commit(made.batch)).unwrap(), Commit::Applied),
            Err(Error::Invalid(_)) => {}
            Err(error) => panic!("{error:?}"),
        }
    }

    pub(crate) fn attach_all(&self) {
        for toll in self.tolls().iter().filter(|toll| toll.payer().attribution.is_none()) {
            let derived = self.derived(toll);
            let Some(clear) = derived.clear() else {
                self.edit(self.record::<Toll>(toll.id).unwrap(), |toll: &mut Toll| {
                    *toll.vehicle() = derived.vehicle.or(toll.vehicle_id);
                    toll.set_payer(derived.without_customer(toll));
                });
                continue;
            };
            self.edit(self.record::<Toll>(toll.id).unwrap(), |toll: &mut Toll| {
                *toll.vehicle() = derived.vehicle;
                toll.attach(clear.customer, clear.rental, &clear.reason);
            });
        }
    }

    /// Bills an attached toll, or makes its invoice void.
    pub(crate) fn bill(&self, number: u128, billed: bool) {
        let record = self.record::<Toll>(toll_id(number)).unwrap();
        let toll: Toll = parse(&record.key, &record.value).unwrap();
        let account = match (billed, toll.billed().is_some()) {
            (true, false) if toll.customer_id.is_some() => (toll.amount, vec![InvoiceId::from_u128(1)]),
            (false, true) => (Money::default(), Vec::new()),
            _ => return,
        };
        assert!(self.edit(record, |toll: &mut Toll| toll.set_account(account.0, account.1)));
    }

    /// Takes steps until no vehicle is marked.
    pub(crate) fn settle(&self) {
        for _ in 0..1_000 {
            match self.marks().first() {
                Some(mark) => assert_ne!(self.step(mark), Step::Overtaken),
                None => return,
            }
        }
        panic!("the work never ends: {:?}", self.marks());
    }
}
