//! The blocks of a calendar whose events overlap, compared with the nights of the events.

use super::*;
use crate::{
    resources::{
        Resource as _,
        calendar_feed::CalendarFeed,
        organization::{Organization, SYSTEM},
        to_json,
        vehicle::Vehicle,
    },
    rows::calendar_feed::ImportedFeed,
    store::{Commit, Prior, all_sound, memory::Memory},
    value::{CalendarFeedId, OrganizationId, RentalId, Timestamp, VehicleId},
};
use proptest::prelude::*;
use std::{
    collections::BTreeSet,
    future::Future,
    sync::atomic::{AtomicU64, Ordering},
    task::{Context, Poll, Waker},
};
use uuid::Uuid;

/// Noon of 2026-06-10, and ids that rise.
#[derive(Default)]
struct Ids(AtomicU64);

const NOON: i64 = 1_781_092_800_000;

impl Edge for Ids {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(NOON)
    }

    fn new_id(&self) -> Uuid {
        Uuid::from_u128((u128::from(NOON.unsigned_abs()) << 80) | u128::from(self.0.fetch_add(1, Ordering::Relaxed)))
    }
}

/// The memory store answers at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory store never waits"),
    }
}

/// The number of a day that so many days follow today.
fn number(day: i32) -> u32 {
    Timestamp::from_millis(NOON).day_number().checked_add_signed(day).unwrap()
}

fn day(day: i32) -> Date {
    Date::from_day_number(number(day)).unwrap()
}

/// A vehicle with one feed.
struct World {
    store: Memory,
    edge: Ids,
    taken: Taken,
}

const ORGANIZATION: OrganizationId = OrganizationId::from_u128(7);
const VEHICLE: VehicleId = VehicleId::from_u128(8);

impl World {
    fn new() -> Self {
        let (store, id) = (Memory::default(), CalendarFeedId::from_u128(9));
        let organization = Organization { id: ORGANIZATION, ..Organization::system() };
        let time = Timestamp::from_millis(NOON);
        let feed: CalendarFeed = serde_json::from_value(serde_json::json!({
            "id": id, "object": "calendar_feed", "vehicle_id": VEHICLE, "url": "https://x.example/...", "interval_minutes": 15,
            "status": "ok", "last_success_at": null, "last_error": null, "next_read_at": null, "events": null,
            "conflicts": null, "created_at": time, "updated_at": time,
        }))
        .unwrap();
        let state = ImportedFeed::new(None, time);
        let mut batch = Batch::default();
        batch.put(key::calendar_feed(ORGANIZATION, id), to_json(&state).unwrap(), Prior::Any);
        batch.put(Organization::key(SYSTEM, ORGANIZATION), "{}".into(), Prior::Any);
        batch.put(Vehicle::key(ORGANIZATION, VEHICLE), "{}".into(), Prior::Any);
        assert_eq!(now(store.commit(batch)), Ok(Commit::Applied));
        let place = key::calendar_feed(ORGANIZATION, id);
        let revision = now(get_one(&store, &place)).unwrap().unwrap().revision;
        Self { store, edge: Ids::default(), taken: Taken { organization, id, feed: Some(feed), state, revision } }
    }

    /// A rental holds the vehicle on these days.
    fn rent(&self, id: u128, from: i32, to: i32) -> bool {
        let hold = Hold::new(VEHICLE, Holder::Rental(RentalId::from_u128(id)), day(from), day(to));
        let (mut batch, policy) = (Batch::default(), self.taken.organization.booking_policy);
        let after = (&[hold][..], Prior::Any);
        let made = now(holds::change(&self.store, ORGANIZATION, policy, &[], after, &mut batch));
        made.is_ok() && now(self.store.commit(batch)) == Ok(Commit::Applied)
    }

    #[track_caller]
    fn read(&self, events: &[ExternalEvent]) -> Synced {
        self.read_calendar(&ExternalCalendar { events: events.to_vec(), ..ExternalCalendar::default() })
    }

    #[track_caller]
    fn read_calendar(&self, calendar: &ExternalCalendar) -> Synced {
        let mut damaged = Vec::new();
        let synced = now(sync(&self.store, &self.edge, &self.taken, calendar, &mut damaged)).unwrap();
        assert_eq!(damaged, []);
        synced
    }

    fn blocks(&self) -> Vec<Block> {
        let span = Span::newest_first(&key::records(ORGANIZATION, &block::SPEC));
        let rows = all_sound(now(self.store.scan(&span, 1000)).unwrap()).unwrap();
        rows.iter().map(|row| parse(&row.key, &row.value).unwrap()).collect()
    }

    /// Days, UID and status of the blocks that were not cancelled.
    fn shown(&self) -> Vec<(i64, i64, String, BlockStatus)> {
        let from_today = |date: Date| i64::from(date.day_number()) - i64::from(number(0));
        let blocks = self.blocks().into_iter().filter(|block| block.status != BlockStatus::Cancelled);
        let mut shown: Vec<_> = blocks
            .map(|block| {
                (from_today(block.start_date), from_today(block.end_date), uid_of(&block).to_owned(), block.status)
            })
            .collect();
        shown.sort_by(|one, other| (one.0, one.1, &one.2).cmp(&(other.0, other.1, &other.2)));
        shown
    }

    /// Everything in the store.
    fn rows(&self) -> Vec<crate::store::Record> {
        let (from, to) = (crate::store::Key::from_bytes(&[0]), crate::store::Key::from_bytes(&[255; 80]));
        let span = Span { from, to, order: Order::Ascending, follow: None };
        all_sound(now(self.store.scan(&span, 10_000)).unwrap()).unwrap()
    }
}

fn event(uid: &str, from: i32, to: i32) -> ExternalEvent {
    ExternalEvent { uid: uid.into(), start: day(from), end: day(to), summary: "Reserved".into() }
}

fn synced(events: usize, conflicts: usize) -> Synced {
    Synced { events, conflicts, problems: None }
}

fn active(from: i64, to: i64, uid: &str) -> (i64, i64, String, BlockStatus) {
    (from, to, uid.into(), BlockStatus::Active)
}

#[test]
fn events_of_one_calendar_that_overlap_hold_all_their_nights() {
    let world = World::new();
    let events = [event("a", 10, 14), event("b", 12, 16)];
    assert_eq!(world.read(&events), synced(2, 0));
    assert_eq!(world.shown(), [active(10, 14, "a"), active(14, 16, "b")]);
    assert!(!world.rent(1, 14, 16) && !world.rent(1, 13, 15), "the vehicle is taken");
    // The order of the file does not matter, and a second reading writes nothing.
    let before = world.rows();
    assert_eq!(world.read(&[event("b", 12, 16), event("a", 10, 14)]), synced(2, 0));
    assert_eq!(world.rows(), before);
    // One that is gone frees the nights that it alone had.
    world.read(&events[1..]);
    assert_eq!(world.shown(), [active(12, 16, "b")]);
    assert!(world.rent(1, 10, 12));
    // Within another one: nothing is left for it, and it is still an event.
    assert_eq!(world.read(&[event("b", 12, 16), event("c", 13, 15)]), synced(2, 0));
    assert_eq!(world.shown(), [active(12, 16, "b")]);
    world.read(&[event("c", 13, 15)]);
    assert_eq!(world.shown(), [active(13, 15, "c")]);
}

#[test]
fn an_event_that_clashes_with_a_rental_takes_no_nights_from_the_others() {
    let world = World::new();
    assert!(world.rent(1, 10, 11));
    assert_eq!(world.read(&[event("a", 10, 14), event("b", 12, 16)]), synced(2, 1));
    assert_eq!(world.shown(), [(10, 14, "a".into(), BlockStatus::Conflict), active(12, 16, "b")]);
    let conflict = world.blocks().into_iter().find(|block| block.status == BlockStatus::Conflict).unwrap();
    assert!(conflict.conflicts_with.unwrap().starts_with("rental"));
}

#[test]
fn an_event_over_a_block_that_stays_takes_the_nights_after_it() {
    let world = World::new();
    world.read(&[event("a", -3, 2)]);
    world.read(&[event("b", 1, 5)]);
    assert_eq!(world.shown(), [active(-3, 2, "a"), active(2, 5, "b")]);
    // A longer event takes the block of one that it contains.
    world.read(&[event("b", 1, 5), event("c", 1, 9)]);
    assert_eq!(world.shown(), [active(-3, 2, "a"), active(2, 9, "c")]);
}

/// Also where it shares nights with another event, and where the calendar has another one of its occurrences.
#[test]
fn an_event_that_can_no_longer_be_read_keeps_its_nights() {
    let world = World::new();
    world.read(&[event("a", 10, 14), event("b", 12, 16), event("c#1", 20, 22), event("c#2", 30, 32)]);
    let all = [active(10, 14, "a"), active(14, 16, "b"), active(20, 22, "c#1"), active(30, 32, "c#2")];
    assert_eq!(world.shown(), all);
    let calendar = ExternalCalendar {
        events: vec![event("b", 12, 16), event("c#2", 33, 34)],
        left_out: vec!["a".into(), "c".into()],
        problems: vec!["the event a in line 3 ends before it begins, so it was left out".into()],
    };
    let read = world.read_calendar(&calendar);
    assert_eq!((read.events, read.problems), (4, calendar.told()));
    assert_eq!(world.shown(), [&all[..3], &[active(33, 34, "c#2")]].concat());
    // Once it is gone, its nights are free.
    world.read(&calendar.events);
    assert_eq!(world.shown(), [active(12, 16, "b"), active(33, 34, "c#2")]);
}

/// Events with few UIDs around today.
fn calendar() -> impl Strategy<Value = Vec<ExternalEvent>> {
    let one = (0u8..8, -6i32..20, 0i32..7);
    prop::collection::vec(one, 0..8).prop_map(|all| {
        let mut seen = HashSet::new();
        let kept = all.into_iter().filter(|(uid, ..)| seen.insert(*uid));
        kept.map(|(uid, from, nights)| event(&format!("{uid}"), from, from + nights)).collect()
    })
}

fn nights_of(from: Date, to: Date) -> std::ops::Range<u32> {
    let hold = Hold::new(VEHICLE, Holder::Rental(RentalId::nil()), from, to);
    hold.start..hold.end
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// From today on: nights of blocks that began before today and stay may be held beside those of the events.
    #[test]
    fn the_blocks_of_a_calendar_hold_the_nights_of_its_events(
        calendars in prop::collection::vec(calendar(), 1..5),
        rentals in prop::collection::vec((-8i32..20, 1i32..4), 0..4),
    ) {
        let world = World::new();
        let rentals: Vec<(i32, i32)> = rentals
            .into_iter()
            .zip(1u128..)
            .filter(|((from, nights), id)| world.rent(*id, *from, from + nights))
            .map(|((from, nights), _)| (from, from + nights))
            .collect();
        for events in &calendars {
            let synced = world.read(events);
            let present: Vec<&ExternalEvent> = events.iter().filter(|event| event.end >= day(0)).collect();
            prop_assert_eq!(synced.events, present.len());
            let clashes = |event: &&&ExternalEvent| {
                let nights = nights_of(event.start, event.end);
                rentals.iter().any(|(from, to)| *to > 0 && number(*from) < nights.end && nights.start < number(*to))
            };
            prop_assert_eq!(synced.conflicts, present.iter().filter(clashes).count());
            let wanted: BTreeSet<u32> = present
                .iter()
                .filter(|event| !clashes(event))
                .flat_map(|event| nights_of(event.start, event.end))
                .filter(|night| *night >= number(0))
                .collect();
            let (mut held, mut kept) = (BTreeSet::new(), BTreeSet::new());
            for block in world.blocks().iter().filter(|block| block.status == BlockStatus::Active) {
                for night in nights_of(block.start_date, block.end_date) {
                    prop_assert!(held.insert(night), "two blocks hold one night");
                    if block.start_date < day(0) {
                        kept.insert(night);
                    }
                }
            }
            held.retain(|night| *night >= number(0));
            prop_assert!(held.is_superset(&wanted), "{:?} of {:?} in {:?}", held, wanted, world.shown());
            prop_assert!(held.iter().all(|night| wanted.contains(night) || kept.contains(night)), "{:?}", world.shown());
            let before = world.rows();
            prop_assert_eq!(world.read(events), synced);
            prop_assert_eq!(world.rows(), before, "a second reading writes nothing");
        }
    }
}
