//! Changed and cancelled occurrences, in the forms in which calendar programs name them.

use super::{days, event};

const MONDAYS: &str =
    "DTSTART;TZID=Europe/Paris:20260601T080000\nDTEND;TZID=Europe/Paris:20260601T180000\nRRULE:FREQ=WEEKLY;COUNT=3";
const ALL_DAY: &str = "DTSTART;VALUE=DATE:20260601\nDTEND;VALUE=DATE:20260603\nRRULE:FREQ=WEEKLY;COUNT=3";

/// The series with a change that cancels the occurrence of June 8, named like this.
#[track_caller]
fn is_cancelled(series: &str, name: &str, is: bool) {
    let cancelled = event(&format!("{name}\nDTSTART;VALUE=DATE:20260608\nSTATUS:CANCELLED"));
    let found = days(&format!("{}\n{cancelled}", event(series)));
    assert_eq!(found.len(), if is { 2 } else { 3 }, "{name}: {found:?}");
    let except = name.replace("RECURRENCE-ID", "EXDATE");
    assert_eq!(days(&event(&format!("{series}\n{except}"))).len(), if is { 2 } else { 3 }, "{except}");
}

#[test]
fn an_occurrence_at_a_time_is_named_by_its_time_in_any_zone_or_by_its_day() {
    for name in [
        "RECURRENCE-ID;TZID=Europe/Paris:20260608T080000",
        "RECURRENCE-ID:20260608T060000Z",
        "RECURRENCE-ID;TZID=America/New_York:20260608T020000",
        "RECURRENCE-ID:20260608T080000",
        "RECURRENCE-ID;VALUE=DATE:20260608",
        "RECURRENCE-ID:20260608",
    ] {
        is_cancelled(MONDAYS, name, true);
    }
    // Nothing begins then. What is not known to be free is taken.
    for name in ["RECURRENCE-ID:20260608T080000Z", "RECURRENCE-ID;VALUE=DATE:20260609"] {
        is_cancelled(MONDAYS, name, false);
    }
}

#[test]
fn an_all_day_occurrence_is_named_by_its_day_or_by_its_midnight() {
    for name in [
        "RECURRENCE-ID;VALUE=DATE:20260608",
        "RECURRENCE-ID:20260608T000000",
        "RECURRENCE-ID;TZID=Europe/Paris:20260608T000000",
        "RECURRENCE-ID:20260608T000000Z",
        // Midnight in New York, the organization's zone.
        "RECURRENCE-ID:20260608T040000Z",
    ] {
        is_cancelled(ALL_DAY, name, true);
    }
    is_cancelled(ALL_DAY, "RECURRENCE-ID;VALUE=DATE:20260609", false);
}

#[test]
fn a_moved_occurrence_is_not_taken_at_its_former_days() {
    let moved = event("RECURRENCE-ID;VALUE=DATE:20260608\nDTSTART;VALUE=DATE:20260610\nDTEND;VALUE=DATE:20260612");
    assert_eq!(
        days(&format!("{moved}\n{}", event(MONDAYS))),
        ["A 2026-06-01/2026-06-01", "A 2026-06-10/2026-06-12", "A 2026-06-15/2026-06-15"]
    );
    // The newer one of two changes of one occurrence counts, however they name it.
    let newer =
        event("RECURRENCE-ID:20260608T060000Z\nSEQUENCE:2\nDTSTART;VALUE=DATE:20260611\nDTEND;VALUE=DATE:20260612");
    assert_eq!(days(&format!("{newer}\n{}\n{moved}", event(MONDAYS)))[1], "A 2026-06-11/2026-06-12");
    // What is no time excludes nothing, and what follows it is read.
    assert_eq!(days(&event(&format!("{MONDAYS}\nEXDATE:never,20260608T060000Z,"))).len(), 2);
    assert_eq!(days(&event("DTSTART;VALUE=DATE:20260601\nRDATE;VALUE=DATE:20260701,")).len(), 2);
    // A change of an occurrence whose series is not in the calendar.
    assert_eq!(days(&moved), ["A 2026-06-10/2026-06-12"]);
}

#[test]
fn a_change_of_all_later_occurrences_moves_them() {
    let later = event(
        "RECURRENCE-ID;RANGE=THISANDFUTURE;VALUE=DATE:20260608\nDTSTART;VALUE=DATE:20260609\nDTEND;VALUE=DATE:20260612",
    );
    assert_eq!(
        days(&format!("{}\n{later}", event(ALL_DAY))),
        ["A 2026-06-01/2026-06-03", "A 2026-06-09/2026-06-12", "A 2026-06-16/2026-06-19"]
    );
    // An occurrence with a change of its own, and one that was cancelled.
    let own = event("RECURRENCE-ID;VALUE=DATE:20260615\nDTSTART;VALUE=DATE:20260620\nDTEND;VALUE=DATE:20260621");
    assert_eq!(days(&format!("{}\n{later}\n{own}", event(ALL_DAY)))[2], "A 2026-06-20/2026-06-21");
    let except = event(&format!("{ALL_DAY}\nEXDATE;VALUE=DATE:20260615"));
    assert_eq!(days(&format!("{except}\n{later}")).len(), 2);
    // At the same local time across the end of summer time, and longer.
    let weekly = event("DTSTART;TZID=America/New_York:20261019T220000\nDURATION:PT1H\nRRULE:FREQ=WEEKLY;COUNT=4");
    let late = event(
        "RECURRENCE-ID;RANGE=THISANDFUTURE:20261027T020000Z\nDTSTART;TZID=America/New_York:20261026T233000\nDURATION:PT1H",
    );
    assert_eq!(
        days(&format!("{weekly}\n{late}")),
        ["A 2026-10-19/2026-10-19", "A 2026-10-26/2026-10-27", "A 2026-11-02/2026-11-03", "A 2026-11-09/2026-11-10"]
    );
    let ends = later.replace("SUMMARY:A", "STATUS:CANCELLED");
    assert_eq!(days(&format!("{}\n{ends}", event(ALL_DAY))), ["A 2026-06-01/2026-06-03"]);
    // The later one of two such changes counts from its occurrence on.
    let last = event(
        "RECURRENCE-ID;RANGE=THISANDFUTURE;VALUE=DATE:20260615\nDTSTART;VALUE=DATE:20260614\nDTEND;VALUE=DATE:20260615",
    );
    assert_eq!(days(&format!("{}\n{later}\n{last}", event(ALL_DAY)))[2], "A 2026-06-14/2026-06-15");
}

#[test]
fn what_can_be_read_in_two_ways_takes_both() {
    // The first occurrence is DTSTART, whatever its rule says.
    for (rule, expected) in [
        (
            "FREQ=WEEKLY;BYDAY=TU;COUNT=2",
            &["A 2026-06-01/2026-06-02", "A 2026-06-02/2026-06-03", "A 2026-06-09/2026-06-10"][..],
        ),
        ("FREQ=DAILY;UNTIL=20260101", &["A 2026-06-01/2026-06-02"]),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", &["A 2026-06-01/2026-06-02"]),
    ] {
        assert_eq!(days(&event(&format!("DTSTART;VALUE=DATE:20260601\nRRULE:{rule}"))), expected, "{rule}");
    }
    // UNTIL is a day, and the times of that day are before its end.
    let until = event("DTSTART;TZID=America/New_York:20260601T080000\nDURATION:PT1H\nRRULE:FREQ=DAILY;UNTIL=20260603");
    assert_eq!(days(&until).len(), 3);
    // Occurrences that begin together and end on other days.
    let one = |end: &str| event(&format!("DTSTART;VALUE=DATE:20260601\nDTEND;VALUE=DATE:{end}"));
    assert_eq!(
        days(&format!("{}\n{}", one("20260605"), one("20260602"))),
        ["A 2026-06-01/2026-06-05", "A 2026-06-01/2026-06-02"]
    );
    // A rule that begins after the window.
    assert_eq!(days(&event("DTSTART;VALUE=DATE:20300101\nRRULE:FREQ=DAILY")), [""; 0]);
}

#[test]
fn a_local_time_that_is_there_twice_or_never_is_read() {
    let at = |start: &str| event(&format!("DTSTART;TZID=America/New_York:{start}\nDURATION:PT5M"));
    assert_eq!(days(&at("20261101T013000")), ["A 2026-11-01/2026-11-01"]);
    assert_eq!(days(&at("20270314T023000")), ["A 2027-03-14/2027-03-14"]);
    let daily = event("DTSTART;TZID=America/New_York:20261031T013000\nDURATION:PT5M\nRRULE:FREQ=DAILY;COUNT=3");
    assert_eq!(days(&daily), ["A 2026-10-31/2026-10-31", "A 2026-11-01/2026-11-01", "A 2026-11-02/2026-11-02"]);
    // As long as the first occurrence, although its end has another zone.
    let zones = event("DTSTART:20260601T120000Z\nDTEND;TZID=Asia/Tokyo:20260602T120000\nRRULE:FREQ=WEEKLY;COUNT=2");
    assert_eq!(days(&zones), ["A 2026-06-01/2026-06-01", "A 2026-06-08/2026-06-08"]);
}

#[test]
fn what_says_when_it_ends_and_cannot_be_read_is_named() {
    for (lines, words) in [
        ("DTEND:soon", "the event a@example.com in line 2 has a DTEND that cannot be read"),
        ("DURATION:long", "has a DURATION that cannot be read"),
        ("RDATE:sometimes", "has an RDATE that cannot be read"),
        ("RRULE:FREQ=YEARLY;BYMONTHDAY=77", "RRULE"),
        ("RRULE:FREQ=DAILY;BYHOUR=1,2,3,4,5;BYMINUTE=1,2,3,4,5", "more than once a day"),
    ] {
        let problems = super::problems(&event(&format!("DTSTART:20260601T080000Z\n{lines}")));
        assert!(problems.len() == 1 && problems[0].contains(words), "{lines}: {problems:?}");
    }
}
