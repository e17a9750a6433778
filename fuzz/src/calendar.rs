//! Calendars of others: any bytes.

use rental_core::{
    calendars::{MOST_EVENTS, Reading, read_calendar},
    value::{Date, Zone},
};
use std::collections::HashSet;

/// The bytes are the calendar.
pub fn check(data: &[u8]) {
    let [first, last] = ["2026-11-01", "2028-11-01"].map(|day| Date::parse(day).expect("a date"));
    let reading = Reading { zone: Zone::parse("America/New_York").expect("a zone"), window: (first, last) };
    let calendar = match read_calendar(data, &reading) {
        Ok(calendar) => calendar,
        Err(why) => return assert!(!why.is_empty() && why.len() < 1_000, "{why}"),
    };
    let events = &calendar.events;
    assert!(events.len() <= MOST_EVENTS);
    assert!(calendar.problems.iter().all(|problem| problem.len() < 1_000), "{:?}", calendar.problems);
    let mut uids = HashSet::new();
    for event in events {
        assert!(uids.insert(&event.uid), "{} is there twice", event.uid);
        assert!(event.start <= event.end && event.end >= first && event.start < last, "{event:?}");
        assert!(event.uid.chars().count() <= 255 && event.summary.chars().count() <= 255, "{event:?}");
    }
    assert!(events.is_sorted_by_key(|event| event.start), "in the order of their first days");
    assert_eq!(read_calendar(data, &reading).as_ref(), Ok(&calendar), "the next reading");
}
