//! After any sequence of changes, automatic attachments are those that follow from what is recorded now.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests do")]

#[path = "shared/clock.rs"]
mod clock;
#[path = "attachments/world.rs"]
mod world;

use clock::{time, wait};
use proptest::prelude::*;
use rental_core::{
    attachments::again,
    fleet::twins,
    resources::{Attributable, Payer, Resource, parse, toll::Toll},
    rows::key,
    schema::Attribution,
    store::{Record, Span, Store},
    tasks::Step,
    value::{CustomerId, RentalId, Text, TollId},
};
use world::{Change, ORGANIZATION, TWINS, VEHICLES, World, change, held, toll, vehicle_id};

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
