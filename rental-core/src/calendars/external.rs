//! Reads calendars of others (RFC 5545): text becomes the days that their events take. `calcard` parses the text and expands
//! recurrences.
//!
//! A calendar is taken whole or not at all: when anything in it cannot be read, the error says what, and nothing follows.

mod lines;
mod reading;
mod rules;
mod series;
mod times;

pub use reading::{MOST_EVENTS, Reading};

use super::OWN_DOMAIN;
use crate::value::Date;
use calcard::{
    Entry as Parsed, Parser,
    icalendar::{
        ICalendar, ICalendarComponentType as Component, ICalendarMethod, ICalendarProperty as Property, ICalendarValue,
    },
};
use chrono::{NaiveDate, NaiveDateTime, NaiveTime};
use reading::short;
use series::{Event, Occurrence};
use sha2::{Digest, Sha256};
use std::{borrow::Cow, collections::BTreeMap};
use times::Zones;

/// Most bytes of a calendar.
pub const MOST_BYTES: usize = 2 << 20;
/// Most characters of a summary that are kept.
const LONGEST_SUMMARY: usize = 120;
/// Longest UID that is kept as it is. Of a longer one, and of one with control characters, a hash is kept.
const LONGEST_UID: usize = 150;

/// The days of an event.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ExternalEvent {
    /// Names the event, and the occurrence of one that recurs. The same at each reading.
    pub uid: String,
    /// The first day.
    pub start: Date,
    /// The day on which the vehicle is free again, on or after the first day.
    pub end: Date,
    /// What the event is called, shortened.
    pub summary: String,
}

impl ExternalEvent {
    /// What the event is named if a calendar of this program has it, such as `rental-ID`.
    #[must_use]
    pub fn own_name(&self) -> Option<&str> {
        self.uid.strip_suffix(OWN_DOMAIN)?.strip_suffix('@')
    }
}

/// Reads a calendar. The events are in the order of their first days, and no UID is there twice.
///
/// # Errors
/// A sentence for people that says why it cannot be read.
pub fn read_calendar(bytes: &[u8], reading: &Reading<'_>) -> Result<Vec<ExternalEvent>, String> {
    if bytes.len() > MOST_BYTES {
        return Err(format!("it is larger than {MOST_BYTES} bytes"));
    }
    let text = text_of(bytes).ok_or("it is not text in UTF-8")?;
    let whole = checked(&text)?;
    let text = lines::reduced(whole)?;
    check_not_silent(whole)?;
    let (mut parser, mut found) = (Parser::new(&text), BTreeMap::new());
    loop {
        match parser.entry() {
            Parsed::ICalendar(calendar) => of_calendar(&calendar, reading, &mut found)?,
            Parsed::Eof => break,
            _ => return Err("it cannot be parsed: it is broken".into()),
        }
    }
    let mut all: Vec<ExternalEvent> = found.into_values().collect();
    all.sort_by(|one, other| (one.start, &one.uid).cmp(&(other.start, &other.uid)));
    Ok(all)
}

/// The bytes as text. Programs that count bytes fold lines in the middle of a letter (RFC 5545, 3.1), so the folds are taken out
/// of what is no text as it is.
fn text_of(bytes: &[u8]) -> Option<Cow<'_, str>> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Some(text.into());
    }
    let (mut whole, mut rest) = (Vec::with_capacity(bytes.len()), bytes);
    while let Some((first, after)) = rest.split_first() {
        rest = match rest {
            [b'\r', b'\n', b' ' | b'\t', after @ ..] | [b'\n', b' ' | b'\t', after @ ..] => after,
            _ => {
                whole.push(*first);
                after
            }
        };
    }
    String::from_utf8(whole).ok().map(Cow::Owned)
}

/// The text of what looks like a whole calendar.
fn checked(text: &str) -> Result<&str, String> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let is = |line: Option<&str>, expected: &str| line.is_some_and(|line| line.trim().eq_ignore_ascii_case(expected));
    if text.is_empty() {
        return Err("it is empty".into());
    }
    if !is(text.lines().next(), "BEGIN:VCALENDAR") {
        let html = text.starts_with('<');
        let what = if html { "it is a web page" } else { "it does not begin with BEGIN:VCALENDAR" };
        return Err(format!("{what}, not a calendar: check the address"));
    }
    if !is(text.lines().last(), "END:VCALENDAR") {
        return Err("it does not end with END:VCALENDAR: it was cut off".into());
    }
    Ok(text)
}

/// Checks a calendar without events, after which every known one is gone: it must be one by RFC 5545, 3.6 (many lack one of the two), and
/// not state the times in another way.
fn check_not_silent(text: &str) -> Result<(), String> {
    let has = |start: &str| {
        text.lines().any(|line| line.get(..start.len()).is_some_and(|own| own.eq_ignore_ascii_case(start)))
    };
    if has("BEGIN:VEVENT") {
        return Ok(());
    }
    if has("BEGIN:VFREEBUSY") {
        return Err("it has VFREEBUSY and no events: give the address of a calendar with events (VEVENT)".into());
    }
    if !has("VERSION") && !has("PRODID") {
        return Err("it has no events, no VERSION and no PRODID: it is not a whole calendar".into());
    }
    Ok(())
}

/// Adds the events of one calendar.
fn of_calendar(
    calendar: &ICalendar,
    reading: &Reading<'_>,
    found: &mut BTreeMap<String, ExternalEvent>,
) -> Result<(), String> {
    let zones = Zones::of(calendar, reading)?;
    let cancels = calendar.components.iter().filter(|one| one.component_type == Component::VCalendar).any(|one| {
        let method = one.property(&Property::Method).and_then(|entry| entry.values.first());
        matches!(method, Some(ICalendarValue::Method(ICalendarMethod::Cancel)))
    });
    if cancels {
        return Ok(());
    }
    let mut groups: BTreeMap<&str, Vec<Event<'_>>> = BTreeMap::new();
    for event in calendar.components.iter().filter(|one| one.component_type == Component::VEvent) {
        zones.goes_on()?;
        groups.entry(event.uid().unwrap_or_default()).or_default().push(Event::of(event, &zones)?);
    }
    let end = after(reading.window.1);
    for (uid, events) in groups {
        for one in series::occurrences(&events, &zones, end)? {
            add(uid, &one, &zones, reading, found)?;
        }
    }
    Ok(())
}

/// The end of a day on the clocks of all zones.
fn after(day: Date) -> NaiveDateTime {
    let (year, month, day) = day.ymd();
    let date = NaiveDate::from_ymd_opt(year, month, day).and_then(|date| date.checked_add_days(chrono::Days::new(2)));
    date.unwrap_or(NaiveDate::MAX).and_time(NaiveTime::MIN)
}

/// Adds an occurrence, if it is in the window.
fn add(
    uid: &str,
    one: &Occurrence<'_, '_>,
    zones: &Zones<'_>,
    reading: &Reading<'_>,
    found: &mut BTreeMap<String, ExternalEvent>,
) -> Result<(), String> {
    let (Some(start), Some(end)) = (zones.day(one.start), zones.day(one.end)) else { return Ok(()) };
    // The parser can lose the zone of a damaged start, so that the end comes first: the day of the start is taken.
    let end = end.max(start);
    if end < reading.window.0 || start >= reading.window.1 || (end == reading.window.0 && start < end) {
        return Ok(());
    }
    let uid = if uid.is_empty() { format!("{start}/{end}") } else { uid.to_owned() };
    let is_kept_whole = uid.len() <= LONGEST_UID && !uid.chars().any(char::is_control);
    let mut name = if is_kept_whole { uid } else { hex::encode(Sha256::digest(uid.as_bytes())) };
    if let Some(occurrence) = one.name {
        name = format!("{name}#{occurrence}");
    }
    // The longer name can be the UID of another event, too.
    while found.get(&name).is_some_and(|other| (other.start, other.end) != (start, end)) {
        name = format!("{name}#{start}/{end}");
    }
    let summary = one.event.component.property(&Property::Summary).and_then(|entry| entry.values.first()?.as_text());
    let summary = short(summary.unwrap_or_default(), LONGEST_SUMMARY);
    found.insert(name.clone(), ExternalEvent { uid: name, start, end, summary });
    if found.len() > MOST_EVENTS {
        return Err(format!("it has more than {MOST_EVENTS} events, recurrences included"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
