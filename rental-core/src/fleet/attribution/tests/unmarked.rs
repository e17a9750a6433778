//! Rentals that nobody marked as they went: over and still ACTIVE, cancelled after the pickup, without dates, or with one time only.

use super::*;

/// A recorded time and that of a toll mean their whole second, so nobody knows which came first.
#[test]
fn in_the_second_of_a_recorded_return_two_come_into_question() {
    let back = Some("2026-06-05T15:00:05Z");
    let first = rental(1, "COMPLETED", ("2026-06-01", "2026-06-05"), Some("2026-06-01T14:00:00Z"), back);
    let next = |up| of(8, rental(2, "COMPLETED", ("2026-06-05", "2026-06-09"), up, None));
    for up in [None, back] {
        let both = [first.clone(), next(up)];
        check(&both, "2026-06-05T15:00:04Z", "1");
        check(&both, "2026-06-05T15:00:05Z", "unclear");
        check(&both, "2026-06-05T15:00:05.400Z", "unclear");
        check(&both, "2026-06-05T15:00:06Z", "2");
        let extended = [first.clone(), of(7, next(up))];
        assert_ne!(judged(&extended, "2026-06-05T15:00:05Z", Occasion::Driving), "unclear", "one customer pays");
    }
    let when = shown("2026-06-05T15:00:05Z", Zone::NEW_YORK);
    let Verdict::Unclear(why, _) = decide(std::slice::from_ref(&first), VEHICLE, when, Occasion::Driving) else {
        panic!("it is unclear")
    };
    assert_eq!(why, "Planned 2026-06-01 to 2026-06-05; handed over or given back within that second.");
    // A later pickup in that second ended it for certain only when the return is recorded later.
    let late = rental(1, "COMPLETED", ("2026-06-01", "2026-06-05"), None, Some("2026-06-05T18:00:00Z"));
    check(&[late, next(back)], "2026-06-05T15:00:05Z", "2");
    // A time with milliseconds is exact.
    let exact = rental(1, "COMPLETED", ("2026-06-01", "2026-06-05"), None, Some("2026-06-05T15:00:05.250Z"));
    check(&[exact.clone(), next(None)], "2026-06-05T15:00:05.200Z", "1");
    check(&[exact.clone(), next(None)], "2026-06-05T15:00:05.250Z", "2");
    check(&[exact, next(None)], "2026-06-05T15:00:05Z", "unclear");
}

/// Nobody marked the first rental as given back, and its plan does not tell when it was.
#[test]
fn a_later_rental_ends_one_without_a_planned_return() {
    let second = of(8, rental(2, "COMPLETED", ("2026-06-06", "2026-06-09"), None, Some("2026-06-09T15:00:00Z")));
    let up = Some("2026-06-04T14:00:00Z");
    for first in [
        rental(1, "ACTIVE", ("2026-06-01", "2026-06-03"), up, None),
        rental(1, "ACTIVE", ("2026-06-01", ""), up, None),
        rental(1, "ACTIVE", ("2026-06-01", ""), None, None),
    ] {
        let both = [first, second.clone()];
        check(&both, "2026-06-04T15:00:05Z", "1");
        check(&both, "2026-06-06T15:00:05Z", "unclear");
        check(&both, "2026-06-07T15:00:05Z", "2");
        check(&both, "2026-06-11T15:00:05Z", "nobody");
        // A booking can have taken place, and so the vehicle can have come back.
        let booked = [both[0].clone(), of(8, rental(2, "APPROVED", ("2026-06-06", "2026-06-09"), None, None))];
        check(&booked, "2026-06-07T15:00:05Z", "unclear");
    }
    // The pickup was after the planned days, and is overdue from the next day.
    let late = [rental(1, "ACTIVE", ("2026-06-01", "2026-06-03"), up, None)];
    check(&late, "2026-06-04T15:00:05Z", "1");
    check(&late, "2026-06-05T15:00:05Z", "unclear");
}

#[test]
fn a_completed_rental_within_the_days_of_one_that_is_out_contradicts_it() {
    let both = [
        rental(1, "ACTIVE", ("2026-06-01", "2026-06-10"), Some("2026-06-01T14:00:00Z"), None),
        of(8, rental(2, "COMPLETED", ("2026-06-05", "2026-06-08"), None, None)),
    ];
    check(&both, "2026-06-04T15:00:05Z", "1");
    for day in ["05", "07", "09", "12"] {
        check(&both, &format!("2026-06-{day}T15:00:05Z"), "unclear");
    }
}

#[test]
fn a_booking_on_the_day_of_a_planned_return_comes_into_question() {
    let first = rental(1, "ACTIVE", ("2026-06-01", "2026-06-05"), Some("2026-06-01T14:00:00Z"), None);
    let booked = |customer| of(customer, rental(2, "APPROVED", ("2026-06-05", "2026-06-09"), None, None));
    check(&[first.clone(), booked(8)], "2026-06-04T18:00:05Z", "1");
    check(&[first.clone(), booked(8)], "2026-06-05T18:00:05Z", "unclear");
    check(&[first.clone(), booked(7)], "2026-06-05T18:00:05Z", "1");
    check(&[first], "2026-06-05T18:00:05Z", "1");
}

#[test]
fn what_was_cancelled_after_the_pickup_does_not_take_tolls_from_the_next() {
    let cancelled = rental(1, "CANCELLED", ("2026-06-01", "2026-06-10"), Some("2026-06-01T14:00:00Z"), None);
    let both = [cancelled, of(8, rental(2, "COMPLETED", ("2026-06-03", "2026-06-08"), None, None))];
    check(&both, "2026-06-02T15:00:05Z", "unclear");
    check(&both, "2026-06-03T15:00:05Z", "unclear");
    check(&both, "2026-06-05T15:00:05Z", "2");
    check(&both, "2026-06-08T15:00:05Z", "2");
    check(&both, "2026-06-09T15:00:05Z", "nobody");
}

/// Nobody marked the first one as given back, so it can have come back before the other one of its last day.
#[test]
fn on_the_last_day_of_a_rental_that_is_out_others_of_that_day_come_into_question() {
    let up = Some("2026-06-05T12:00:00Z");
    let undated = |back: Option<&str>, end: Option<&str>| {
        let mut one = of(8, rental(2, "COMPLETED", ("2026-06-01", ""), None, back));
        (one.start_date, one.end_date) = (None, end.map(date));
        one
    };
    for second in [
        of(8, rental(2, "COMPLETED", ("2026-06-05", "2026-06-05"), None, None)),
        of(8, rental(2, "COMPLETED", ("2026-06-05", "2026-06-05"), None, Some("2026-06-05T22:41:00Z"))),
        undated(Some("2026-06-07T14:00:00Z"), None),
        undated(None, Some("2026-06-06")),
        undated(None, None),
    ] {
        for first in [
            rental(1, "ACTIVE", ("2026-06-05", "2026-06-05"), up, None),
            rental(1, "APPROVED", ("2026-06-04", "2026-06-05"), up, None),
            rental(1, "ACTIVE", ("2026-06-01", "2026-06-05"), None, None),
            rental(1, "COMPLETED", ("2026-06-01", "2026-06-05"), None, None),
        ] {
            check(&[first.clone(), second.clone()], "2026-06-05T16:00:01Z", "unclear");
        }
    }
}

#[test]
fn a_forgotten_rental_was_before_the_recorded_pickup_of_its_last_day() {
    let first = rental(1, "COMPLETED", ("2026-06-03", "2026-06-05"), None, None);
    let second = of(8, rental(2, "ACTIVE", ("2026-06-05", "2026-06-05"), None, None));
    let third = of(9, rental(3, "COMPLETED", ("2026-06-05", "2026-06-06"), Some("2026-06-06T00:00:00Z"), None));
    check(&[first, second, third.clone()], "2026-06-05T16:00:01Z", "unclear");
    check(&[third], "2026-06-05T16:00:01Z", "nobody");
}

#[test]
fn a_recorded_return_tells_of_a_pickup_before_it() {
    // The pickup was not on its planned day, because the return was before that.
    let planned = of(8, rental(2, "COMPLETED", ("2026-06-05", "2026-06-08"), None, None));
    let early = of(9, rental(3, "COMPLETED", ("2026-06-09", "2026-06-10"), None, Some("2026-06-08T22:41:00Z")));
    check(std::slice::from_ref(&early), "2026-06-08T21:00:01Z", "unclear");
    check(&[planned.clone(), early.clone()], "2026-06-08T21:00:01Z", "unclear");
    // Without dates, it was after the returns of those before.
    let mut undated = of(9, rental(3, "COMPLETED", ("2026-06-01", ""), None, Some("2026-06-15T14:00:00Z")));
    undated.start_date = None;
    let (up, back) = (Some("2026-06-09T12:00:00Z"), Some("2026-06-11T12:00:00Z"));
    let between = rental(1, "COMPLETED", ("2026-06-09", "2026-06-11"), up, back);
    check(&[planned, between, undated.clone()], "2026-06-05T21:00:01Z", "2");
    // A possession before it was over by then.
    let out = of(8, rental(2, "ACTIVE", ("2026-06-10", "2026-06-16"), Some("2026-06-10T12:00:00Z"), None));
    check(&[out, undated], "2026-06-16T13:00:01Z", "nobody");
}

#[test]
fn a_pickup_that_was_cancelled_leaves_open_who_had_the_vehicle_after_it() {
    let first = rental(1, "COMPLETED", ("2026-06-01", "2026-06-05"), Some("2026-06-01T14:00:00Z"), None);
    let (up, back) = (Some("2026-06-05T16:00:00Z"), Some("2026-06-05T19:00:00Z"));
    let cancelled = of(8, rental(2, "CANCELLED", ("2026-06-05", "2026-06-05"), up, back));
    check(&[first.clone(), cancelled.clone()], "2026-06-05T15:00:01Z", "1");
    check(&[first.clone(), cancelled.clone()], "2026-06-05T17:00:01Z", "unclear");
    check(&[first, cancelled], "2026-06-05T21:00:01Z", "unclear");
}

#[test]
fn a_completed_rental_without_a_return_ends_at_the_next_one() {
    let both = [
        rental(1, "COMPLETED", ("2026-06-01", ""), None, None),
        of(8, rental(2, "COMPLETED", ("2026-06-05", "2026-06-08"), None, None)),
    ];
    check(&both, "2026-06-05T16:00:01Z", "unclear");
    check(&both, "2026-06-08T16:00:01Z", "2");
    check(&both, "2026-06-10T16:00:01Z", "nobody");
    let when = shown("2026-06-10T16:00:01Z", Zone::NEW_YORK);
    let Verdict::Unclear(why, _) = decide(&both[..1], VEHICLE, when, Occasion::Driving) else {
        panic!("it is unclear")
    };
    assert_eq!(why, "Planned from 2026-06-01, and it is not recorded when it was given back.");
}

#[test]
fn the_reason_of_what_another_rental_contradicts_says_so() {
    let both = [
        rental(1, "ACTIVE", ("2026-06-01", "2026-06-10"), Some("2026-06-01T14:00:00Z"), None),
        of(8, rental(2, "COMPLETED", ("2026-06-05", "2026-06-08"), None, None)),
    ];
    let when = shown("2026-06-09T16:00:01Z", Zone::NEW_YORK);
    let Verdict::Unclear(why, _) = decide(&both, VEHICLE, when, Occasion::Driving) else { panic!("it is unclear") };
    let expected = "Planned 2026-06-01 to 2026-06-10, but another rental began since, and nobody recorded the return.";
    assert_eq!(why, expected);
    let back = Some("2026-06-03T14:00:00Z");
    let open = [rental(1, "COMPLETED", ("2026-06-01", ""), Some("2026-06-01T14:00:00Z"), back)];
    let when = shown("2026-06-02T16:00:01Z", Zone::NEW_YORK);
    let Verdict::Clear(one) = decide(&open, VEHICLE, when, Occasion::Driving) else { panic!("it is clear") };
    assert_eq!(one.reason, "Handed over before and given back after it; planned from 2026-06-01.");
}

/// The second customer took the vehicle by plan, after the first one had given it back.
#[test]
fn who_certainly_drove_since_rules_out_that_the_one_before_parked_it() {
    let first = rental(1, "COMPLETED", ("2026-06-01", "2026-06-04"), None, Some("2026-06-04T10:00:00Z"));
    let second = of(8, rental(2, "COMPLETED", ("2026-06-04", "2026-06-05"), None, Some("2026-06-05T15:00:00Z")));
    let third = of(8, rental(3, "COMPLETED", ("2026-06-05", "2026-06-09"), None, None));
    let all = [first, second, third];
    assert_eq!(judged(&all, "2026-06-05T20:00:05Z", Occasion::Parking), "3");
    assert_eq!(judged(&all, "2026-06-04T20:00:05Z", Occasion::Parking), "unclear");
}

#[test]
fn a_booking_waits_only_for_a_return_that_is_known_to_be_late() {
    let first = |back| rental(1, "COMPLETED", ("2026-06-01", "2026-06-05"), None, back);
    let booked = |days| of(8, rental(2, "APPROVED", days, None, None));
    check(&[first(None), booked(("2026-06-04", "2026-06-05"))], "2026-06-05T18:00:05Z", "1");
    let late = first(Some("2026-06-05T14:00:00Z"));
    check(&[late, booked(("2026-06-05", "2026-06-08"))], "2026-06-06T18:00:05Z", "unclear");
}
