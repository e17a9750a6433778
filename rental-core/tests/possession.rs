//! The rentals that are read for one time decide it like all rentals of the vehicle would.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests do")]

use proptest::prelude::*;
use rental_core::{
    fleet::{
        attribution::{Verdict, about, decide},
        rentals_around,
    },
    operations::{self, edge::Edge},
    resources::{
        Occasion,
        organization::Organization,
        rental::{Rental, RentalStatus},
    },
    store::{Batch, Store, memory::Memory},
    value::{CustomerId, Date, OrganizationId, RentalId, Timestamp, VehicleId, When},
};
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

const BEGIN: i64 = 1_780_272_000_000; // 2026-06-01T00:00:00Z
const HOUR: i64 = 3_600_000;
const VEHICLE: VehicleId = VehicleId::from_u128(99);

struct Clock(AtomicU64);

impl Edge for Clock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(BEGIN)
    }

    fn new_id(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::Relaxed)))
    }
}

/// Any rental, also one whose dates, times and status contradict each other. Hours count from the beginning of June 2026.
fn rental() -> impl Strategy<Value = Rental> {
    let hour = || prop::option::of(0i64..2_000);
    let status = prop::sample::select(vec!["NEW", "APPROVED", "ACTIVE", "COMPLETED", "CANCELLED"]);
    let zone = prop::sample::select(vec!["America/Los_Angeles", "UTC", "Pacific/Auckland"]);
    let swaps = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec((1i64..300, 98u128..101), 1..5)];
    // Some came back before their planned days, and nobody recorded the pickup.
    let came_back = prop_oneof![3 => Just(1i64), 1 => Just(-1i64)];
    (hour(), 0i64..900, any::<bool>(), hour(), 0i64..900, any::<bool>(), 1u128..4, (status, swaps, came_back), zone).prop_map(
        |(start, days, ends, activated, length, back, customer, (status, swaps, came_back), zone)| {
            let is_early = came_back < 0 && activated.is_none() && swaps.is_empty();
            let mut at = activated.or(start).unwrap_or(0);
            let mut earlier = Vec::new();
            let mut present = 99;
            for (later, next) in swaps {
                at += later;
                earlier.push(json!({"vehicle_id": VehicleId::from_u128(present), "until": time(at)}));
                present = next;
            }
            let date = |hours: i64| Date::from_day_number(time(hours).day_number()).unwrap();
            let members = json!({
                "id": RentalId::from_u128(0), "object": "rental", "booking_id": null,
                "customer_id": CustomerId::from_u128(customer), "vehicle_id": VehicleId::from_u128(present),
                "start_date": start.map(date), "end_date": start.filter(|_| ends).map(|start| date(start + days)),
                "rental_days": null, "pickup_type": null, "delivery_location": null, "final_price": 0, "currency": "USD",
                "status": status, "damage_at_return": false, "activated_at": activated.map(time),
                "completed_at": activated.or(start).filter(|_| back).map(|out| time(if is_early { out - length } else { out.max(at) + length })),
                "vehicle_changed_at": earlier.last().map(|last| last["until"].clone()), "earlier_vehicles": earlier,
                "time_zone": zone, "amount_billed": 0, "invoice_ids": [], "created_at": time(0), "updated_at": time(0),
            });
            serde_json::from_value(members).unwrap()
        },
    )
}

fn time(hours: i64) -> Timestamp {
    Timestamp::from_millis(BEGIN + hours * HOUR)
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Who pays, without the sentences and without rentals that are shown only because they are ruled out.
fn payer(verdict: &Verdict) -> (u8, Option<CustomerId>) {
    match verdict {
        Verdict::Clear(candidate) => (0, Some(candidate.customer)),
        Verdict::Unclear(..) => (1, None),
        Verdict::Nobody(..) => (2, None),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn the_rentals_that_are_read_decide_like_all(
        rentals in prop::collection::vec(rental(), 0..7),
        asked in prop::collection::vec((0i64..3_000, any::<bool>()), 1..8),
    ) {
        let (store, clock) = (Memory::default(), Clock(AtomicU64::new(1)));
        let organization: Organization = organization();
        let mut all = Vec::new();
        for mut rental in rentals {
            rental.id = RentalId::from_uuid(clock.new_id());
            let made = wait(operations::insert(&store, &clock, &organization, rental.clone(), Batch::default())).unwrap();
            wait(store.commit(made.batch)).unwrap();
            all.push(rental);
        }
        for (hours, whole_day) in asked {
            let at = time(hours);
            let when = match whole_day {
                true => When { on: Date::from_day_number(at.day_number()), ..When::default() },
                false => When { at: Some(at), ..When::default() },
            };
            let about = about(when, organization.time_zone).unwrap();
            let read = wait(rentals_around(&store, organization.id, VEHICLE, about)).unwrap();
            for occasion in [Occasion::Driving, Occasion::Parking] {
                let (expected, found) = (decide(&all, VEHICLE, when, occasion), decide(&read, VEHICLE, when, occasion));
                prop_assert_eq!(payer(&found), payer(&expected), "{:?}\n{:?}\n{:?}", when, found, expected);
            }
        }
    }
}

/// A completed rental of the vehicle, with the hours of its pickup and its return, which are recorded if they are given.
fn completed(customer: u128, dates: [Date; 2], hours: [Option<i64>; 2], zone: &str) -> Rental {
    let members = json!({
        "id": RentalId::from_u128(0), "object": "rental", "booking_id": null,
        "customer_id": CustomerId::from_u128(customer), "vehicle_id": VEHICLE, "start_date": dates[0], "end_date": dates[1],
        "rental_days": null, "pickup_type": null, "delivery_location": null, "final_price": 0, "currency": "USD",
        "status": "COMPLETED", "damage_at_return": false, "activated_at": hours[0].map(time), "completed_at": hours[1].map(time),
        "vehicle_changed_at": null, "earlier_vehicles": [], "time_zone": zone, "amount_billed": 0, "invoice_ids": [],
        "created_at": time(0), "updated_at": time(0),
    });
    serde_json::from_value(members).unwrap()
}

/// A store with these rentals.
fn store_of(rentals: impl IntoIterator<Item = Rental>) -> Memory {
    let (store, clock, organization) = (Memory::default(), Clock(AtomicU64::new(1)), organization());
    for mut rental in rentals {
        rental.id = RentalId::from_uuid(clock.new_id());
        let made = wait(operations::insert(&store, &clock, &organization, rental, Batch::default())).unwrap();
        wait(store.commit(made.batch)).unwrap();
    }
    store
}

/// The customers who come into question at an hour, when a person decides.
fn unclear(store: &Memory, hour: i64, occasion: Occasion) -> Vec<CustomerId> {
    let read = wait(rentals_around(store, organization().id, VEHICLE, time(hour))).unwrap();
    let when = When { at: Some(time(hour)), ..When::default() };
    let Verdict::Unclear(_, candidates) = decide(&read, VEHICLE, when, occasion) else { return Vec::new() };
    candidates.iter().map(|candidate| candidate.customer).collect()
}

fn june(day: u32) -> Date {
    Date::from_ymd(2026, 6, day).unwrap()
}

#[test]
fn a_return_before_the_plan_is_read_behind_any_number_of_recorded_times() {
    let short = |at: i64| completed(1, [june(1), june(2)], [Some(4 * at), Some(4 * at + 3)], "UTC");
    let early = completed(2, [june(20), june(22)], [None, Some(9 * 24)], "UTC");
    let store = store_of((0..12).map(short).chain([early]));
    // After the last of the short ones, and before the return of the early one.
    assert_eq!(unclear(&store, 49, Occasion::Driving)[0], CustomerId::from_u128(2));
}

#[test]
fn a_rental_is_read_until_the_end_of_the_day_after_its_return() {
    // At the end of that day it is already the next one in UTC.
    for days in 1..=20 {
        let rental = completed(1, [june(21 - days), june(20)], [None, None], "Pacific/Pago_Pago");
        let last_hour = 21 * 24 + 11 - 1;
        assert_eq!(unclear(&store_of([rental]), last_hour, Occasion::Parking), [CustomerId::from_u128(1)], "{days}");
    }
}

/// Of a vehicle that is rented day by day, and whose returns nobody records, the pickups tell who had it.
#[test]
fn any_number_of_rentals_without_a_recorded_return_leave_the_last_one_clear() {
    for is_planned in [true, false] {
        let day = |at: i64| Date::from_day_number(time(24 * at).day_number());
        let rentals = (0..130).map(|at| {
            let plan = day(at).unwrap();
            let mut rental = completed(at as u128 + 1, [plan, plan], [Some(24 * at + 8), None], "UTC");
            if !is_planned {
                (rental.end_date, rental.status) = (None, RentalStatus::Active);
            }
            rental
        });
        let store = store_of(rentals);
        for at in [5, 40, 99, 100, 101, 129] {
            let at_noon = time(24 * at + 12);
            let read = wait(rentals_around(&store, organization().id, VEHICLE, at_noon)).unwrap();
            let verdict = decide(&read, VEHICLE, When { at: Some(at_noon), ..When::default() }, Occasion::Driving);
            assert_eq!(payer(&verdict), (0, Some(CustomerId::from_u128(at as u128 + 1))), "{at}: {verdict:?}");
        }
    }
}

/// Whatever the status says: its return is recorded.
#[test]
fn a_vehicle_can_stay_parked_after_a_recorded_return() {
    use RentalStatus::{Active, Approved, Cancelled, Completed, New};
    for (status, expected) in [(Completed, 1), (Active, 1), (Approved, 1), (Cancelled, 1), (New, 0)] {
        let rental = completed(1, [june(1), june(5)], [Some(10), Some(4 * 24 + 12)], "UTC");
        let store = store_of([Rental { status, ..rental }]);
        assert_eq!(unclear(&store, 4 * 24 + 14, Occasion::Parking).len(), expected, "{status:?}");
        assert_eq!(unclear(&store, 6 * 24 + 1, Occasion::Parking).len(), 0, "{status:?}");
    }
}

fn organization() -> Organization {
    let members = json!({
        "id": OrganizationId::from_u128(7), "object": "organization", "name": "Fleet", "plan": "pro",
        "default_currency": "USD", "time_zone": "America/New_York", "booking_policy": "open", "invoice_language": "en",
        "tax_included": false,
        "created_at": time(0), "updated_at": time(0),
    });
    serde_json::from_value(members).unwrap()
}
