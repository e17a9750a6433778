//! Rentals that took place by their status, and cannot all have taken place as they are planned and recorded.

use super::*;
use proptest::prelude::*;

/// The verdict with its sentence, and the sentences of the candidates.
fn sentences(rentals: &[Rental], when: &str) -> (String, Vec<String>) {
    let (why, candidates) = match decide(rentals, VEHICLE, shown(when, Zone::NEW_YORK), Occasion::Driving) {
        Verdict::Clear(one) => ("clear".into(), vec![one]),
        Verdict::Unclear(why, candidates) => (why, candidates),
        Verdict::Nobody(why, candidates) => (format!("nobody: {why}"), candidates),
    };
    (why, candidates.into_iter().map(|one| one.reason).collect())
}

#[test]
fn plans_that_share_one_night_are_unclear_on_both_days_of_it() {
    let (first, second) = (("2026-10-06", "2026-10-09"), ("2026-10-08", "2026-10-11"));
    let (up, back) = (Some("2026-10-06T15:00:00Z"), Some("2026-10-11T20:00:00Z"));
    for (up, back) in [(None, None), (up, None), (None, back), (up, back)] {
        let both = [rental(1, "COMPLETED", first, up, None), of(8, rental(2, "COMPLETED", second, None, back))];
        for (day, expected) in [("07", "1"), ("08", "unclear"), ("09", "unclear"), ("10", "2")] {
            check(&both, &format!("2026-10-{day}T16:00:01Z"), expected);
        }
        let (why, reasons) = sentences(&both, "2026-10-08T16:00:01Z");
        assert_eq!(why, "2 rentals come into question: they contradict each other.");
        for (reason, days) in reasons.iter().zip(["2026-10-06 to 2026-10-09", "2026-10-08 to 2026-10-11"]) {
            let expected =
                format!("Planned {days}, but another rental was planned or had the vehicle at the same time.");
            assert_eq!(*reason, expected);
        }
    }
    // What is recorded decides: the first one was given back later, or the second one was handed over before.
    let late = rental(1, "COMPLETED", first, Some("2026-10-06T15:00:00Z"), Some("2026-10-09T20:00:00Z"));
    let next = |up| of(8, rental(2, "COMPLETED", second, up, None));
    check(&[late.clone(), next(None)], "2026-10-08T16:00:01Z", "1");
    check(&[late, next(None)], "2026-10-09T21:00:01Z", "2");
    let early = [rental(1, "COMPLETED", first, None, None), next(Some("2026-10-08T12:00:00Z"))];
    check(&early, "2026-10-08T11:00:01Z", "1");
    check(&early, "2026-10-08T16:00:01Z", "2");
    // One customer pays in both cases.
    let extended = [rental(1, "COMPLETED", first, None, None), of(7, next(None))];
    assert_ne!(judged(&extended, "2026-10-08T16:00:01Z", Occasion::Driving), "unclear");
}

#[test]
fn one_that_ends_on_the_day_on_which_the_next_begins_contradicts_nothing() {
    for (status, up) in [("ACTIVE", Some("2026-10-04T14:00:00Z")), ("ACTIVE", None), ("COMPLETED", None)] {
        for start in ["2026-10-04", "2026-10-02"] {
            let first = rental(1, status, (start, "2026-10-04"), up.filter(|_| start == "2026-10-04"), None);
            let both = [first, of(8, rental(2, "COMPLETED", ("2026-10-04", "2026-10-11"), None, None))];
            check(&both, "2026-10-04T16:00:01Z", "unclear");
            assert_eq!(sentences(&both, "2026-10-04T16:00:01Z").0, "2 rentals come into question.");
            check(&both, "2026-10-05T16:00:01Z", "2");
            check(&both, "2026-10-07T16:00:01Z", "2");
        }
    }
}

/// Planned for June 2026, and handed over a year before by what somebody typed.
fn mistyped() -> Rental {
    let (up, back) = (Some("2025-06-10T14:00:00Z"), Some("2026-06-12T14:00:00Z"));
    rental(1, "COMPLETED", ("2026-06-10", "2026-06-12"), up, back)
}

#[test]
fn a_pickup_of_a_wrong_year_takes_nothing_from_rentals_that_took_place() {
    let second = |status, end: &str| of(8, rental(2, status, ("2026-03-03", end), None, None));
    for status in ["COMPLETED", "ACTIVE"] {
        let both = [mistyped(), second(status, "2026-03-09")];
        for day in ["03", "05", "09"] {
            check(&both, &format!("2026-03-{day}T17:00:01Z"), "unclear");
        }
        check(&both, "2026-03-02T17:00:01Z", "1");
        check(&both, "2026-06-11T17:00:01Z", if status == "COMPLETED" { "1" } else { "unclear" });
    }
    let (why, reasons) = sentences(&[mistyped(), second("COMPLETED", "2026-03-09")], "2026-03-05T17:00:01Z");
    assert_eq!(why, "2 rentals come into question: they contradict each other.");
    let expected = [
        "Handed over before and given back after it; planned 2026-06-10 to 2026-06-12. Another rental contradicts that.",
        "Planned 2026-03-03 to 2026-03-09, but another rental was planned or had the vehicle at the same time.",
    ];
    assert_eq!(reasons, expected);
    check(&[mistyped(), second("ACTIVE", "")], "2026-05-05T17:00:01Z", "unclear");
    // It began in the days that are in doubt, or was going on when they began.
    check(&[mistyped(), second("COMPLETED", "2026-06-10")], "2026-06-10T17:00:01Z", "unclear");
    for (up, back) in [(None, None), (Some("2025-06-08T14:00:00Z"), Some("2025-06-12T20:00:00Z"))] {
        let both = [mistyped(), of(8, rental(2, "COMPLETED", ("2025-06-08", "2025-06-12"), up, back))];
        check(&both, "2025-06-09T16:00:01Z", "2");
        check(&both, "2025-06-11T16:00:01Z", "unclear");
        check(&both, "2025-06-12T16:00:01Z", "unclear");
        check(&both, "2025-06-13T16:00:01Z", "1");
    }
    // A recorded pickup after it ends it.
    let recorded = of(8, rental(2, "COMPLETED", ("2026-03-03", "2026-03-09"), Some("2026-03-03T17:00:00Z"), None));
    check(&[mistyped(), recorded], "2026-03-05T17:00:01Z", "2");
    // What did not take place contradicts nothing, and neither does the same customer.
    for status in ["APPROVED", "CANCELLED", "NEW"] {
        check(&[mistyped(), second(status, "2026-03-09")], "2026-03-05T17:00:01Z", "1");
    }
    assert_ne!(
        judged(&[mistyped(), of(7, second("COMPLETED", "2026-03-09"))], "2026-03-05T17:00:01Z", Occasion::Driving),
        "unclear"
    );
}

#[test]
fn a_return_long_after_the_plan_takes_nothing_from_a_rental_that_took_place() {
    let (up, back) = (Some("2026-06-01T14:00:00Z"), Some("2026-06-20T14:00:00Z"));
    let late = rental(1, "COMPLETED", ("2026-06-01", "2026-06-05"), up, back);
    let both = [late.clone(), of(8, rental(2, "COMPLETED", ("2026-06-08", "2026-06-10"), None, None))];
    for (day, expected) in [("04", "1"), ("08", "unclear"), ("09", "unclear"), ("10", "unclear"), ("12", "1")] {
        check(&both, &format!("2026-06-{day}T16:00:01Z"), expected);
    }
    // The next customer waited for the return, and one within the planned days did not come.
    for days in [("2026-06-19", "2026-06-25"), ("2026-06-02", "2026-06-03")] {
        let both = [late.clone(), of(8, rental(2, "COMPLETED", days, None, None))];
        check(&both, "2026-06-02T16:00:01Z", "1");
        check(&both, "2026-06-20T13:00:01Z", "1");
    }
}

#[test]
fn an_early_pickup_and_a_late_return_win_over_plans() {
    let (up, back) = (Some("2026-06-09T10:00:00Z"), Some("2026-06-14T14:00:00Z"));
    let recorded = rental(1, "COMPLETED", ("2026-06-10", "2026-06-13"), up, back);
    for day in ["2026-06-09", "2026-06-14"] {
        let both = [recorded.clone(), of(8, rental(2, "COMPLETED", (day, day), None, None))];
        check(&both, &format!("{day}T12:00:01Z"), "1");
    }
    let before = [recorded, of(8, rental(2, "COMPLETED", ("2026-06-05", "2026-06-10"), None, None))];
    check(&before, "2026-06-09T09:00:01Z", "2");
    check(&before, "2026-06-10T12:00:01Z", "1");
}

#[test]
fn a_rental_that_came_back_before_its_planned_days_began_at_an_unknown_time() {
    let early = rental(1, "COMPLETED", ("2026-10-06", "2026-10-08"), None, Some("2026-10-05T09:00:00Z"));
    let alone = std::slice::from_ref(&early);
    let days = "Planned 2026-10-06 to 2026-10-08";
    for when in ["2026-09-20T16:00:01Z", "2026-10-04T16:00:01Z", "2026-10-05T08:00:01Z"] {
        let why = format!("{days}, but its recorded return was before that, and its pickup is not recorded.");
        assert_eq!(sentences(alone, when), (why.clone(), vec![why]));
    }
    check(alone, "2026-10-05T09:00:00Z", "unclear");
    check(alone, "2026-10-05T10:00:01Z", "nobody");
    let after = (
        "nobody: What is recorded rules out every rental of that day.".to_owned(),
        vec![format!("{days}, but given back before.")],
    );
    assert_eq!(sentences(alone, "2026-10-07T16:00:01Z"), after);
    // It began after the return of the rental before.
    let (up, back) = (Some("2026-10-01T10:00:00Z"), Some("2026-10-02T10:00:00Z"));
    let before = of(8, rental(2, "COMPLETED", ("2026-10-01", "2026-10-02"), up, back));
    for (when, expected) in [
        ("2026-09-20T16:00:01Z", "nobody"),
        ("2026-10-01T16:00:01Z", "2"),
        ("2026-10-02T16:00:01Z", "unclear"),
        ("2026-10-04T16:00:01Z", "unclear"),
    ] {
        check(&[before.clone(), early.clone()], when, expected);
    }
    // The other one had the vehicle on these days by plan, and has it on.
    let other = of(8, rental(2, "COMPLETED", ("2026-10-03", "2026-10-09"), None, None));
    for (day, expected) in [("04", "unclear"), ("05", "2"), ("07", "2")] {
        check(&[other.clone(), early.clone()], &format!("2026-10-{day}T16:00:01Z"), expected);
    }
}

#[test]
fn the_reason_does_not_tell_of_a_handover_that_nobody_recorded() {
    let mut plan = rental(1, "COMPLETED", ("2026-06-01", "2026-06-05"), None, None);
    plan.time_zone = Zone::parse("Pacific/Auckland").unwrap();
    let (why, _) = sentences(std::slice::from_ref(&plan), "2026-06-05");
    assert_eq!(why, "Planned 2026-06-01 to 2026-06-05, and only the day is known.");
    plan.completed_at = Some(at("2026-06-05T12:00:00Z"));
    let (why, _) = sentences(&[plan], "2026-06-05");
    assert_eq!(why, "Planned 2026-06-01 to 2026-06-05; handed over or given back at about that time.");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    /// Nothing but the pickup of the one that is planned first, or the return of the one that is planned last, is recorded.
    #[test]
    fn a_day_of_two_plans_is_clear_for_nobody(
        plans in prop::array::uniform2((1u32..20, 0u32..8)),
        statuses in prop::array::uniform2(prop::sample::select(vec!["COMPLETED", "ACTIVE"])),
        recorded in any::<[bool; 2]>(),
        day in 1u32..28,
    ) {
        let ends = plans.map(|(start, nights)| start + nights);
        let text = |day: u32| format!("2026-06-{day:02}");
        let rentals = [0, 1].map(|n| {
            let (own, other) = (n, 1 - n);
            let up = (recorded[0] && plans[own].0 < plans[other].0).then(|| text(plans[own].0) + "T14:00:00Z");
            let is_over = statuses[own] == "COMPLETED";
            // Both of one rental would tell who had the vehicle between them.
            let is_last = ends[own] > ends[other] && up.is_none();
            let back = (is_over && recorded[1] && is_last).then(|| text(ends[own]) + "T19:00:00Z");
            let days = (text(plans[own].0), text(ends[own]));
            let one = rental(n as u128 + 1, statuses[own], (&days.0, &days.1), up.as_deref(), back.as_deref());
            of(n as u128 + 7, one)
        });
        let planned: Vec<usize> = (0..2).filter(|n| (plans[*n].0..=ends[*n]).contains(&day)).collect();
        let found = judged(&rentals, &(text(day) + "T16:00:01Z"), Occasion::Driving);
        match planned[..] {
            [] => prop_assert!(found == "nobody" || found == "unclear", "{found}"),
            [one] => prop_assert_ne!(found, (2 - one).to_string()),
            _ => prop_assert_eq!(found, "unclear"),
        }
    }
}

/// Its status was changed months after the vehicle came back, and no day of the return was planned.
#[test]
fn a_return_that_nobody_planned_takes_nothing_from_rentals_that_took_place() {
    let (up, back) = (Some("2026-06-04T13:00:00Z"), Some("2026-11-28T05:00:00Z"));
    for status in ["COMPLETED", "ACTIVE"] {
        for returned in [None, Some("2026-06-12T14:00:00Z")] {
            let second = of(8, rental(2, status, ("2026-06-08", "2026-06-12"), None, returned));
            let third = of(9, rental(3, "COMPLETED", ("2026-06-20", "2026-06-24"), None, None));
            let all = [rental(1, "COMPLETED", ("2026-06-04", ""), up, back), second, third];
            check(&all, "2026-06-05T16:00:01Z", "1");
            for day in ["09", "10", "14", "22", "27"] {
                check(&all, &format!("2026-06-{day}T16:00:01Z"), "unclear");
            }
            let (_, reasons) = sentences(&all, "2026-06-14T16:00:01Z");
            let expected =
                "Handed over before and given back after it; planned from 2026-06-04. Another rental contradicts that.";
            assert_eq!(reasons[0], expected);
        }
    }
    // A booking that nobody marked as handed over, and one of the same customer, contradict nothing.
    let first = || rental(1, "COMPLETED", ("2026-06-04", ""), up, back);
    let booking = of(8, rental(2, "APPROVED", ("2026-06-08", "2026-06-12"), None, None));
    check(&[first(), booking], "2026-06-14T16:00:01Z", "1");
    check(&[first(), rental(2, "COMPLETED", ("2026-06-08", "2026-06-12"), None, None)], "2026-06-14T16:00:01Z", "1");
}

#[test]
fn what_is_recorded_of_a_cancelled_rental_is_not_less_true() {
    let cancelled = |days, up, back| of(8, rental(2, "CANCELLED", days, Some(up), back));
    // Within the recorded times of another one.
    let first = || {
        rental(1, "COMPLETED", ("2026-06-01", "2026-06-10"), Some("2026-06-01T14:00:00Z"), Some("2026-06-10T14:00:00Z"))
    };
    let within = [first(), cancelled(("2026-06-05", "2026-06-08"), "2026-06-05T18:00:00Z", None)];
    for (time, expected) in [("05T16", "1"), ("05T19", "unclear"), ("06T16", "unclear"), ("09T16", "1")] {
        check(&within, &format!("2026-06-{time}:00:01Z"), expected);
    }
    // Before it, and the other one is ended by its own pickup.
    let before = [first(), cancelled(("2026-05-30", "2026-06-03"), "2026-05-30T18:00:00Z", None)];
    check(&before, "2026-06-02T16:00:01Z", "1");
    // On the planned first day of another one, whose pickup is not recorded.
    let cancelled = || cancelled(("2026-06-14", "2026-06-14"), "2026-06-14T15:00:00Z", Some("2026-06-14T21:00:00Z"));
    for back in [None, Some("2026-06-15T18:00:00Z")] {
        let both = [rental(1, "COMPLETED", ("2026-06-14", "2026-06-17"), None, back), cancelled()];
        check(&both, "2026-06-14T11:00:01Z", "unclear");
        check(&both, "2026-06-14T16:00:01Z", "unclear");
        check(&both, "2026-06-15T12:00:01Z", "1");
        let (_, reasons) = sentences(&both, "2026-06-14T11:00:01Z");
        let expected = "Planned 2026-06-14 to 2026-06-17, but one that was cancelled had the vehicle on the first day.";
        assert_eq!(reasons[0], expected);
    }
    let own = Rental { customer_id: CUSTOMER, ..cancelled() };
    check(&[rental(1, "COMPLETED", ("2026-06-14", "2026-06-17"), None, None), own], "2026-06-14T11:00:01Z", "1");
}
