//! Nobody pays for what another customer drove, whatever nobody marked: rentals that are over and still ACTIVE, that were cancelled after
//! the pickup, that took place and are only APPROVED, that have no end date.
//!
//! What is recorded is true, and so is a planned day where no time is recorded, save for a return that nobody marked.

use super::*;
use proptest::prelude::*;

const HOUR: i64 = 3_600_000;

/// How a rental that took place is recorded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kept {
    /// COMPLETED, with these times: pickup, return.
    Completed(bool, bool),
    /// ACTIVE, with or without the time of the pickup. Nobody recorded the return. It can have an end date.
    Active(bool, bool),
    /// COMPLETED without dates. Only the return is recorded.
    Undated,
    /// CANCELLED after the recorded pickup, with or without the time of the return.
    Cancelled(bool),
    /// APPROVED, as if nobody came.
    Approved,
}

/// A rental that took place, in hours.
#[derive(Clone, Debug)]
struct Truth {
    customer: u128,
    pickup: i64,
    back: i64,
    kept: Kept,
    /// Days by which the recorded pickup was later than planned, and the return that nobody marked.
    late: [i64; 2],
    /// Days by which the return was earlier than planned.
    early: i64,
}

fn june(hours: i64) -> Timestamp {
    at("2026-06-10T00:00:00Z").plus_millis(hours * HOUR)
}

fn day(days: i64) -> Date {
    Date::from_day_number(june(days * 24).day_number()).unwrap()
}

fn truths() -> impl Strategy<Value = Vec<Truth>> {
    let kept = prop_oneof![
        4 => (any::<bool>(), any::<bool>()).prop_map(|(pickup, back)| Kept::Completed(pickup, back)),
        3 => (any::<bool>(), any::<bool>()).prop_map(|(pickup, ends)| Kept::Active(pickup, ends)),
        1 => any::<bool>().prop_map(Kept::Cancelled),
        1 => Just(Kept::Undated),
        1 => Just(Kept::Approved),
    ];
    let late = || prop_oneof![3 => Just(0i64), 1 => 1i64..6];
    let one = (0i64..40, 1i64..120, 1u128..4, kept, late(), late(), late());
    prop::collection::vec(one, 1..5).prop_map(|rentals| {
        let mut now = 0;
        let taken = rentals.into_iter().map(|(gap, length, customer, kept, late_pickup, late_return, early)| {
            let pickup = now + gap;
            now = pickup + length;
            Truth { customer, pickup, back: now, kept, late: [late_pickup, late_return], early }
        });
        taken.collect()
    })
}

fn rental_of(truth: &Truth, n: u128) -> Rental {
    let (from, to) = (truth.pickup.div_euclid(24), truth.back.div_euclid(24));
    let (status, up, back) = match truth.kept {
        Kept::Completed(up, back) => ("COMPLETED", up, back),
        Kept::Active(up, _) => ("ACTIVE", up, false),
        Kept::Undated => ("COMPLETED", false, true),
        Kept::Cancelled(back) => ("CANCELLED", true, back),
        Kept::Approved => ("APPROVED", false, false),
    };
    let start = if up { from - truth.late[0] } else { from };
    let end = match truth.kept {
        Kept::Completed(_, true) | Kept::Cancelled(_) => to + truth.early,
        Kept::Completed(_, false) | Kept::Approved | Kept::Undated => to,
        Kept::Active(..) => (to - truth.late[1]).max(start),
    };
    let mut made = of(truth.customer, rental(n, status, ("2026-06-01", ""), None, None));
    made.time_zone = Zone::parse("UTC").unwrap();
    made.start_date = (truth.kept != Kept::Undated).then(|| day(start));
    made.end_date = (!matches!(truth.kept, Kept::Undated | Kept::Active(_, false))).then(|| day(end));
    made.activated_at = up.then(|| june(truth.pickup));
    made.completed_at = back.then(|| june(truth.back));
    made
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]
    #[test]
    fn who_did_not_drive_never_pays(truths in truths(), hour in 0i64..400) {
        let rentals: Vec<Rental> = truths.iter().zip(1..).map(|(truth, n)| rental_of(truth, n)).collect();
        let minute = hour * 60 + 30;
        let driver = truths.iter().find(|one| (one.pickup * 60..one.back * 60).contains(&minute)).map(|one| one.customer);
        let when = When { at: Some(june(0).plus_millis(minute * 60_000)), ..When::default() };
        let verdict = decide(&rentals, VEHICLE, when, Occasion::Driving);
        if let (Verdict::Clear(paid), Some(driver)) = (&verdict, driver) {
            prop_assert_eq!(paid.customer.uuid().as_u128(), driver, "{:?} {:#?}", verdict, truths);
        }
    }
}
