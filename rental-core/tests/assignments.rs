//! After any sequence of changes, the vehicle of a tag at a time is the one of a naive list of assignments.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests do")]

#[path = "shared/clock.rs"]
mod clock;

use clock::{Clock, time, wait};
use proptest::prelude::*;
use rental_core::{
    error::Error,
    fleet::{Holders, VehicleMatch},
    operations::{self, Intent, assignments::Assign},
    resources::{Resource, organization::Organization, organization::SYSTEM, vehicle::Vehicle},
    store::{Batch, Commit, Record, Store, memory::Memory},
    value::{OrganizationId, Text, VehicleId, When},
};
use serde_json::json;

const ORGANIZATION: OrganizationId = OrganizationId::from_u128(7);
const TAGS: [&str; 3] = ["00411111111", "00422222222", "00433333333"];
const VEHICLES: usize = 3;
/// Hours of all changes and tolls.
const HOURS: i64 = 24 * 12;

/// The times of one tag in a list of an operator, in hours.
type Times = (usize, Option<i64>, Option<i64>);

#[derive(Clone, Debug)]
enum Change {
    /// A vehicle gets a transponder, or loses the one that it has.
    Field(usize, Option<usize>),
    /// An operator replaces the assignments of a vehicle.
    List(usize, Vec<Times>),
}

fn change() -> impl Strategy<Value = Change> {
    let hour = || prop::option::of(0..HOURS);
    let times = (0..TAGS.len(), hour(), hour());
    prop_oneof![
        3 => (0..VEHICLES, prop::option::of(0..TAGS.len())).prop_map(|(vehicle, tag)| Change::Field(vehicle, tag)),
        1 => (0..VEHICLES, prop::collection::vec(times, 0..4)).prop_map(|(vehicle, list)| Change::List(vehicle, list)),
    ]
}

/// What the test knows: vehicle, tag, first hour, first hour after it.
#[derive(Clone, Debug, PartialEq)]
struct Known(usize, usize, i64, i64);

#[derive(Default)]
struct Model {
    known: Vec<Known>,
    fields: [Option<usize>; VEHICLES],
}

const EVER: i64 = i64::MAX;

impl Model {
    fn field(&mut self, vehicle: usize, tag: Option<usize>, now: i64) {
        let before = std::mem::replace(&mut self.fields[vehicle], tag);
        if before == tag {
            return;
        }
        for Known(_, _, from, to) in
            self.known.iter_mut().filter(|one| one.0 == vehicle && Some(one.1) == before && one.3 == EVER)
        {
            *to = now.max(*from);
        }
        self.known.retain(|one| one.2 < one.3);
        if let Some(tag) = tag
            && !self.known.iter().any(|one| one.0 == vehicle && one.1 == tag && one.3 == EVER)
        {
            let is_known = self.known.iter().any(|one| one.1 == tag);
            self.known.push(Known(vehicle, tag, if is_known { now } else { -EVER }, EVER));
        }
    }

    /// Replaces a list, if it is allowed.
    fn list(&mut self, vehicle: usize, list: &[Times]) -> bool {
        let new: Vec<Known> = list
            .iter()
            .map(|(tag, from, to)| Known(vehicle, *tag, from.unwrap_or(-EVER), to.unwrap_or(EVER)))
            .collect();
        let clash = |one: &Known, other: &Known| one.1 == other.1 && one.2 < other.3 && other.2 < one.3;
        let alone =
            new.iter().enumerate().all(|(at, one)| one.2 < one.3 && !new[..at].iter().any(|other| clash(one, other)));
        // A vehicle must not get a tag at a time at which it had not got it and another one has it.
        let has = |list: &[Known], mine: bool, tag: usize, hour: i64| {
            list.iter().any(|one| (one.0 == vehicle) == mine && one.1 == tag && one.2 <= hour && hour < one.3)
        };
        let begins = self.known.iter().chain(&new).flat_map(|one| [one.2, one.3]);
        let free = begins.into_iter().all(|hour| {
            (0..TAGS.len()).all(|tag| {
                !has(&new, true, tag, hour) || has(&self.known, true, tag, hour) || !has(&self.known, false, tag, hour)
            })
        });
        let present = self.fields[vehicle].is_none_or(|tag| new.iter().any(|one| one.1 == tag && one.3 == EVER));
        if alone && free && present {
            self.known.retain(|one| one.0 != vehicle);
            self.known.extend(new);
        }
        alone && free && present
    }

    /// The vehicle that certainly had a tag in all of these hours, and the only one that can have had it.
    fn vehicle(&self, tag: usize, from: i64, to: i64) -> Option<usize> {
        let possible = |one: &&Known| one.1 == tag && one.2 < to && from < one.3;
        let mut vehicles: Vec<usize> = self.known.iter().filter(possible).map(|one| one.0).collect();
        vehicles.sort_unstable();
        vehicles.dedup();
        let [vehicle] = vehicles[..] else { return None };
        let own =
            |hour: i64| self.known.iter().any(|one| one.0 == vehicle && one.1 == tag && one.2 <= hour && hour < one.3);
        (from..to).all(own).then_some(vehicle)
    }
}

struct World {
    store: Memory,
    clock: Clock,
    owner: Organization,
}

impl World {
    fn new() -> Self {
        let owner = json!({
            "id": ORGANIZATION, "object": "organization", "name": "Fleet", "plan": "pro", "default_currency": "USD",
            "time_zone": "Etc/UTC", "booking_policy": "open", "invoice_language": "en", "tax_included": false, "created_at": time(0),
            "updated_at": time(0),
        });
        let owner = serde_json::from_value(owner).unwrap();
        let world = Self { store: Memory::default(), clock: Clock::new(), owner };
        let mut batch = Batch::default();
        batch.insert(Organization::key(SYSTEM, ORGANIZATION), serde_json::to_vec(&world.owner).unwrap().into());
        wait(world.store.commit(batch)).unwrap();
        for number in 0..VEHICLES {
            let vehicle: Vehicle = serde_json::from_value(json!({
                "id": vehicle_id(number), "object": "vehicle", "name": "Car", "currency": "USD", "status": "available",
                "organization_id": ORGANIZATION, "created_at": time(0), "updated_at": time(0),
            }))
            .unwrap();
            let made = operations::insert(&world.store, &world.clock, &world.owner, vehicle, Batch::default());
            world.commit(wait(made).unwrap().batch);
        }
        world
    }

    fn commit(&self, batch: Batch) {
        assert_eq!(wait(self.store.commit(batch)).unwrap(), Commit::Applied);
    }

    fn record(&self, vehicle: usize) -> Record {
        wait(self.store.get(&[Vehicle::key(ORGANIZATION, vehicle_id(vehicle))])).unwrap().pop().flatten().unwrap()
    }

    fn field(&self, vehicle: usize, tag: Option<usize>) {
        let rule = |vehicle: &mut Vehicle| {
            vehicle.transponder_number = tag.map(|tag| Text::fit(TAGS[tag], 255));
            Ok(Vec::new())
        };
        let made = operations::edit(&self.store, &self.clock, &self.owner, self.record(vehicle), rule);
        self.commit(wait(made).unwrap().batch);
    }

    fn list(&self, vehicle: usize, list: &[Times]) -> bool {
        let entry = |(tag, from, to): &Times| json!({"kind": "toll_tag", "number": TAGS[*tag], "from": from.map(time), "to": to.map(time)});
        let body = json!({"assignments": list.iter().map(entry).collect::<Vec<_>>()}).to_string();
        let id = vehicle_id(vehicle).to_string();
        let assign = Assign { organization: &self.owner, vehicle: &id, body: body.as_bytes(), expected: &|_| true };
        match wait(assign.prepare(&self.store, &self.clock)) {
            Ok(made) => {
                self.commit(made.batch);
                true
            }
            Err(Error::Invalid(_)) => false,
            Err(error) => panic!("{error:?}"),
        }
    }

    fn holders(&self, tag: usize) -> Holders {
        wait(Holders::read(&self.store, ORGANIZATION, Some(TAGS[tag]), (None, None))).unwrap()
    }

    fn vehicle(&self, holders: &Holders, when: When) -> Option<usize> {
        match holders.at(when, self.owner.time_zone) {
            VehicleMatch::One(id) => (0..VEHICLES).find(|number| vehicle_id(*number) == id),
            VehicleMatch::None | VehicleMatch::Unclear(..) => None,
        }
    }
}

fn vehicle_id(number: usize) -> VehicleId {
    VehicleId::from_u128(100 + number as u128)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_tag_belongs_to_the_vehicle_of_a_naive_list(changes in prop::collection::vec((0..20i64, change()), 1..16)) {
        let (world, mut model, mut now) = (World::new(), Model::default(), 0);
        for (later, change) in changes {
            now += later;
            world.clock.set(now);
            match change {
                Change::Field(vehicle, tag) => {
                    model.field(vehicle, tag, now);
                    world.field(vehicle, tag);
                }
                Change::List(vehicle, list) => {
                    prop_assert_eq!(world.list(vehicle, &list), model.list(vehicle, &list), "{:?} {:?}", list, model.known);
                }
            }
        }
        for tag in 0..TAGS.len() {
            let holders = world.holders(tag);
            for hour in 0..HOURS {
                let at = When { at: Some(time(hour)), ..When::default() };
                prop_assert_eq!(world.vehicle(&holders, at), model.vehicle(tag, hour, hour + 1), "tag {} at {} of {:?}", tag, hour, model.known);
            }
            for day in 0..HOURS / 24 {
                let on = rental_core::value::Date::from_day_number(time(day * 24).day_number());
                let found = world.vehicle(&holders, When { on, ..When::default() });
                prop_assert_eq!(found, model.vehicle(tag, day * 24, day * 24 + 24), "tag {} on day {} of {:?}", tag, day, model.known);
            }
        }
    }
}
