//! Compares [`decide`] with all histories that agree with what is recorded and planned.
//!
//! A history gives each rental an instant of pickup and of return. Where a time is recorded it is that one, else any of
//! several on the planned day; no two rentals have the vehicle at once. The payer is certain when each history in which
//! somebody had the vehicle names the same customer.
//!
//! A customer can get the vehicle by a swap, give it back by a swap, and have it twice with another one between. The times of
//! swaps are always recorded.

use super::*;
use crate::value::EarlierVehicle;
use proptest::prelude::*;
use std::collections::BTreeSet;

const HOUR: i64 = 3_600_000;
/// The times of a planned day that the histories try.
const HOURS: [i64; 6] = [0, 1, 8, 12, 18, 23];

/// What really happened: hours after the beginning of June, in UTC.
#[derive(Clone, Debug)]
struct Truth {
    /// Truths with the same number are of one rental.
    rental: u128,
    customer: u128,
    pickup: i64,
    back: i64,
    knows_pickup: bool,
    knows_return: bool,
    /// When the customer got another vehicle, for which this one was swapped later.
    swapped_in: Option<i64>,
    /// When the customer gave back the vehicle for which this one was swapped.
    swapped_out: Option<i64>,
}

/// A vehicle that customers have before and after a swap.
const OTHER_VEHICLE: VehicleId = VehicleId::from_u128(98);

fn june(hours: i64) -> Timestamp {
    at("2026-06-01T00:00:00Z").plus_millis(hours * HOUR)
}

fn day(hours: i64) -> Date {
    Date::from_day_number(june(hours).day_number()).unwrap()
}

/// Rentals one after the other. Pickups and returns are at the hours that the histories try.
fn truths() -> impl Strategy<Value = Vec<Truth>> {
    let swap = || prop_oneof![2 => Just(0usize), 1 => 1usize..9];
    let one = (0usize..6, 1usize..10, 1u128..4, any::<bool>(), any::<bool>(), (swap(), swap(), 0usize..3));
    prop::collection::vec(one, 1..4).prop_map(|rentals| {
        let hours: Vec<i64> = (0..12).flat_map(|day| HOURS.map(|hour| day * 24 + hour)).collect();
        let mut place = 0;
        let mut made: Vec<Truth> = Vec::new();
        for (gap, length, customer, knows_pickup, knows_return, (lead, tail, joins)) in rentals {
            let (pickup, back) = (place + gap, place + gap + length);
            if back >= hours.len() {
                break;
            }
            let mut truth = Truth {
                rental: made.len() as u128 + 1,
                customer,
                pickup: hours[pickup],
                back: hours[back],
                knows_pickup: knows_pickup || lead > 0 && pickup > 0,
                knows_return: knows_return || tail > 0 && back + 1 < hours.len(),
                swapped_in: (lead > 0 && pickup > 0).then(|| hours[pickup.saturating_sub(lead)]),
                swapped_out: (tail > 0 && back + 1 < hours.len()).then(|| hours[(back + tail).min(hours.len() - 1)]),
            };
            // The customer of an earlier one gets the vehicle again.
            let earlier = made.len().checked_sub(joins).filter(|_| joins > 0 && truth.swapped_in.is_some());
            if let Some(earlier) = earlier.and_then(|at| made.get_mut(at))
                && earlier.swapped_out.is_some()
                && earlier.back < truth.pickup
            {
                (truth.rental, truth.customer) = (earlier.rental, earlier.customer);
                (truth.swapped_in, earlier.swapped_out) = (None, None);
            }
            made.push(truth);
            place = back;
        }
        made
    })
}

/// The rental of these truths, which are all that it has, in order.
fn rental_of(truths: &[&Truth]) -> Rental {
    let (first, last) = (truths[0], truths[truths.len() - 1]);
    let mut made = of(first.customer, rental(first.rental, "COMPLETED", ("2026-06-01", "2026-06-01"), None, None));
    made.time_zone = Zone::parse("UTC").unwrap();
    let (start, end) = (first.swapped_in.unwrap_or(first.pickup), last.swapped_out.unwrap_or(last.back));
    (made.start_date, made.end_date) = (Some(day(start)), Some(day(end)));
    made.activated_at = (first.swapped_in.is_none() && first.knows_pickup).then(|| june(first.pickup));
    made.completed_at = (last.swapped_out.is_none() && last.knows_return).then(|| june(last.back));
    let mut swap = |vehicle_id, hours| made.earlier_vehicles.push(EarlierVehicle { vehicle_id, until: june(hours) });
    if first.swapped_in.is_some() {
        swap(OTHER_VEHICLE, first.pickup);
    }
    for pair in truths.windows(2) {
        swap(VEHICLE, pair[0].back);
        swap(OTHER_VEHICLE, pair[1].pickup);
    }
    if last.swapped_out.is_some() {
        swap(VEHICLE, last.back);
        made.vehicle_id = OTHER_VEHICLE;
    }
    made.vehicle_changed_at = made.earlier_vehicles.last().map(|one| one.until);
    made
}

fn rentals_of(truths: &[Truth]) -> Vec<Rental> {
    let numbers: BTreeSet<u128> = truths.iter().map(|truth| truth.rental).collect();
    let of = |number| truths.iter().filter(|truth| truth.rental == number).collect::<Vec<_>>();
    numbers.into_iter().map(|number| rental_of(&of(number))).collect()
}

/// The instants of a planned day that the histories try, in minutes: between what is recorded on that day and the time that
/// is asked about, as many as rentals can begin and end there.
fn of_day(truths: &[Truth], asked: i64, hours: i64) -> Vec<i64> {
    let midnight = hours / 24 * 24;
    let recorded = truths.iter().flat_map(|one| {
        [one.knows_pickup.then_some(one.pickup * 60), one.knows_return.then_some(one.back * 60)].into_iter().flatten()
    });
    let mut cuts: BTreeSet<i64> = recorded.chain([asked]).collect();
    cuts.retain(|cut| (midnight * 60..midnight * 60 + 1440).contains(cut));
    cuts.extend([midnight * 60, midnight * 60 + 1440]);
    let cuts: Vec<i64> = cuts.into_iter().collect();
    let between = cuts.windows(2).flat_map(|gap| (0..4).map(move |n| gap[0] + (gap[1] - gap[0]) * n / 4));
    between.chain(cuts.last().copied()).collect()
}

/// The instants of pickup and return that agree with what is known, in minutes.
fn possible(truths: &[Truth], asked: i64, truth: &Truth) -> Vec<(i64, i64)> {
    let pickups = if truth.knows_pickup { vec![truth.pickup * 60] } else { of_day(truths, asked, truth.pickup) };
    let returns = if truth.knows_return { vec![truth.back * 60] } else { of_day(truths, asked, truth.back) };
    let all = pickups.into_iter().flat_map(|pickup| returns.iter().map(move |back| (pickup, *back)));
    all.filter(|(pickup, back)| pickup < back).collect()
}

/// The customers who have the vehicle at `asked` in any history.
fn holders(truths: &[Truth], asked: i64) -> BTreeSet<u128> {
    let mut found = BTreeSet::new();
    let mut chosen: Vec<(i64, i64)> = Vec::new();
    let choices: Vec<Vec<(i64, i64)>> = truths.iter().map(|truth| possible(truths, asked, truth)).collect();
    fn choose(
        truths: &[Truth],
        choices: &[Vec<(i64, i64)>],
        chosen: &mut Vec<(i64, i64)>,
        asked: i64,
        found: &mut BTreeSet<u128>,
    ) {
        let Some(next) = choices.get(chosen.len()) else {
            let has = chosen.iter().position(|(pickup, back)| (*pickup..*back).contains(&asked));
            found.extend(has.map(|at| truths[at].customer));
            return;
        };
        for (pickup, back) in next {
            if chosen.iter().all(|(from, to)| to <= pickup || back <= from) {
                chosen.push((*pickup, *back));
                choose(truths, choices, chosen, asked, found);
                chosen.pop();
            }
        }
    }
    choose(truths, &choices, &mut chosen, asked, &mut found);
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]
    #[test]
    fn a_payer_is_clear_when_every_history_names_the_same(truths in truths(), hour in 0i64..300) {
        let rentals = rentals_of(&truths);
        let asked = hour * 60 + 30;
        let holders = holders(&truths, asked);
        let verdict = decide(&rentals, VEHICLE, When { at: Some(june(0).plus_millis(asked * 60_000)), ..When::default() }, Occasion::Driving);
        let customer = match &verdict {
            Verdict::Clear(candidate) => Some(candidate.customer.uuid().as_u128()),
            _ => None,
        };
        match holders.len() {
            0 => prop_assert!(matches!(verdict, Verdict::Nobody(..)), "{holders:?} {verdict:?} {rentals:#?}"),
            1 => prop_assert_eq!(customer, holders.first().copied(), "{:?} {:#?}", verdict, rentals),
            _ => prop_assert!(matches!(verdict, Verdict::Unclear(..)), "{holders:?} {verdict:?} {rentals:#?}"),
        }
    }
}
