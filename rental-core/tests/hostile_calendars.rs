//! Calendars that are made to cost as much as possible: [`MOST_BYTES`] of one kind of line.

use rental_core::{
    calendars::{MOST_BYTES, MOST_EVENTS, Reading, read_calendar},
    value::{Date, Zone},
};
use std::time::{Duration, Instant};

/// Longest time for one.
const TIME: Duration = Duration::from_secs(5);

fn day(text: &str) -> Date {
    Date::parse(text).expect("a date")
}

fn event(lines: &str) -> String {
    format!("BEGIN:VEVENT\nUID:a@example.com\n{lines}\nEND:VEVENT")
}

/// A calendar that is as large as can be, out of these parts.
fn full(before: &str, part: impl Fn(usize) -> String, after: &str) -> String {
    let (mut text, mut number) = (format!("BEGIN:VCALENDAR\n{before}"), 0);
    let end = format!("{after}END:VCALENDAR\n");
    loop {
        let next = part(number);
        if text.len() + next.len() + end.len() > MOST_BYTES || next.contains("BEGIN:VEVENT") && number == MOST_EVENTS {
            return text + &end;
        }
        text += &next;
        number += 1;
    }
}

fn inputs() -> Vec<(&'static str, String)> {
    let one = |lines: &str| format!("{}\n", event(lines));
    let by = |name: &str, most: usize, more: &str| {
        let all: Vec<String> = (1..=most).map(|number| number.to_string()).collect();
        format!("FREQ=YEARLY;{name}={}{more}", all.join(","))
    };
    let within = |part: fn(usize) -> String, more: &str| {
        full(&format!("BEGIN:VEVENT\nUID:1\nDTSTART:20260601T000000Z\n{more}"), part, "\nEND:VEVENT\n")
    };
    let zones = |number: usize| format!("BEGIN:VTIMEZONE\nTZID:{number}\nEND:VTIMEZONE\n");
    let events = |rule: &str, first: &str| {
        full("", |number| one(&format!("DTSTART:{first}\nRRULE:{rule}")).replace("a@", &format!("{number}@")), "")
    };
    let many: String = (0..4000)
        .map(|number| format!("BEGIN:VEVENT\nUID:{number}\nDTSTART:20260601T080000Z\nRRULE:FREQ=WEEKLY\nEND:VEVENT\n"))
        .collect();
    vec![
        ("zones and events", full(&many, zones, "")),
        ("components", full("", |_| "BEGIN:X\nEND:X\n".into(), "")),
        ("components in components", full("", |_| "BEGIN:X\n".into(), "")),
        ("lines", within(|_| "A:\n".into(), "")),
        ("lines that count", within(|_| "UID:\n".into(), "")),
        ("parameters", within(|_| ";X=1".into(), "DTEND")),
        ("dates", within(|_| "20260601,".into(), "EXDATE:")),
        (
            "other dates",
            within(
                |number| {
                    format!("202601{:02}T{:02}{:02}{:02}Z,", number % 28 + 1, number % 24, number % 59, number % 60)
                },
                "RDATE:",
            ),
        ),
        ("days of a rule", within(|_| "MO,".into(), "RRULE:FREQ=YEARLY;BYDAY=")),
        ("folds", within(|_| "\n ".into(), "DESCRIPTION:")),
        ("folds that count", within(|_| "\n a".into(), "SUMMARY:")),
        ("quotes", within(|_| "\"".into(), "SUMMARY;X=")),
        ("values", within(|_| ",".into(), "CATEGORIES:")),
        ("commas", within(|_| ",".into(), "RDATE:")),
        ("rules", events("FREQ=DAILY", "20080101T080000Z")),
        ("rules that never match", events("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "20260601T080000Z")),
        ("days that never match", events("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=31;COUNT=2", "20260601T080000Z")),
        ("weeks that never match", events("FREQ=YEARLY;BYWEEKNO=53;BYMONTH=6;COUNT=5", "20260601T080000Z")),
        (
            "rules with positions",
            events(
                "FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYHOUR=1,2,3,4,5,6,7,8;BYSETPOS=1,-1;COUNT=9000",
                "18000101T080000Z",
            ),
        ),
        (
            "rules for each second",
            events(
                "FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYHOUR=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23;BYMINUTE=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20;BYSECOND=0,1,2,3,4,5,6,7,8,9",
                "20260601T080000Z",
            ),
        ),
        ("days that never match, from the year 1", events("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", "00010101")),
        ("that are counted", events("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=9", "00010101")),
        ("that are counted twice", events("FREQ=DAILY;INTERVAL=11;BYMONTH=2;BYMONTHDAY=30;COUNT=9", "00010101")),
        ("weeks and positions", events(&by("BYWEEKNO", 53, ";BYDAY=MO,TU;BYSETPOS=-366;WKST=SU"), "00010101")),
        ("days of a year and positions", events(&by("BYYEARDAY", 366, ";BYDAY=MO,TU,WE;BYSETPOS=366"), "19000101")),
        (
            "transparent",
            full(
                "",
                |number| {
                    one("DTSTART:20080101T080000Z\nTRANSP:TRANSPARENT\nRRULE:FREQ=DAILY")
                        .replace("a@", &format!("{number}@"))
                },
                "",
            ),
        ),
        (
            "time zones with rules",
            full(
                &many,
                |number| {
                    format!(
                        "BEGIN:VTIMEZONE\nTZID:Z{number}\nBEGIN:STANDARD\nDTSTART:16010101T000000\nTZOFFSETFROM:+0100\nTZOFFSETTO:+0200\nRRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU\nEND:STANDARD\nEND:VTIMEZONE\n"
                    )
                },
                "",
            ),
        ),
        (
            "names of time zones",
            within(|number| format!("EXDATE;TZID={}{number}:20260601T000000\n", "a/".repeat(30)), ""),
        ),
        (
            "changes of all later ones",
            full(
                "",
                |number| {
                    let day = format!("20{:02}{:02}{:02}", number % 26, number % 12 + 1, number % 28 + 1);
                    let first = if number == 0 {
                        "RRULE:FREQ=DAILY".to_owned()
                    } else {
                        format!("RECURRENCE-ID;RANGE=THISANDFUTURE;VALUE=DATE:{day}")
                    };
                    one(&format!("{first}\nDTSTART;VALUE=DATE:{day}"))
                },
                "",
            ),
        ),
        ("long events", events("FREQ=DAILY\nDURATION:P4000000D", "00010101")),
        ("rules of one event", full("", |_| one("DTSTART:20080101T080000Z\nRRULE:FREQ=DAILY"), "")),
    ]
}

/// A debug build takes ten times as long as the server.
#[test]
fn no_calendar_takes_long() {
    for (name, text) in inputs() {
        assert!(text.len() <= MOST_BYTES, "{name}");
        let began = Instant::now();
        let window = (day("2026-05-01"), day("2028-05-01"));
        let read = read_calendar(text.as_bytes(), &Reading { zone: Zone::NEW_YORK, window });
        let took = began.elapsed();
        let shown = read.map(|read| (read.events.len(), read.problems.len(), read.told()));
        println!("{name}: {} ms, {} bytes: {shown:?}", took.as_millis(), text.len());
        assert!(took < TIME, "{name}: {took:?}");
    }
}
