//! Calendars of others: any bytes.

use rental_core::{
    calendars::{MOST_EVENTS, Reading, read_calendar},
    value::{Date, Zone},
};
use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

/// What a server gives a calendar, and more than that.
const MOST_TIME: Duration = Duration::from_secs(5);

/// The bytes are the calendar.
pub fn check(data: &[u8]) {
    let [first, last] = ["2026-11-01", "2028-11-01"].map(|day| Date::parse(day).expect("a date"));
    let began = Instant::now();
    let reading = Reading {
        zone: Zone::parse("America/New_York").expect("a zone"),
        window: (first, last),
        goes_on: &|| began.elapsed() < MOST_TIME,
    };
    let events = match read_calendar(data, &reading) {
        Ok(events) => events,
        Err(why) => return assert!(!why.is_empty() && why.len() < 1_000, "{why}"),
    };
    assert!(events.len() <= MOST_EVENTS);
    let mut uids = HashSet::new();
    for event in &events {
        assert!(uids.insert(&event.uid), "{} is there twice", event.uid);
        assert!(event.start <= event.end && event.end >= first && event.start < last, "{event:?}");
        assert!(event.uid.chars().count() <= 255 && event.summary.chars().count() <= 255, "{event:?}");
    }
    assert!(events.is_sorted_by_key(|event| event.start), "in the order of their first days");
    assert_eq!(read_calendar(data, &reading).as_ref(), Ok(&events), "the next reading");
}
