//! Reads calendars of others (RFC 5545): text becomes the days that their events take. `calcard` parses the text.
//!
//! An event that cannot be read is left out and named, and the others are taken. A calendar that is cut off, broken, or takes too
//! much work is refused whole.

mod lines;
mod reading;
mod rules;
mod series;
mod times;
mod zones;

pub use reading::{ExternalCalendar, ExternalEvent, MOST_EVENTS, Reading};

use calcard::{
    Entry as Parsed, Parser,
    icalendar::{
        ICalendar, ICalendarComponentType as Component, ICalendarMethod, ICalendarProperty as Property, ICalendarValue,
    },
};
use reading::{Broken, Steps, name_of, named, short};
use series::{Event, Occurrence};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};
use times::Zones;

/// Most bytes of a calendar.
pub const MOST_BYTES: usize = 2 << 20;
/// Most characters of a summary that are kept.
const LONGEST_SUMMARY: usize = 120;

/// Reads a calendar.
///
/// # Errors
/// A sentence for people that says why it cannot be read.
pub fn read_calendar(bytes: &[u8], reading: &Reading) -> Result<ExternalCalendar, String> {
    if bytes.len() > MOST_BYTES {
        return Err(format!("it is larger than {MOST_BYTES} bytes"));
    }
    let text = text_of(bytes).ok_or("it is not text in UTF-8")?;
    let whole = checked(&text)?;
    let reduced = lines::reduced(whole)?;
    check_not_silent(whole)?;
    let (mut parser, mut lines) = (Parser::new(&reduced.text), reduced.events.iter().copied());
    let mut found = Found::of(reading);
    loop {
        match parser.entry() {
            Parsed::ICalendar(calendar) => found.add_calendar(&calendar, &mut lines)?,
            Parsed::Eof => break,
            _ => return Err("it cannot be parsed: it is broken".into()),
        }
    }
    let mut events: Vec<ExternalEvent> = found.events.into_values().collect();
    events.sort_by(|one, other| (one.start, &one.uid).cmp(&(other.start, &other.uid)));
    Ok(ExternalCalendar { events, left_out: found.left_out.into_iter().collect(), problems: found.problems })
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

/// What was found so far.
struct Found<'r> {
    reading: &'r Reading,
    steps: Steps,
    events: BTreeMap<String, ExternalEvent>,
    left_out: BTreeSet<String>,
    problems: Vec<String>,
}

impl<'r> Found<'r> {
    fn of(reading: &'r Reading) -> Self {
        let (steps, events) = (Steps::default(), BTreeMap::new());
        Self { reading, steps, events, left_out: BTreeSet::new(), problems: Vec::new() }
    }

    /// Adds the events of one calendar, which begin in these lines.
    fn add_calendar(&mut self, calendar: &ICalendar, lines: &mut impl Iterator<Item = usize>) -> Result<(), String> {
        let steps = std::mem::take(&mut self.steps);
        let zones = Zones::of(calendar, self.reading, &steps)?;
        let cancels = calendar.components.iter().filter(|one| one.component_type == Component::VCalendar).any(|one| {
            let method = one.property(&Property::Method).and_then(|entry| entry.values.first());
            matches!(method, Some(ICalendarValue::Method(ICalendarMethod::Cancel)))
        });
        let events = calendar.components.iter().filter(|one| one.component_type == Component::VEvent);
        let mut groups: BTreeMap<&str, Vec<Event<'_>>> = BTreeMap::new();
        for (event, line) in events.zip(lines).filter(|_| !cancels) {
            let uid = event.uid().unwrap_or_default();
            match Event::of(event, line, &zones) {
                Ok(event) => groups.entry(uid).or_default().push(event),
                Err(why) => self.leave_out(uid, Broken { line, why }),
            }
        }
        for (uid, events) in groups {
            steps.check()?;
            match series::occurrences(&events, &zones) {
                Ok(all) => {
                    for one in all {
                        self.add(uid, &one, &zones)?;
                    }
                }
                Err(broken) => self.leave_out(uid, broken),
            }
        }
        steps.check()?;
        let unknown = |name: String| {
            format!("nobody knows the time zone {}: its times count in the organization's zone", short(&name, 60))
        };
        self.problems.extend(zones.unknown().map(unknown));
        self.steps = steps;
        Ok(())
    }

    fn leave_out(&mut self, uid: &str, broken: Broken) {
        self.problems.push(format!("{} {}, so it was left out", named(uid, broken.line), broken.why));
        if !uid.is_empty() {
            self.left_out.insert(name_of(uid));
        }
    }

    /// Adds an occurrence, if it is in the window.
    fn add(&mut self, uid: &str, one: &Occurrence<'_, '_>, zones: &Zones<'_>) -> Result<(), String> {
        let (Some(start), Some(end)) = (zones.day(one.start), zones.day(one.end)) else { return Ok(()) };
        let window = self.reading.window;
        // The parser can lose the zone of a damaged start, so that the end comes first: the day of the start is taken.
        let end = end.max(start);
        if end < window.0 || start >= window.1 || (end == window.0 && start < end) {
            return Ok(());
        }
        let mut name = if uid.is_empty() { format!("{start}/{end}") } else { name_of(uid) };
        if let Some(occurrence) = one.name {
            name = format!("{name}#{occurrence}");
        }
        // The longer name can be the UID of another event, too.
        while self.events.get(&name).is_some_and(|other| (other.start, other.end) != (start, end)) {
            name = format!("{name}#{start}/{end}");
        }
        let summary =
            one.event.component.property(&Property::Summary).and_then(|entry| entry.values.first()?.as_text());
        let summary = short(summary.unwrap_or_default(), LONGEST_SUMMARY);
        self.events.insert(name.clone(), ExternalEvent { uid: name, start, end, summary });
        if self.events.len() > MOST_EVENTS {
            return Err(format!("it has more than {MOST_EVENTS} events, recurrences included"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
