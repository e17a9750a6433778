//! Times without seconds, clocks that are set back or forward, and clocks of several zones.

use super::*;

/// Many statements have no seconds: 08:43 can be any second of that minute.
#[test]
fn a_time_without_seconds_is_clear_when_it_holds_for_the_whole_minute() {
    let both = |back: &str, up: &str| {
        let (back, up) = (format!("2026-06-05T{back}Z"), format!("2026-06-05T{up}Z"));
        [
            rental(1, "COMPLETED", ("2026-06-01", "2026-06-05"), Some("2026-06-01T14:00:00Z"), Some(&back)),
            of(8, rental(2, "ACTIVE", ("2026-06-05", "2026-06-09"), Some(&up), None)),
        ]
    };
    let within = both("12:43:20", "12:43:25");
    for (when, expected) in [
        ("2026-06-05T12:42:00Z", "1"),
        ("2026-06-05T12:43:00Z", "unclear"),
        ("2026-06-05T12:43:01Z", "1"),
        ("2026-06-05T12:43:20Z", "unclear"),
        ("2026-06-05T12:43:22Z", "nobody"),
        ("2026-06-05T12:43:25Z", "2"),
        ("2026-06-05T12:44:00Z", "2"),
    ] {
        check(&within, when, expected);
    }
    let when = shown("2026-06-05T12:43:00Z", Zone::NEW_YORK);
    let Verdict::Unclear(why, candidates) = decide(&within, VEHICLE, when, Occasion::Driving) else {
        panic!("it is unclear")
    };
    assert_eq!(why, "2 rentals come into question.");
    for (one, days) in candidates.iter().zip(["2026-06-01 to 2026-06-05", "2026-06-05 to 2026-06-09"]) {
        assert_eq!(one.reason, format!("Planned {days}; handed over or given back within that minute."));
    }
    check(&both("12:43:00", "12:43:00"), "2026-06-05T12:43:00Z", "unclear");
    check(&both("12:43:00", "12:44:00"), "2026-06-05T12:43:00Z", "unclear");
    check(&both("12:42:59", "12:43:00"), "2026-06-05T12:43:00Z", "2");
    check(&both("12:44:00", "12:44:00"), "2026-06-05T12:43:00Z", "1");
    // One customer extended the rental: whenever it was, the same one pays.
    let [first, second] = both("12:43:20", "12:43:20");
    check(&[first, of(7, second)], "2026-06-05T12:43:00Z", "1");
}

/// Clocks went back on 2026-11-01 at 02:00: 01:30 came at 05:30 and at 06:30 UTC.
#[test]
fn in_the_hour_that_comes_twice_only_what_holds_for_both_is_clear() {
    let back = |time| [rental(1, "COMPLETED", ("2026-10-30", "2026-11-01"), Some("2026-10-30T14:00:00Z"), Some(time))];
    for reported in ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"] {
        check(&back("2026-11-01T06:00:00Z"), reported, "unclear");
        check(&back("2026-11-01T07:00:00Z"), reported, "1");
        check(&back("2026-11-01T05:15:00Z"), reported, "nobody");
    }
}

/// The clocks of Phoenix are never set back, those of New York are. Whose clocks showed the time decides, not where the rental is.
#[test]
fn the_clocks_of_the_statement_tell_which_hour_comes_twice() {
    let [phoenix, utc] = ["America/Phoenix", "UTC"].map(|name| Zone::parse(name).unwrap());
    let mut back = [rental(
        1,
        "COMPLETED",
        ("2026-10-30", "2026-11-01"),
        Some("2026-10-30T14:00:00Z"),
        Some("2026-11-01T06:00:00Z"),
    )];
    let judged = |rentals: &[Rental], zone: Option<Zone>| {
        let when = When { zone, ..shown("2026-11-01T05:30:01Z", Zone::NEW_YORK) };
        judged_at(rentals, when, Occasion::Driving)
    };
    for zone in [Zone::NEW_YORK, phoenix] {
        back[0].time_zone = zone;
        assert_eq!(judged(&back, Some(Zone::NEW_YORK)), "unclear");
        // A time with an offset, or of clocks that were not set back, occurred once.
        assert_eq!(["1"; 3].map(str::to_owned), [Some(phoenix), Some(utc), None].map(|zone| judged(&back, zone)));
    }
}

/// A day in Auckland is over before the same day in New York is.
#[test]
fn a_day_is_one_of_the_zone_of_the_statement() {
    let auckland = Zone::parse("Pacific/Auckland").unwrap();
    let both = [
        rental(
            1,
            "COMPLETED",
            ("2026-06-01", "2026-06-05"),
            Some("2026-06-01T14:00:00Z"),
            Some("2026-06-05T13:00:00Z"),
        ),
        of(8, rental(2, "ACTIVE", ("2026-06-05", "2026-06-09"), Some("2026-06-05T13:00:00Z"), None)),
    ];
    check(&both, "2026-06-05", "unclear");
    assert_eq!(judged_at(&both, shown("2026-06-05", auckland), Occasion::Driving), "1");
    assert_eq!(judged_at(&both, shown("2026-06-06", auckland), Occasion::Driving), "unclear");
    assert_eq!(judged_at(&both, shown("2026-06-07", auckland), Occasion::Driving), "2");
    // Without a zone it is a day of the rental's one.
    let day = When { zone: None, ..shown("2026-06-05", auckland) };
    assert_eq!(judged_at(&both, day, Occasion::Driving), "unclear");
}

/// Clocks went forward on 2026-03-08 at 02:00: the day has 23 hours.
#[test]
fn a_day_of_23_hours_ends_at_its_own_midnight() {
    let day = [rental(1, "COMPLETED", ("2026-03-08", "2026-03-08"), None, None)];
    check(&day, "2026-03-08T05:00:00Z", "1");
    check(&day, "2026-03-09T03:59:59Z", "1");
    check(&day, "2026-03-09T04:00:00Z", "nobody");
}
