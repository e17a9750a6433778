//! Which nights each event of a calendar takes. Pure: no store.
//!
//! Two blocks cannot hold a vehicle on one night. So of the events of one calendar that overlap, the first one takes its nights,
//! and each other one takes those that are left. Together they hold every night of every event.

use crate::{
    calendars::ExternalEvent,
    schema::Hold,
    value::{Date, Holder},
};
use std::cmp::Reverse;

/// The nights that the block of an event takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share<'a> {
    /// The event.
    pub(super) event: &'a ExternalEvent,
    /// The first day.
    pub(super) start: Date,
    /// The day on which the vehicle is free again.
    pub(super) end: Date,
    /// What else holds the vehicle on one of the nights of the event: its block is stored as `conflict`.
    pub(super) clash: Option<Holder>,
}

/// Divides the nights of the events. The result depends on the events and not on their order. An event has no share when
/// others take all its nights.
///
/// `others` is what holds the vehicle beside the blocks of this calendar. A hold that ended by `today` clashes with nothing: the
/// event takes the nights after it. `taken` is the end of a block of this calendar that began before `today` and stays.
///
/// The events start in their order, so what is left of an event is one range of nights.
pub(super) fn divide<'a>(
    events: &[&'a ExternalEvent],
    others: &[Hold],
    taken: Option<Date>,
    today: Date,
) -> Vec<Share<'a>> {
    let today = today.day_number();
    let mut starts: Vec<(u32, u32, &ExternalEvent, Option<Holder>)> = Vec::with_capacity(events.len());
    for event in events {
        let (mut start, end) = nights(event);
        let near = || others.iter().filter(|hold| hold.overlaps(nights(event).0, end));
        let clash = near().find(|hold| hold.end > today).map(|hold| hold.holder);
        if clash.is_none() {
            start = near().map(|hold| hold.end).fold(start, u32::max);
        }
        starts.push((start, end, event, clash));
    }
    starts.sort_by(|one, other| (one.0, Reverse(one.1), &one.2.uid).cmp(&(other.0, Reverse(other.1), &other.2.uid)));
    let mut free_from = taken.map_or(0, Date::day_number);
    let mut shares = Vec::with_capacity(starts.len());
    for (start, end, event, clash) in starts {
        if clash.is_some() {
            shares.push(Share { event, start: event.start, end: event.end, clash });
        } else if end > free_from && end > start {
            let first = Date::from_day_number(start.max(free_from)).unwrap_or(event.start);
            shares.push(Share { event, start: first, end: event.end, clash });
            free_from = end;
        }
    }
    shares
}

/// The nights of an event: an event of one day has one night.
fn nights(event: &ExternalEvent) -> (u32, u32) {
    let start = event.start.day_number();
    (start, event.end.day_number().max(start + 1))
}
