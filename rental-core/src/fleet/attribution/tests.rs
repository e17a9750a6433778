use super::*;
use crate::value::{Currency, Money};

mod clocks;
mod contradicting;
mod stale;
mod unmarked;
mod worlds;

const VEHICLE: VehicleId = VehicleId::from_u128(99);
const CUSTOMER: CustomerId = CustomerId::from_u128(7);

fn date(text: &str) -> Date {
    Date::parse(text).unwrap()
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// A rental of these days: `STATUS start..end`, with the times of handover and return where they are recorded.
fn rental(n: u128, status: &str, days: (&str, &str), activated: Option<&str>, completed: Option<&str>) -> Rental {
    Rental {
        id: RentalId::from_u128(n),
        object: "rental".into(),
        booking_id: None,
        customer_id: CUSTOMER,
        vehicle_id: VEHICLE,
        start_date: Some(date(days.0)),
        end_date: (!days.1.is_empty()).then(|| date(days.1)),
        rental_days: None,
        pickup_type: None,
        delivery_location: None,
        final_price: Some(Money::default()),
        currency: Currency::parse("USD").unwrap(),
        status: serde_json::from_value(status.into()).unwrap(),
        damage_at_return: false,
        activated_at: activated.map(at),
        completed_at: completed.map(at),
        vehicle_changed_at: None,
        earlier_vehicles: Vec::new(),
        time_zone: Zone::NEW_YORK,
        amount_billed: Money::default(),
        invoice_ids: Vec::new(),
        created_at: Timestamp::default(),
        updated_at: Timestamp::default(),
    }
}

/// The rental that clearly had it, or `unclear`/`nobody`.
fn judged(rentals: &[Rental], when: &str, occasion: Occasion) -> String {
    judged_at(rentals, shown(when, Zone::NEW_YORK), occasion)
}

/// A day, or the instant at which clocks of this zone showed a time.
fn shown(when: &str, zone: Zone) -> When {
    match Date::parse(when) {
        Some(day) => When { at: None, on: Some(day), zone: Some(zone) },
        None => When { at: Some(at(when)), on: None, zone: Some(zone) },
    }
}

fn judged_at(rentals: &[Rental], when: When, occasion: Occasion) -> String {
    match decide(rentals, VEHICLE, when, occasion) {
        Verdict::Clear(candidate) => candidate.rental.uuid().as_u128().to_string(),
        Verdict::Unclear(..) => "unclear".into(),
        Verdict::Nobody(..) => "nobody".into(),
    }
}

#[track_caller]
fn check(rentals: &[Rental], when: &str, expected: &str) {
    assert_eq!(judged(rentals, when, Occasion::Driving), expected, "{when}");
}

#[test]
fn days_begin_and_end_where_the_organization_is() {
    let june = [rental(1, "COMPLETED", ("2026-06-01", "2026-06-05"), None, None)];
    check(&june, "2026-06-01T03:59:59Z", "nobody");
    check(&june, "2026-06-01T04:00:00Z", "1");
    check(&june, "2026-06-06T03:59:59Z", "1");
    check(&june, "2026-06-06T04:00:00Z", "nobody");
    check(&june, "2026-06-05", "1");
    check(&june, "2026-06-06", "nobody");
}

/// An organization that moves does not move the days of its earlier rentals.
#[test]
fn the_days_of_a_rental_are_those_of_its_own_zone() {
    let mut june = [rental(1, "COMPLETED", ("2026-06-01", "2026-06-05"), None, None)];
    june[0].time_zone = Zone::parse("America/Los_Angeles").unwrap();
    check(&june, "2026-06-01T06:59:59Z", "nobody");
    check(&june, "2026-06-01T07:00:00Z", "1");
    check(&june, "2026-06-06T06:59:59Z", "1");
    check(&june, "2026-06-06T07:00:00Z", "nobody");
    check(&june, "2026-06-05", "1");
}

#[test]
fn requests_and_cancelled_rentals_had_nothing() {
    for status in ["NEW", "CANCELLED"] {
        check(&[rental(1, status, ("2026-06-01", "2026-06-05"), None, None)], "2026-06-02", "nobody");
    }
}

#[test]
fn an_approved_rental_that_was_never_handed_over_is_only_shown() {
    check(&[rental(1, "APPROVED", ("2026-06-01", "2026-06-05"), None, None)], "2026-06-02", "unclear");
}

#[test]
fn a_return_and_a_pickup_on_one_day_are_told_apart_by_what_was_recorded() {
    let back = "2026-06-05T15:00:00Z";
    let out = "2026-06-05T19:30:00Z";
    let both = [
        rental(1, "COMPLETED", ("2026-06-01", "2026-06-05"), Some("2026-06-01T14:00:00Z"), Some(back)),
        of(8, rental(2, "ACTIVE", ("2026-06-05", "2026-06-09"), Some(out), None)),
    ];
    check(&both, "2026-06-05T14:59:59Z", "1");
    check(&both, back, "unclear");
    check(&both, "2026-06-05T15:01:00Z", "nobody");
    check(&both, "2026-06-05T16:00:00Z", "nobody");
    check(&both, out, "2");
    check(&both, "2026-06-05", "unclear");
    check(&both, "2026-06-04", "1");
    check(&both, "2026-06-06", "2");
}

#[test]
fn a_return_and_a_pickup_on_one_day_without_times_are_unclear() {
    let both = [
        rental(1, "COMPLETED", ("2026-06-01", "2026-06-05"), None, None),
        of(8, rental(2, "COMPLETED", ("2026-06-05", "2026-06-09"), None, None)),
    ];
    check(&both, "2026-06-05T14:00:00Z", "unclear");
    check(&both, "2026-06-04T14:00:00Z", "1");
}

#[test]
fn a_recorded_fact_rules_out_whatever_was_planned() {
    let late = [rental(1, "ACTIVE", ("2026-06-01", "2026-06-05"), Some("2026-06-02T12:00:00Z"), None)];
    check(&late, "2026-06-02T11:59:59Z", "nobody");
    check(&late, "2026-06-02T12:00:00Z", "1");
    check(&late, "2026-06-01", "nobody");
    let early = [rental(1, "COMPLETED", ("2026-06-01", "2026-06-05"), None, Some("2026-06-03T12:00:00Z"))];
    check(&early, "2026-06-03T12:00:00Z", "unclear");
    check(&early, "2026-06-03T12:00:01Z", "nobody");
    check(&early, "2026-06-03", "unclear");
    check(&early, "2026-06-04", "nobody");
}

#[test]
fn outside_of_the_planned_days_only_recorded_times_count() {
    let overdue = [rental(1, "ACTIVE", ("2026-06-01", "2026-06-05"), Some("2026-06-01T14:00:00Z"), None)];
    check(&overdue, "2026-06-08T12:00:00Z", "unclear");
    let late = [rental(1, "COMPLETED", ("2026-06-01", "2026-06-05"), None, Some("2026-06-07T12:00:00Z"))];
    check(&late, "2026-06-06T12:00:00Z", "1");
    check(&late, "2026-06-07T12:00:00Z", "unclear");
    check(&late, "2026-06-07T12:00:01Z", "nobody");
    let early = [rental(1, "ACTIVE", ("2026-06-02", "2026-06-05"), Some("2026-06-01T20:00:00Z"), None)];
    check(&early, "2026-06-01T20:00:00Z", "1");
    check(&early, "2026-06-01T19:00:00Z", "nobody");
}

#[test]
fn an_overdue_rental_makes_the_next_one_unclear() {
    let both = [
        rental(1, "ACTIVE", ("2026-06-01", "2026-06-05"), Some("2026-06-01T14:00:00Z"), None),
        of(8, rental(2, "ACTIVE", ("2026-06-06", "2026-06-09"), None, None)),
    ];
    check(&both, "2026-06-07T12:00:00Z", "unclear");
}

#[test]
fn a_vehicle_that_another_customer_drove_since_was_not_parked_by_the_one_before() {
    let both = [
        rental(
            1,
            "COMPLETED",
            ("2026-06-01", "2026-06-05"),
            Some("2026-06-01T14:00:00Z"),
            Some("2026-06-05T12:00:00Z"),
        ),
        of(
            8,
            rental(
                2,
                "COMPLETED",
                ("2026-06-05", "2026-06-06"),
                Some("2026-06-05T13:00:00Z"),
                Some("2026-06-05T23:00:00Z"),
            ),
        ),
        of(9, rental(3, "COMPLETED", ("2026-06-06", "2026-06-09"), None, None)),
    ];
    let when = shown("2026-06-06T14:00:00Z", Zone::NEW_YORK);
    let Verdict::Unclear(_, candidates) = decide(&both, VEHICLE, when, Occasion::Parking) else {
        panic!("it is unclear")
    };
    let possible = candidates.iter().filter(|one| !one.reason.contains("another")).map(|one| one.rental);
    assert!(!possible.map(|id| id.uuid().as_u128()).any(|id| id == 1), "{candidates:?}");
}

/// A booking may not have taken place: until its pickup is recorded, the vehicle can stand where the customer before left it.
#[test]
fn a_booking_that_nobody_handed_over_does_not_hide_who_parked_the_vehicle_the_day_before() {
    let both = |status| {
        [
            rental(1, "COMPLETED", ("2026-06-05", "2026-06-05"), Some("2026-06-05T14:00:00Z"), None),
            of(8, rental(2, status, ("2026-06-05", "2026-06-08"), None, None)),
        ]
    };
    let when = shown("2026-06-06T04:29:00Z", Zone::NEW_YORK);
    let decided = |rentals: &[Rental], occasion| match decide(rentals, VEHICLE, when, occasion) {
        Verdict::Unclear(_, candidates) => candidates.iter().map(|one| one.rental.uuid().as_u128()).collect(),
        Verdict::Clear(one) => vec![one.rental.uuid().as_u128()],
        Verdict::Nobody(..) => vec![],
    };
    assert_eq!(decided(&both("APPROVED"), Occasion::Parking), [2, 1]);
    assert_eq!(decided(&both("ACTIVE"), Occasion::Parking), [2], "it took place");
    // A camera saw who drove.
    let driving = decide(&both("APPROVED"), VEHICLE, when, Occasion::Driving);
    assert!(matches!(driving, Verdict::Unclear(reason, _) if reason.starts_with("Approved for")));
}

#[test]
fn a_completed_rental_shows_that_the_one_before_was_given_back() {
    let both = |start| {
        [
            rental(1, "ACTIVE", ("2026-06-01", "2026-06-05"), Some("2026-06-01T14:00:00Z"), None),
            of(8, rental(2, "COMPLETED", (start, "2026-06-09"), None, None)),
        ]
    };
    for (start, when, expected) in [
        ("2026-06-05", "2026-06-04T12:00:00Z", "1"),
        ("2026-06-05", "2026-06-05T23:00:00Z", "unclear"),
        ("2026-06-05", "2026-06-06T12:00:00Z", "2"),
        ("2026-06-05", "2026-06-09T12:00:00Z", "2"),
        ("2026-06-07", "2026-06-05T23:00:00Z", "1"),
        ("2026-06-07", "2026-06-07T12:00:00Z", "unclear"),
        ("2026-06-07", "2026-06-08T12:00:00Z", "2"),
        // The plans contradict each other.
        ("2026-06-04", "2026-06-06T12:00:00Z", "unclear"),
    ] {
        check(&both(start), when, expected);
    }
}

#[test]
fn an_active_rental_planned_for_the_day_of_a_return_makes_that_day_unclear() {
    let both = [
        rental(1, "ACTIVE", ("2026-06-01", "2026-06-05"), Some("2026-06-01T14:00:00Z"), None),
        of(8, rental(2, "ACTIVE", ("2026-06-05", "2026-06-09"), None, None)),
    ];
    check(&both, "2026-06-04T12:00:00Z", "1");
    check(&both, "2026-06-05T23:00:00Z", "unclear");
}

#[test]
fn a_booking_that_overlaps_with_a_rental_that_took_place_did_not_take_place() {
    let both = |status, start, end| {
        [
            rental(1, status, ("2026-06-01", "2026-06-10"), None, None),
            of(8, rental(2, "APPROVED", (start, end), None, None)),
        ]
    };
    for status in ["COMPLETED", "ACTIVE"] {
        check(&both(status, "2026-06-04", "2026-06-04"), "2026-06-04T12:00:00Z", "1");
        check(&both(status, "2026-06-04", "2026-06-12"), "2026-06-09T12:00:00Z", "1");
        check(&both(status, "2026-06-12", "2026-06-14"), "2026-06-13T12:00:00Z", "unclear");
        // The plans overlap on one night.
        check(&both(status, "2026-05-29", "2026-06-02"), "2026-06-01T12:00:00Z", "1");
    }
    check(&both("COMPLETED", "2026-06-10", "2026-06-12"), "2026-06-10T12:00:00Z", "unclear");
}

#[test]
fn who_was_only_planned_for_the_day_does_not_make_a_recorded_rental_unclear() {
    for status in ["APPROVED", "ACTIVE", "COMPLETED"] {
        let both = [
            rental(
                1,
                "COMPLETED",
                ("2026-06-01", "2026-06-05"),
                Some("2026-06-01T14:00:00Z"),
                Some("2026-06-05T15:00:00Z"),
            ),
            of(8, rental(2, status, ("2026-06-05", "2026-06-09"), None, None)),
        ];
        check(&both, "2026-06-05T14:00:00Z", "1");
    }
}

#[test]
fn a_violation_on_the_day_after_the_return_is_shown_and_a_toll_is_not() {
    let back = [rental(1, "COMPLETED", ("2026-06-01", "2026-06-05"), None, None)];
    assert_eq!(judged(&back, "2026-06-06T12:00:00Z", Occasion::Parking), "unclear");
    assert_eq!(judged(&back, "2026-06-07T12:00:00Z", Occasion::Parking), "nobody");
    assert_eq!(judged(&back, "2026-06-06T12:00:00Z", Occasion::Driving), "nobody");
}

/// June 5 ends in New York at 04:00 UTC of June 6, and the day after it a day later.
#[test]
fn a_parked_vehicle_can_be_ticketed_from_its_return_to_the_end_of_the_next_day() {
    let (up, back) = (Some("2026-06-01T14:00:00Z"), Some("2026-06-05T14:00:00Z"));
    for planned in ["2026-06-05", "2026-06-04"] {
        let alone = [rental(1, "COMPLETED", ("2026-06-01", planned), up, back)];
        let why = |when: &str| match decide(&alone, VEHICLE, shown(when, Zone::NEW_YORK), Occasion::Parking) {
            Verdict::Unclear(why, candidates) => {
                assert_eq!(candidates.len(), 1, "{candidates:?}");
                why
            }
            other => panic!("{when}: {other:?}"),
        };
        let days = format!("planned 2026-06-01 to {planned}.");
        for when in ["2026-06-05T14:00:01Z", "2026-06-05T15:00:00Z", "2026-06-06T03:59:59Z"] {
            assert_eq!(
                why(when),
                format!("Given back earlier that day, and the vehicle can have stayed parked; {days}")
            );
        }
        for when in ["2026-06-06T04:00:00Z", "2026-06-07T03:00:00Z", "2026-06-07T03:59:59Z"] {
            assert_eq!(why(when), format!("Given back the day before, and the vehicle can have stayed parked; {days}"));
        }
        assert_eq!(judged(&alone, "2026-06-07T04:00:00Z", Occasion::Parking), "nobody");
        assert_eq!(judged(&alone, "2026-06-05T15:00:00Z", Occasion::Driving), "nobody");
    }
    // The next customer came later that day, and by plan only.
    let next = |up| of(8, rental(2, "COMPLETED", ("2026-06-05", "2026-06-08"), up, None));
    let first = rental(1, "COMPLETED", ("2026-06-01", "2026-06-05"), up, back);
    assert_eq!(judged(&[first.clone(), next(None)], "2026-06-05T15:00:00Z", Occasion::Parking), "unclear");
    let extension = of(7, next(None));
    assert_eq!(judged(&[first.clone(), extension], "2026-06-05T15:00:00Z", Occasion::Parking), "2", "one customer");
    let later = next(Some("2026-06-05T18:00:00Z"));
    assert_eq!(judged(&[first.clone(), later.clone()], "2026-06-05T15:00:00Z", Occasion::Parking), "unclear");
    assert_eq!(judged(&[first, later], "2026-06-05T19:00:00Z", Occasion::Parking), "2");
}

/// A rental can have had the vehicle on days that were not planned.
#[test]
fn who_had_the_vehicle_at_another_time_of_the_day_is_listed_with_the_reason() {
    let (up, back) = (Some("2026-06-05T14:00:00Z"), Some("2026-06-12T14:00:00Z"));
    let late = rental(1, "COMPLETED", ("2026-06-01", "2026-06-11"), Some("2026-06-01T14:00:00Z"), back);
    let early = rental(1, "COMPLETED", ("2026-06-10", "2026-06-12"), up, back);
    let mut open = rental(1, "COMPLETED", ("2026-06-01", ""), up, back);
    open.start_date = None;
    for (rental, when, expected) in [
        (&late, "2026-06-12T15:00:00Z", "Planned 2026-06-01 to 2026-06-11, but given back before."),
        (&early, "2026-06-05T13:00:00Z", "Planned 2026-06-10 to 2026-06-12, but handed over later."),
        (&open, "2026-06-05T13:00:00Z", "Planned without dates, but handed over later."),
        (&open, "2026-06-12T15:00:00Z", "Planned without dates, but given back before."),
    ] {
        let decided = decide(std::slice::from_ref(rental), VEHICLE, shown(when, Zone::NEW_YORK), Occasion::Driving);
        let Verdict::Nobody(why, candidates) = decided else { panic!("{when}: {decided:?}") };
        assert_eq!(why, "What is recorded rules out every rental of that day.", "{when}");
        assert_eq!(candidates.iter().map(|one| one.reason.as_str()).collect::<Vec<_>>(), [expected]);
    }
    let days = ["2026-06-04T13:00:00Z", "2026-06-13T15:00:00Z"];
    for when in days {
        let when = shown(when, Zone::NEW_YORK);
        let decided = decide(std::slice::from_ref(&early), VEHICLE, when, Occasion::Driving);
        let Verdict::Nobody(why, candidates) = decided else { panic!("{when:?}: {decided:?}") };
        assert_eq!(why, "By what is recorded and planned, no rental had the vehicle on that day.");
        assert!(candidates.is_empty(), "{candidates:?}");
    }
}

/// The return was marked when nobody knew its time any more, so it is not recorded.
#[test]
fn a_rental_that_was_completed_late_ends_by_its_plan_or_by_the_next_handover() {
    let up = Some("2026-06-01T14:00:00Z");
    let alone = [rental(1, "COMPLETED", ("2026-06-01", "2026-06-05"), up, None)];
    check(&alone, "2026-06-05T12:00:00Z", "1");
    for when in ["2026-06-06T12:00:00Z", "2026-06-20T12:00:00Z", "2026-09-01T12:00:00Z"] {
        check(&alone, when, "nobody");
    }
    let next = |day: &str| {
        let up = format!("2026-06-0{day}T14:00:00Z");
        of(8, rental(2, "COMPLETED", ("2026-06-06", "2026-06-09"), Some(&up), None))
    };
    check(&[alone[0].clone(), next("5")], "2026-06-05T15:00:00Z", "2");
    check(&[alone[0].clone(), next("7")], "2026-06-06T12:00:00Z", "nobody");
}

#[test]
fn a_rental_without_an_end_is_open() {
    let open = [rental(1, "ACTIVE", ("2026-06-01", ""), None, None)];
    check(&open, "2027-06-01T12:00:00Z", "1");
    check(&open, "2026-05-31T12:00:00Z", "nobody");
}

#[test]
fn a_later_handover_ends_an_earlier_possession() {
    let both = [
        rental(1, "COMPLETED", ("2026-06-01", "2026-06-05"), None, None),
        of(
            8,
            rental(
                2,
                "COMPLETED",
                ("2026-06-05", "2026-06-08"),
                Some("2026-06-05T14:00:00Z"),
                Some("2026-06-05T18:00:00Z"),
            ),
        ),
    ];
    check(&both, "2026-06-05T13:00:00Z", "1");
    check(&both, "2026-06-05T15:00:00Z", "2");
    check(&both, "2026-06-05T20:00:00Z", "nobody");
    // Nobody marked the first one as given back.
    let forgotten = [rental(1, "ACTIVE", ("2026-05-01", ""), Some("2026-05-01T14:00:00Z"), None), both[1].clone()];
    check(&forgotten, "2026-06-05T13:00:00Z", "1");
    check(&forgotten, "2026-06-05T15:00:00Z", "2");
    check(&forgotten, "2026-06-09T15:00:00Z", "nobody");
}

#[test]
fn the_recorded_time_of_one_side_of_a_shared_day_is_enough() {
    let (first, second) = (("2026-06-01", "2026-06-05"), ("2026-06-05", "2026-06-08"));
    let back = [
        rental(1, "COMPLETED", first, None, Some("2026-06-05T14:00:00Z")),
        of(8, rental(2, "COMPLETED", second, None, None)),
    ];
    check(&back, "2026-06-05T13:59:59Z", "1");
    check(&back, "2026-06-05T14:00:00Z", "unclear");
    check(&back, "2026-06-05T14:00:01Z", "2");
    let out = [
        rental(1, "COMPLETED", first, None, None),
        of(8, rental(2, "COMPLETED", second, Some("2026-06-05T14:00:00Z"), None)),
    ];
    check(&out, "2026-06-05T13:59:59Z", "1");
    check(&out, "2026-06-05T14:00:00Z", "2");
}

#[test]
fn a_rental_without_dates_counts_by_its_recorded_times() {
    let mut open = rental(1, "ACTIVE", ("2026-06-01", ""), Some("2026-06-03T14:00:00Z"), None);
    open.start_date = None;
    let planned = of(8, rental(2, "COMPLETED", ("2026-06-01", "2026-06-05"), None, None));
    check(&[open.clone(), planned.clone()], "2026-06-03T13:00:00Z", "2");
    check(&[open.clone(), planned.clone()], "2026-06-03T15:00:00Z", "1");
    check(&[open.clone()], "2026-06-02T15:00:00Z", "nobody");
    open.activated_at = None;
    check(&[open.clone()], "2026-06-02T15:00:00Z", "unclear");
    check(&[open.clone(), planned], "2026-06-03T15:00:00Z", "2");
    (open.status, open.completed_at) = (RentalStatus::Completed, Some(at("2026-06-04T12:00:00Z")));
    check(&[open.clone()], "2026-06-04T11:00:00Z", "unclear");
    check(&[open.clone()], "2026-06-04T12:00:00Z", "unclear");
    check(&[open], "2026-06-04T12:00:01Z", "nobody");
}

#[test]
fn an_extension_by_the_same_customer_is_one_possession() {
    let both = [
        rental(1, "COMPLETED", ("2026-06-01", "2026-06-05"), None, None),
        rental(2, "COMPLETED", ("2026-06-05", "2026-06-08"), None, None),
    ];
    check(&both, "2026-06-05T13:00:00Z", "1");
    check(&both, "2026-06-05", "1");
    let other = [both[0].clone(), of(8, both[1].clone())];
    check(&other, "2026-06-05T13:00:00Z", "unclear");
}

#[test]
fn an_approved_rental_with_a_recorded_pickup_was_handed_over() {
    let mut one = rental(1, "APPROVED", ("2026-06-01", "2026-06-05"), Some("2026-06-01T14:00:00Z"), None);
    check(&[one.clone()], "2026-06-02", "1");
    one.activated_at = None;
    let Verdict::Unclear(why, _) = decide(&[one], VEHICLE, shown("2026-06-02", Zone::NEW_YORK), Occasion::Driving)
    else {
        panic!("it is unclear");
    };
    assert_eq!(why, "Approved for 2026-06-01 to 2026-06-05, but never marked as handed over.");
}

#[test]
fn a_violation_after_the_next_recorded_pickup_is_of_the_next_customer() {
    let both = [
        rental(1, "COMPLETED", ("2026-06-01", "2026-06-05"), None, None),
        of(8, rental(2, "COMPLETED", ("2026-06-06", "2026-06-09"), Some("2026-06-06T12:00:00Z"), None)),
    ];
    assert_eq!(judged(&both, "2026-06-06T11:00:00Z", Occasion::Parking), "unclear");
    assert_eq!(judged(&both, "2026-06-06T12:00:00Z", Occasion::Parking), "2");
    assert_eq!(judged(&both, "2026-06-06T11:00:00Z", Occasion::Driving), "nobody");
}

/// The rental, of another customer.
fn of(customer: u128, rental: Rental) -> Rental {
    Rental { customer_id: CustomerId::from_u128(customer), ..rental }
}
