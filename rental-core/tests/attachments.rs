//! After any sequence of changes, automatic attachments are those that follow from what is recorded now.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests do")]

#[path = "shared/clock.rs"]
mod clock;

use clock::{Clock, time, wait};
use proptest::prelude::*;
use rental_core::{
    attachments::{Derived, Deriving, again},
    error::Error,
    fleet::twins,
    operations::{self, Intent, assignments::Assign},
    resources::{
        Attributable, Billable, Payer, Resource, customer::Customer, organization::Organization, organization::SYSTEM,
        parse, rental::Rental, toll::Toll, vehicle::Vehicle,
    },
    rows::key,
    schema::Attribution,
    store::{Batch, Commit, Record, Span, Store, memory::Memory},
    tasks::Step,
    value::{CustomerId, Date, InvoiceId, Money, OrganizationId, RentalId, Text, TollId, VehicleId},
};
use serde_json::json;

const ORGANIZATION: OrganizationId = OrganizationId::from_u128(7);
const PLATES: [&str; 3] = ["AAA111", "BBB222", "CCC333"];
const TAG: &str = "00412345678";
const VEHICLES: u128 = 3;
const RENTALS: u128 = 5;
const TOLLS: u128 = 18;
/// The tolls from this one on are read by tag a minute after the one this many before, so they are probably its twins.
const TWINS: u128 = 12;

/// One change of what attachments rest on, or one step of the work that keeps them true.
#[derive(Clone, Debug)]
enum Change {
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

fn change() -> impl Strategy<Value = Change> {
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

fn assign() -> impl Strategy<Value = Change> {
    let hour = || prop::option::of(0i64..1_200);
    let former = prop::option::weighted(0.3, (0..PLATES.len(), hour(), hour()));
    (0..VEHICLES, hour(), former).prop_map(|(id, since, former)| Change::Assign(id, since, former))
}

/// Any rental, also one whose dates, times and status contradict each other.
fn rental() -> impl Strategy<Value = Rental> {
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

fn vehicle_id(number: u128) -> VehicleId {
    VehicleId::from_u128(100 + number)
}

fn toll_id(number: u128) -> TollId {
    TollId::from_u128(300 + number)
}

fn organization() -> Organization {
    let members = json!({
        "id": ORGANIZATION, "object": "organization", "name": "Fleet", "plan": "pro",
        "default_currency": "USD", "time_zone": "America/New_York", "booking_policy": "open",
        "invoice_language": "en", "tax_included": false,
        "created_at": time(0), "updated_at": time(0),
    });
    serde_json::from_value(members).unwrap()
}

fn vehicle(number: u128) -> Vehicle {
    let members = json!({
        "id": vehicle_id(number), "object": "vehicle", "name": "Car", "plate": PLATES[number as usize],
        "currency": "USD", "status": "available", "organization_id": ORGANIZATION, "created_at": time(0),
        "updated_at": time(0),
    });
    serde_json::from_value(members).unwrap()
}

fn customer(number: u128) -> Customer {
    let members = json!({
        "id": CustomerId::from_u128(number), "object": "customer", "full_name": "Ada", "email": null, "phone": null,
        "preferred_language": "en", "source_channel": null, "notes": null, "erased_at": null, "created_at": time(0),
        "updated_at": time(0),
    });
    serde_json::from_value(members).unwrap()
}

fn toll(number: u128) -> Toll {
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
fn held(status: &str) -> Rental {
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
struct World {
    store: Memory,
    clock: Clock,
    owner: Organization,
    /// The marks before the last change.
    before: Vec<Record>,
}

impl World {
    fn new() -> Self {
        let world = Self { store: Memory::default(), clock: Clock::new(), owner: organization(), before: Vec::new() };
        let mut batch = Batch::default();
        batch.insert(Organization::key(SYSTEM, ORGANIZATION), serde_json::to_vec(&world.owner).unwrap().into());
        wait(world.store.commit(batch)).unwrap();
        (0..VEHICLES).for_each(|number| world.insert(vehicle(number)));
        (1..=3).for_each(|number| world.insert(customer(number)));
        (0..TOLLS).for_each(|number| world.insert(toll(number)));
        world
    }

    fn insert<T: Resource>(&self, object: T) {
        let made = wait(operations::insert(&self.store, &self.clock, &self.owner, object, Batch::default())).unwrap();
        assert_eq!(wait(self.store.commit(made.batch)).unwrap(), Commit::Applied);
    }

    /// Changes an object; false if the change was refused.
    fn edit<T: Resource>(&self, record: Record, rule: impl FnOnce(&mut T)) -> bool {
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

    fn record<T: Resource>(&self, id: rental_core::value::Id<T::Kind>) -> Option<Record> {
        wait(self.store.get(&[T::key(ORGANIZATION, id)])).unwrap().pop().flatten()
    }

    fn tolls(&self) -> Vec<Toll> {
        let record = |number| self.record::<Toll>(toll_id(number)).unwrap();
        (0..TOLLS).map(record).map(|record| parse(&record.key, &record.value).unwrap()).collect()
    }

    fn derived(&self, toll: &Toll) -> Derived {
        wait(Deriving::new(&self.store, &self.owner).derive(toll)).unwrap()
    }

    fn is_billed(&self, toll: TollId) -> bool {
        let record = self.record::<Toll>(toll).unwrap();
        parse::<Toll>(&record.key, &record.value).unwrap().billed().is_some()
    }

    fn marks(&self) -> Vec<Record> {
        let rows = wait(self.store.scan(&key::rechecks(), 1_000)).unwrap();
        rows.into_iter().map(Result::unwrap).collect()
    }

    fn step(&self, mark: &Record) -> Step {
        let mut damaged = Vec::new();
        let step = wait(again::step(&self.store, &self.clock, mark, &mut damaged)).unwrap();
        assert!(damaged.is_empty(), "{damaged:?}");
        step
    }

    fn perform(&mut self, change: Change) {
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

    fn choose(&self, number: u128, customer: Option<CustomerId>) {
        let record = self.record::<Toll>(toll_id(number)).unwrap();
        self.edit(record, |toll: &mut Toll| {
            let attribution = Some(Attribution::Manual);
            toll.set_payer(Payer { customer, attribution, ..Default::default() });
        });
    }

    /// Replaces the assignments of a vehicle by these and its present plate, if that is allowed.
    fn assign(&self, number: u128, since: Option<i64>, former: Option<(usize, Option<i64>, Option<i64>)>) {
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

    fn attach_all(&self) {
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
    fn bill(&self, number: u128, billed: bool) {
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
    fn settle(&self) {
        for _ in 0..1_000 {
            match self.marks().first() {
                Some(mark) => assert_ne!(self.step(mark), Step::Overtaken),
                None => return,
            }
        }
        panic!("the work never ends: {:?}", self.marks());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn automatic_attachments_are_those_that_follow_from_what_is_recorded(
        changes in prop::collection::vec(change(), 1..30),
    ) {
        let mut world = World::new();
        for change in changes {
            world.perform(change);
        }
        world.settle();
        for toll in world.tolls() {
            let derived = world.derived(&toll);
            if toll.payer() == Payer::default() {
                prop_assert_eq!(derived.vehicle, toll.vehicle_id, "{:?}\n{:?}", toll, derived);
            }
            if toll.attribution != Some(Attribution::Automatic) {
                let unattached = derived.without_customer(&toll);
                let is_detached = toll.review_reason.as_deref().is_some_and(|reason| reason.starts_with("DETACHED:"));
                // A person can have attached another posting of the passage since. The next derivation finds it.
                let is_right = toll.review_reason.is_none()
                    || toll.payer() == unattached
                    || (is_detached && derived.twin.is_some());
                prop_assert!(is_right && toll.attribution_reason.is_none(), "{:?}\n{:?}", toll, derived);
                // What the server detached is attached again when it is clear who pays, whichever vehicle it is of now.
                prop_assert!(!is_detached || derived.clear().is_none(), "{:?}\n{:?}", toll, derived);
                continue;
            }
            let follows = derived.clear().is_some_and(|clear| Some(clear.customer) == toll.customer_id);
            if world.is_billed(toll.id) {
                prop_assert_eq!(toll.review_reason.is_none(), follows, "{:?}\n{:?}", toll, derived);
            } else {
                prop_assert!(follows && toll.review_reason.is_none(), "{:?}\n{:?}", toll, derived);
                prop_assert_eq!(derived.clear().map(|clear| clear.rental), toll.rental_id);
                prop_assert_eq!(derived.vehicle, toll.vehicle_id);
            }
        }
        let tolls = world.tolls();
        let automatic = || tolls.iter().filter(|toll| toll.attribution == Some(Attribution::Automatic));
        for (one, other) in automatic().flat_map(|one| automatic().map(move |other| (one, other))) {
            let pair = one.posting().zip(other.posting()).filter(|_| one.id != other.id);
            let are_twins = pair.is_some_and(|(one, other)| twins::are_twins(&one, &other));
            prop_assert!(!are_twins || (world.is_billed(one.id) && world.is_billed(other.id)), "{:?}\n{:?}", one, other);
        }
    }
}

#[test]
fn a_mark_of_many_attachments_takes_several_steps_and_goes_on_where_the_last_one_ended() {
    let mut world = World::new();
    for number in 0..u128::try_from(again::PAGE).unwrap() * 2 {
        let mut more = toll(0);
        (more.id, more.transaction_id) =
            (TollId::from_u128(1_000 + number), Some(Text::fit(&format!("n{number}"), 255)));
        more.attach(CustomerId::from_u128(1), RentalId::from_u128(1), "Invented.");
        world.insert(more);
    }
    // No rental supports them, and nobody marked the vehicle yet.
    assert!(world.marks().is_empty());
    world.perform(Change::Plate(0, None));
    let steps: Vec<Step> = std::iter::from_fn(|| world.marks().first().map(|mark| world.step(mark))).collect();
    // 66 tolls of the plate, then those of the vehicle, because two tolls that nobody decided no longer are postings of it.
    assert_eq!(steps, [Step::Continue, Step::Continue, Step::Continue, Step::Done, Step::Continue, Step::Done]);
    let left = wait(world.store.scan(&Span::under(key::records(ORGANIZATION, Toll::SPEC)), 1_000)).unwrap();
    let is_attached = |row: Record| parse::<Toll>(&row.key, &row.value).unwrap().customer_id.is_some();
    assert_eq!(left.into_iter().filter(|row| is_attached(row.clone().unwrap())).count(), 0);
}

/// What a step attaches again must not make the vehicle's work begin anew.
#[test]
fn many_detached_tolls_of_a_vehicle_are_attached_again_in_one_walk() {
    let mut world = World::new();
    let many = u128::try_from(again::PAGE).unwrap() * 3;
    world.perform(Change::Rental(0, Box::new(held("COMPLETED"))));
    for number in 0..many {
        let mut more = toll(3);
        (more.id, more.transaction_id) =
            (TollId::from_u128(1_000 + number), Some(Text::fit(&format!("n{number}"), 255)));
        more.occurred_at =
            Some(more.occurred_at.unwrap().plus_millis(i64::try_from(number).unwrap() * 600_000 + 300_000));
        more.attach(CustomerId::from_u128(1), RentalId::from_u128(200), "Invented.");
        world.insert(more);
    }
    let attached = |world: &World| {
        let rows = wait(world.store.scan(&Span::under(key::records(ORGANIZATION, Toll::SPEC)), 1_000)).unwrap();
        let rows = rows.into_iter().map(Result::unwrap);
        let tolls = rows.map(|row| parse::<Toll>(&row.key, &row.value).unwrap());
        tolls.filter(|toll| toll.customer_id.is_some()).count()
    };
    world.settle();
    assert_eq!(attached(&world), many as usize);
    world.perform(Change::Rental(0, Box::new(held("NEW"))));
    world.settle();
    assert_eq!(attached(&world), 0);
    world.perform(Change::Rental(0, Box::new(held("COMPLETED"))));
    let steps = std::iter::from_fn(|| world.marks().first().map(|mark| world.step(mark))).count();
    assert_eq!((attached(&world), steps), (many as usize, 4), "one step for each page, and one that finds the end");
}

/// A toll names the tag of one vehicle and a plate that nobody has: another vehicle that gets the plate contradicts the tag.
#[test]
fn a_plate_that_another_vehicle_gets_detaches_a_toll_of_a_tag_and_its_loss_attaches_it_again() {
    let mut world = World::new();
    world.insert(held("COMPLETED"));
    for change in [Change::Plate(0, None), Change::Plate(1, None), Change::Plate(2, None), Change::Tag(0, true)] {
        world.perform(change);
    }
    let id = TollId::from_u128(1_000);
    world.insert(Toll { id, occurred_at: Some(time(40)), transaction_id: None, vehicle_id: None, ..toll(TWINS) });
    let attach = |toll: &mut Toll| {
        toll.vehicle_id = Some(vehicle_id(0));
        toll.attach(CustomerId::from_u128(1), RentalId::from_u128(200), "By its tag.");
    };
    assert!(world.edit(world.record::<Toll>(id).unwrap(), attach));
    let customer = |world: &World| {
        world.settle();
        let record = world.record::<Toll>(id).unwrap();
        parse::<Toll>(&record.key, &record.value).unwrap().customer_id
    };
    assert_eq!(customer(&world), Some(CustomerId::from_u128(1)));
    world.perform(Change::Assign(0, None, None));
    world.perform(Change::Assign(1, None, Some((0, Some(0), Some(100)))));
    assert_eq!(customer(&world), None);
    world.perform(Change::Assign(1, None, None));
    assert_eq!(customer(&world), Some(CustomerId::from_u128(1)));
}

/// Nobody was chosen for a toll of a plate that no vehicle has. A vehicle that gets the plate, and each change after, decides
/// whose toll it is, and nothing else: the toll stays unattached.
#[test]
fn a_toll_that_nobody_decided_follows_its_number_from_no_vehicle_to_one_to_another_and_back() {
    let mut world = World::new();
    world.insert(held("COMPLETED"));
    (0..VEHICLES).for_each(|number| world.perform(Change::Plate(number, None)));
    let id = TollId::from_u128(1_000);
    let transaction_id = Some(Text::fit("undecided", 255));
    world.insert(Toll { id, occurred_at: Some(time(50)), transaction_id, vehicle_id: None, ..toll(0) });
    for (number, plate, expected) in
        [(0, Some(0), Some(0)), (0, None, None), (1, Some(0), Some(1)), (1, None, None), (2, Some(0), Some(2))]
    {
        world.perform(Change::Plate(number, plate));
        // A vehicle that once had the plate has it until somebody says when that ended.
        world.perform(Change::Assign(number, None, None));
        world.settle();
        let record = world.record::<Toll>(id).unwrap();
        let toll: Toll = parse(&record.key, &record.value).unwrap();
        assert_eq!(toll.vehicle_id, expected.map(vehicle_id), "after vehicle {number} got {plate:?}");
        assert_eq!(toll.payer(), Payer::default());
    }
}

#[test]
fn an_assignment_that_ends_a_doubt_removes_the_reason_to_review_a_billed_toll_of_the_other_vehicle() {
    let mut world = World::new();
    world.insert(held("COMPLETED"));
    // Toll 3 is of plate AAA111, 291 hours after the beginning.
    for change in [Change::AttachAll, Change::Bill(3, true)] {
        world.perform(change);
    }
    let review = |world: &World| {
        world.settle();
        world.tolls()[3].review_reason.as_deref().map(str::to_owned)
    };
    assert_eq!(world.tolls()[3].customer_id, Some(CustomerId::from_u128(1)));
    world.perform(Change::Plate(1, Some(0)));
    assert!(review(&world).unwrap().contains("2 vehicles had this plate number at that time: "));
    world.perform(Change::Assign(1, Some(1_000), None));
    assert_eq!(review(&world), None);
}
