//! Calendars in the shapes that marketplaces and calendar programs make, and calendars that lie.

use super::*;
use crate::value::{Date, Timestamp, Zone};

mod changes;
mod zones;

fn day(text: &str) -> Date {
    Date::parse(text).unwrap()
}

fn reading() -> Reading {
    Reading { zone: Zone::NEW_YORK, window: (day("2026-05-01"), day("2028-05-01")) }
}

/// The events of a calendar without problems.
#[track_caller]
fn read(bytes: &[u8]) -> Result<Vec<ExternalEvent>, String> {
    let calendar = read_calendar(bytes, &reading())?;
    assert_eq!((&*calendar.problems, &*calendar.left_out), (&[][..], &[][..]));
    Ok(calendar.events)
}

/// The days of each event in a calendar with these lines.
#[track_caller]
fn days(lines: &str) -> Vec<String> {
    let text = format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{}\r\nEND:VCALENDAR\r\n", lines.trim().replace('\n', "\r\n"));
    let show = |event: ExternalEvent| format!("{} {}/{}", event.summary, event.start, event.end);
    read(text.as_bytes()).unwrap_or_else(|why| panic!("{why}: {text}")).into_iter().map(show).collect()
}

/// What is wrong with the events in a calendar with these lines.
#[track_caller]
fn problems(lines: &str) -> Vec<String> {
    read_calendar(format!("BEGIN:VCALENDAR\n{lines}\nEND:VCALENDAR").as_bytes(), &reading()).unwrap().problems
}

fn event(lines: &str) -> String {
    format!("BEGIN:VEVENT\nUID:a@example.com\nDTSTAMP:20260505T093000Z\nSUMMARY:A\n{lines}\nEND:VEVENT")
}

/// Found by fuzzing: the parser takes a start whose time has control characters, without its zone.
#[test]
fn no_event_ends_before_it_begins() {
    let event = event("DTSTART:20261201T\u{4}\0\0\0\0\0\0\u{0}000000Z\nDTEND:20261201T000001Z");
    assert_eq!(days(&event), ["A 2026-12-01/2026-12-01"]);
}

#[test]
fn airbnb() {
    let text = "BEGIN:VCALENDAR\r\nPRODID:-//Airbnb Inc//Hosting Calendar 1.0//EN\r\nCALSCALE:GREGORIAN\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\n\
        DTSTAMP:20260505T093000Z\r\nDTSTART;VALUE=DATE:20260601\r\nDTEND;VALUE=DATE:20260605\r\nSUMMARY:Reserved\r\n\
        UID:1418fb94e984-\r\n 0123456789abcdef@airbnb.com\r\nDESCRIPTION:Reservation URL: https://www.airbnb.com/hosting/reservations/details/HM\r\n ABC\\nPhone Number (Last 4 Digits): 1234\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
    let found = read(text.as_bytes()).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].uid, "1418fb94e984-0123456789abcdef@airbnb.com");
    assert_eq!(
        (found[0].start, found[0].end, found[0].summary.as_str()),
        (day("2026-06-01"), day("2026-06-05"), "Reserved")
    );
}

#[test]
fn line_feeds_alone_a_byte_order_mark_and_letters_of_all_scripts() {
    let text = "\u{feff}BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VEVENT\nUID:1@booking.com\nDTSTART;VALUE=DATE:20260601\nDTEND;VALUE=DATE:20260602\nSUMMARY:CLOSED - Zoë 東京\n  🚐\\, red\nEND:VEVENT\nEND:VCALENDAR";
    assert_eq!(read(text.as_bytes()).unwrap()[0].summary, "CLOSED - Zoë 東京 🚐, red");
}

#[test]
fn days_times_and_durations() {
    for (lines, expected) in [
        ("DTSTART;VALUE=DATE:20260601\nDTEND;VALUE=DATE:20260602", "2026-06-01/2026-06-02"),
        ("DTSTART;VALUE=DATE:20260601", "2026-06-01/2026-06-02"),
        ("DTSTART;VALUE=DATE:20260601\nDURATION:P3D", "2026-06-01/2026-06-04"),
        ("DTSTART;VALUE=DATE:20260601\nDTEND;VALUE=DATE:20260601", "2026-06-01/2026-06-01"),
        // New York is four hours behind UTC in summer.
        ("DTSTART:20260602T010000Z\nDTEND:20260604T030000Z", "2026-06-01/2026-06-03"),
        ("DTSTART:20260601T230000\nDTEND:20260603T100000", "2026-06-01/2026-06-03"),
        ("DTSTART;TZID=America/Los_Angeles:20260601T220000\nDURATION:PT2H", "2026-06-02/2026-06-02"),
        (
            "DTSTART;TZID=Europe/Paris:20260602T030000\nPRIORITY:1\nDTEND;TZID=Europe/Paris:20260602T130000",
            "2026-06-01/2026-06-02",
        ),
    ] {
        assert_eq!(days(&event(lines)), [format!("A {expected}")], "{lines}");
    }
}

#[test]
fn recurrences_with_exceptions_and_changed_occurrences() {
    let weekly = event(
        "DTSTART;VALUE=DATE:20260601\nDTEND;VALUE=DATE:20260603\nRRULE:FREQ=WEEKLY;COUNT=4\nEXDATE;VALUE=DATE:20260615",
    );
    let moved = event("RECURRENCE-ID;VALUE=DATE:20260608\nDTSTART;VALUE=DATE:20260610\nDTEND;VALUE=DATE:20260611");
    let cancelled = event("RECURRENCE-ID;VALUE=DATE:20260622\nDTSTART;VALUE=DATE:20260622\nSTATUS:CANCELLED");
    assert_eq!(
        days(&format!("{weekly}\n{moved}\n{cancelled}")),
        ["A 2026-06-01/2026-06-03", "A 2026-06-10/2026-06-11"]
    );
    let dates = event("DTSTART;VALUE=DATE:20260601\nDTEND;VALUE=DATE:20260602\nRDATE;VALUE=DATE:20260701,20260801");
    assert_eq!(days(&dates), ["A 2026-06-01/2026-06-02", "A 2026-07-01/2026-07-02", "A 2026-08-01/2026-08-02"]);
    // Across the end of summer time, at the same local time.
    let local = event(
        "DTSTART;TZID=America/New_York:20261030T233000\nDTEND;TZID=America/New_York:20261031T003000\nRRULE:FREQ=DAILY;UNTIL=20261103T235959Z",
    );
    assert_eq!(days(&local)[2..], ["A 2026-11-01/2026-11-02", "A 2026-11-02/2026-11-03"]);
    // The last occurrence begins at the time of UNTIL, which is in UTC.
    let east = event(
        "DTSTART;TZID=Europe/Paris:20260601T080000\nDTEND;TZID=Europe/Paris:20260601T090000\nRRULE:FREQ=DAILY;UNTIL=20260603T060000Z",
    );
    assert_eq!(days(&east).len(), 3);
    let utc = event("DTSTART:20260601T010000Z\nDTEND:20260601T020000Z\nRRULE:FREQ=DAILY;UNTIL=20260602T010000Z");
    assert_eq!(days(&utc), ["A 2026-05-31/2026-05-31", "A 2026-06-01/2026-06-01"]);
    // Rules without an end: only what is in the window.
    let weekly = event("DTSTART;TZID=Europe/Paris:20260601T080000\nDURATION:PT1H\nRRULE:FREQ=WEEKLY");
    let found = days(&weekly);
    assert_eq!((found.len(), found[99].as_str()), (100, "A 2028-04-24/2028-04-24"));
    let daily = event("DTSTART;VALUE=DATE:20260601\nRRULE:FREQ=DAILY;INTERVAL=2");
    assert_eq!(days(&daily).last().unwrap(), "A 2028-04-29/2028-04-30");
    let forever = event("DTSTART;VALUE=DATE:20100101\nDTEND;VALUE=DATE:20100102\nRRULE:FREQ=YEARLY");
    assert_eq!(days(&forever), ["A 2027-01-01/2027-01-02", "A 2028-01-01/2028-01-02"]);
}

#[test]
fn of_events_with_one_uid_the_newest_counts() {
    let at = |days: &str, more: &str| event(&format!("{days}\n{more}"));
    let (june, july) = (
        "DTSTART;VALUE=DATE:20260601\nDTEND;VALUE=DATE:20260603",
        "DTSTART;VALUE=DATE:20260701\nDTEND;VALUE=DATE:20260703",
    );
    let (old, new) = (at(june, "SEQUENCE:1"), at(july, "SEQUENCE:2"));
    for both in [format!("{old}\n{new}"), format!("{new}\n{old}")] {
        assert_eq!(days(&both), ["A 2026-07-01/2026-07-03"]);
    }
    let cancelled = at(july, "SEQUENCE:3\nSTATUS:CANCELLED");
    assert_eq!(days(&format!("{cancelled}\n{new}")), [""; 0]);
    let later = at(july, "").replace("20260505T093000Z", "20260506T093000Z");
    assert_eq!(days(&format!("{later}\n{}", at(june, ""))), ["A 2026-07-01/2026-07-03"]);
    // Nothing says which one is newer: both take their days.
    let equal = format!("{}\n{}", at(june, ""), at(july, ""));
    assert_eq!(days(&equal), ["A 2026-06-01/2026-06-03", "A 2026-07-01/2026-07-03"]);
}

#[test]
fn a_rule_that_ends_after_the_window_is_read_up_to_its_end() {
    let daily = "DTSTART;VALUE=DATE:20260601\nDTEND;VALUE=DATE:20260602\nRRULE:FREQ=DAILY;UNTIL=20991231";
    assert_eq!(days(&event(daily)).len(), 700);
    let timed = "DTSTART:20260601T120000Z\nDTEND:20260601T130000Z\nRRULE:FREQ=DAILY;UNTIL=20991231T120000Z";
    assert_eq!(days(&event(timed)).len(), 700);
}

#[test]
fn a_line_that_is_folded_inside_of_a_letter_is_read() {
    let whole = format!(
        "BEGIN:VCALENDAR\r\n{}\r\nEND:VCALENDAR\r\n",
        event("DTSTART;VALUE=DATE:20260601\nDTEND;VALUE=DATE:20260602").replace("SUMMARY:A", "SUMMARY:Zoé")
    );
    let (before, after) = whole.as_bytes().split_at(whole.find('é').unwrap() + 1);
    let folded = [before, b"\r\n ", after].concat();
    assert_eq!(read(&folded).unwrap()[0].summary, "Zoé");
}

#[test]
fn what_is_cancelled_transparent_or_past_takes_no_day() {
    let nights = "DTSTART;VALUE=DATE:20260601\nDTEND;VALUE=DATE:20260603";
    for more in ["STATUS:CANCELLED", "TRANSP:TRANSPARENT"] {
        assert_eq!(days(&event(&format!("{nights}\n{more}"))), [""; 0], "{more}");
    }
    assert_eq!(days(&format!("METHOD:CANCEL\n{}", event(nights))), [""; 0]);
    assert_eq!(days(&event("DTSTART;VALUE=DATE:20260401\nDTEND;VALUE=DATE:20260501")), [""; 0]);
    assert_eq!(days(&event("DTSTART;VALUE=DATE:20260401\nDTEND;VALUE=DATE:20260502")).len(), 1);
    assert_eq!(days(""), [""; 0]);
}

#[test]
fn what_is_no_whole_calendar_is_refused_in_words() {
    let whole = format!("BEGIN:VCALENDAR\r\n{}\r\nEND:VCALENDAR", event("DTSTART;VALUE=DATE:20260601"));
    for (bytes, words) in [
        (&b""[..], "it is empty"),
        (b"<!DOCTYPE html><html>", "it is a web page"),
        (b"{\"error\":\"not found\"}", "does not begin with BEGIN:VCALENDAR"),
        (b"BEGIN:VCALENDAR\xff\xfe", "UTF-8"),
        (
            b"BEGIN:VCALENDAR\r\nEND:VEVENT\r\nEND:VCALENDAR",
            "END:VEVENT in its line 2 comes before the end of VCALENDAR",
        ),
        (format!("BEGIN:VCALENDAR\nBEGIN:{}\nEND:VCALENDAR", "X".repeat(5000)).as_bytes(), "before the end of XX"),
        (b"BEGIN:VCALENDAR\nEND:VCALENDAR\nnonsense\nEND:VCALENDAR", "no part of a calendar: nonsense"),
        (&whole.as_bytes()[..whole.len() - 20], "cut off"),
        (b"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\nEND:VCALENDAR", "cut off"),
        (&vec![b' '; MOST_BYTES + 1], "larger than"),
        (b"BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n", "no events, no VERSION and no PRODID"),
        (
            b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VFREEBUSY\r\nFREEBUSY:20260601T000000Z/P2D\r\nEND:VFREEBUSY\r\nEND:VCALENDAR",
            "VFREEBUSY and no events",
        ),
    ] {
        let refused = read(bytes).expect_err(words);
        assert!(refused.contains(words) && refused.len() < 200, "{refused}");
    }
}

/// A car without bookings.
#[test]
fn a_whole_calendar_without_events_has_none() {
    assert_eq!(read(b"BEGIN:VCALENDAR\r\nversion:2.0\r\nEND:VCALENDAR\r\n"), Ok(Vec::new()));
}

/// A calendar of years has such ones. The events around it hold.
#[test]
fn an_event_that_cannot_be_read_is_named_and_costs_only_itself() {
    let good = |uid: &str, day: u32| event(&format!("DTSTART;VALUE=DATE:202606{day:02}")).replace("a@example.com", uid);
    for (lines, why) in [
        ("DTSTART;VALUE=DATE:20150605\nDTEND;VALUE=DATE:20150601", "ends before it begins"),
        ("DTEND;VALUE=DATE:20260601", "has no DTSTART"),
        ("DTSTART;VALUE=DATE:nonsense", "has a DTSTART that cannot be read"),
        ("DTSTART:20150631", "has a DTSTART that cannot be read"),
        ("DTSTART:20260601T000000Z\nRRULE:FREQ=SECONDLY", "recurs more than once a day"),
        ("DTSTART:20260601T000000Z\nRRULE:nonsense", "has an RRULE that cannot be read"),
        ("DTSTART:20260601T000000Z\nRRULE:", "has an RRULE that cannot be read"),
        ("DTSTART:20260601T000000Z\nRRULE:FREQ=DAILY\nRRULE:FREQ=DAILY", "has more than one RRULE"),
        ("DTSTART:20260601T000000Z\nRRULE:FREQ=WEEKLY;BYDAY=2MO", "a number before a weekday"),
        ("DTSTART;VALUE=DATE:19000101\nRRULE:FREQ=DAILY;COUNT=30000", "has too many occurrences"),
        (
            "DTSTART;VALUE=DATE:00010101\nRRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=2",
            "takes more than 200000 steps",
        ),
    ] {
        let text = format!("BEGIN:VCALENDAR\n{}\n{}\n{}\nEND:VCALENDAR", good("b", 1), event(lines), good("c", 20));
        let read = read_calendar(text.as_bytes(), &reading()).unwrap();
        let found: Vec<&str> = read.events.iter().map(|event| event.uid.as_str()).collect();
        assert_eq!((&*found, &*read.left_out), (&["b", "c"][..], &["a@example.com".to_owned()][..]), "{lines}");
        let [problem] = &*read.problems else { panic!("{lines}: {:?}", read.problems) };
        // The summary is nobody's business.
        assert!(problem.starts_with("the event a@example.com in line 8 "), "{problem}");
        assert!(problem.contains(why) && problem.ends_with(", so it was left out"), "{problem}");
    }
    let two = format!("{}\n{}", event("DTSTART:1").replace("UID:a@example.com\n", ""), event("RRULE:"));
    let read = read_calendar(format!("BEGIN:VCALENDAR\n{two}\nEND:VCALENDAR").as_bytes(), &reading()).unwrap();
    let told =
        "In the calendar, the event in line 2 has a DTSTART that cannot be read, so it was left out. 1 more problem.";
    assert_eq!(read.told().as_deref(), Some(told));
    assert!(["a@example.com", "a@example.com#1780300800"].iter().all(|name| read.leaves_out(name)));
    assert!(!["a@example.com2", "a", ""].iter().any(|name| read.leaves_out(name)));
}

/// However long ago it began.
#[test]
fn a_rule_without_an_end_is_read_in_the_window_only() {
    let daily = days(&event("DTSTART;VALUE=DATE:19000101\nRRULE:FREQ=DAILY;INTERVAL=2"));
    assert_eq!((daily.len(), daily[0].as_str()), (365, "A 2026-05-02/2026-05-03"));
    // The one that begins before the window and reaches into it, and one that a change moved into it.
    let long = days(&event("DTSTART;VALUE=DATE:20000101\nDURATION:P40D\nRRULE:FREQ=YEARLY;BYMONTH=4"));
    assert_eq!(long, ["A 2026-04-01/2026-05-11", "A 2027-04-01/2027-05-11", "A 2028-04-01/2028-05-11"]);
    let moved = event("RECURRENCE-ID;RANGE=THISANDFUTURE;VALUE=DATE:20240101\nDTSTART;VALUE=DATE:20250701");
    let series = event("DTSTART;VALUE=DATE:20200101\nRRULE:FREQ=YEARLY");
    assert_eq!(days(&format!("{series}\n{moved}")), ["A 2026-07-02/2026-07-03", "A 2027-07-02/2027-07-03"]);
}

#[test]
fn a_rule_that_never_matches_ends() {
    for rule in [
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=31",
        "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=5;COUNT=9",
        "FREQ=YEARLY;BYWEEKNO=53;BYMONTH=6;COUNT=5",
        "FREQ=DAILY;COUNT=10;BYHOUR=0,1,2,3;BYMINUTE=0,1,2,3,4,5",
    ] {
        let text =
            format!("BEGIN:VCALENDAR\n{}\nEND:VCALENDAR", event(&format!("DTSTART:20260601T000000Z\nRRULE:{rule}")));
        assert!(read(text.as_bytes()).is_ok(), "{rule}");
    }
}

#[test]
fn a_calendar_with_too_many_events_is_refused() {
    let one = |number: usize| format!("BEGIN:VEVENT\nUID:{number}\nDTSTART;VALUE=DATE:20260601\nEND:VEVENT\n");
    let many: String = (0..=MOST_EVENTS).map(one).collect();
    let refused = read(format!("BEGIN:VCALENDAR\n{many}END:VCALENDAR").as_bytes());
    assert!(refused.is_err_and(|why| why.contains("more than 5000 events")));
}

#[test]
fn a_calendar_of_this_program_is_read_back_and_known() {
    use crate::calendars::{Entry, written};
    let changed_at = Timestamp::parse("2026-05-05T09:30:00Z").unwrap();
    let entry = Entry {
        name: "rental-1".into(),
        start: day("2026-06-01"),
        end: day("2026-06-05"),
        summary: "Booked",
        changed_at,
    };
    let found = read(written("Van, red; 🚐", &[entry]).as_bytes()).unwrap();
    assert_eq!(found[0].own_name(), Some("rental-1"));
    assert_eq!((found[0].start, found[0].end), (day("2026-06-01"), day("2026-06-05")));
}

proptest::proptest! {
    #[test]
    fn any_lines_are_read_or_refused(lines in "([A-Z;=-]{0,12}[:;][0-9A-Z=;,TZ-]{0,30}\n){0,8}") {
        let _ = read_calendar(format!("BEGIN:VCALENDAR\nBEGIN:VEVENT\n{lines}END:VEVENT\nEND:VCALENDAR").as_bytes(), &reading());
    }
}

/// An event of each calendar of a file, with one UID, and one whose UID is what the second of them would be named.
#[test]
fn an_event_whose_uid_is_the_name_of_another_one_keeps_its_days() {
    let nights = |uid: &str, from: u32| {
        let days = format!("DTSTART;VALUE=DATE:202606{from:02}\nDTEND;VALUE=DATE:202606{:02}", from + 1);
        event(&days).replace("a@example.com", uid)
    };
    let calendar = |events: &str| format!("BEGIN:VCALENDAR\n{events}\nEND:VCALENDAR\n");
    let names = |calendars: [String; 2]| -> Vec<(String, String)> {
        let events = read(calendars.concat().as_bytes()).unwrap();
        events.into_iter().map(|event| (event.start.to_string(), event.uid)).collect()
    };
    let taken = nights("x#2026-06-10/2026-06-11", 20);
    let found = names([calendar(&format!("{}\n{taken}", nights("x", 5))), calendar(&nights("x", 10))]);
    let days: Vec<&str> = found.iter().map(|(day, _)| day.as_str()).collect();
    assert_eq!(days, ["2026-06-05", "2026-06-10", "2026-06-20"], "{found:?}");
    // An occurrence, and an event whose UID is the name of that occurrence.
    let daily = event("DTSTART;VALUE=DATE:20260601\nDTEND;VALUE=DATE:20260602\nRRULE:FREQ=DAILY;COUNT=3");
    let occurrences = names([calendar(&daily), String::new()]);
    assert_eq!(occurrences.len(), 3);
    for (_, occurrence) in occurrences {
        let both = format!("{daily}\n{}", nights(&occurrence, 20));
        let found = names([calendar(&both), String::new()]);
        let days: Vec<&str> = found.iter().map(|(day, _)| day.as_str()).collect();
        assert_eq!(days, ["2026-06-01", "2026-06-02", "2026-06-03", "2026-06-20"], "{found:?}");
    }
}
