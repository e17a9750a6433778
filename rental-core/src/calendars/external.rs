//! Reads calendars of others (RFC 5545): text becomes the days that their events take. `calcard` parses the text and expands
//! recurrences.
//!
//! A calendar is taken whole or not at all: when anything in it cannot be read, the error says what, and nothing follows.

use super::OWN_DOMAIN;
use crate::value::{Date, Timestamp, Zone};
use calcard::{
    Entry as Parsed, Parser,
    common::{PartialDateTime, timezone::Tz},
    icalendar::{
        ICalendar, ICalendarComponent, ICalendarComponentType as Component, ICalendarEntry, ICalendarFrequency,
        ICalendarMethod, ICalendarParameterName, ICalendarProperty as Property, ICalendarRecurrenceRule,
        ICalendarStatus, ICalendarTransparency, ICalendarValue, dates::TimeOrDelta,
    },
};
use chrono::{Datelike, Timelike};
use sha2::{Digest, Sha256};
use std::{
    borrow::Cow,
    cmp::Ordering,
    collections::{BTreeMap, HashSet},
    str::FromStr,
};

/// Most bytes of a calendar.
pub const MOST_BYTES: usize = 2 << 20;
/// Most events of a calendar, and most of them after recurrences are expanded, in the window.
pub const MOST_EVENTS: usize = 5000;
/// Most occurrences of one rule, from its beginning to the end of the window.
const MOST_OCCURRENCES: usize = 20_000;
const TOO_LONG: &str = "reading it takes too long";
/// Most characters of a summary that are kept.
const LONGEST_SUMMARY: usize = 120;
/// Longest UID that is kept as it is. Of a longer one a hash is kept.
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

/// How a calendar is read.
pub struct Reading<'a> {
    /// The zone of times without one, in which days begin and end.
    pub zone: Zone,
    /// The first day of the window, and the day after its last one. Events outside are left out.
    pub window: (Date, Date),
    /// Whether there is still time. It is asked after each event.
    pub goes_on: &'a dyn Fn() -> bool,
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
    let text = checked(&text)?;
    let tz = Tz::from_str(&reading.zone.to_string()).map_err(|()| "its time zone is not known".to_owned())?;
    let mut parser = Parser::new(text);
    let (mut found, mut events) = (BTreeMap::new(), 0);
    loop {
        match parser.entry() {
            Parsed::ICalendar(calendar) => {
                events += calendar.components.iter().filter(|one| one.component_type == Component::VEvent).count();
                if events > MOST_EVENTS {
                    return Err(format!("it has more than {MOST_EVENTS} events"));
                }
                of_calendar(&calendar, tz, reading, &mut found)?;
            }
            Parsed::Eof => break,
            Parsed::InvalidLine(line) if line.trim().is_empty() => {}
            Parsed::InvalidLine(line) => {
                return Err(format!("it has a line that is no part of a calendar: {}", short(&line, 60)));
            }
            _ => return Err("its BEGIN and END lines do not match: it is broken or cut off".into()),
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
    let lines = |wanted: &str| text.lines().filter(|line| line.trim_end().eq_ignore_ascii_case(wanted)).count();
    if lines("BEGIN:VEVENT") != lines("END:VEVENT") {
        return Err("an event in it does not end: it was cut off".into());
    }
    Ok(text)
}

/// Adds the events of one calendar.
fn of_calendar(
    calendar: &ICalendar,
    tz: Tz,
    reading: &Reading<'_>,
    found: &mut BTreeMap<String, ExternalEvent>,
) -> Result<(), String> {
    let zones: Vec<&ICalendarComponent> =
        calendar.components.iter().filter(|one| one.component_type == Component::VTimezone).collect();
    let cancels = calendar.components.iter().filter(|one| one.component_type == Component::VCalendar).any(|one| {
        let method = one.property(&Property::Method).and_then(|entry| entry.values.first());
        matches!(method, Some(ICalendarValue::Method(ICalendarMethod::Cancel)))
    });
    if cancels {
        return Ok(());
    }
    let mut groups: BTreeMap<&str, Vec<&ICalendarComponent>> = BTreeMap::new();
    for event in calendar.components.iter().filter(|one| one.component_type == Component::VEvent) {
        groups.entry(event.uid().unwrap_or_default()).or_default().push(event);
    }
    for (uid, group) in groups {
        let (changed, whole): (Vec<_>, Vec<_>) =
            newest(group).into_iter().partition(|one| one.has_property(&Property::RecurrenceId));
        let several = whole.len() > 1;
        // Occurrences that have an event of their own, or none.
        let mut replaced = HashSet::new();
        for event in &changed {
            if !(reading.goes_on)() {
                return Err(TOO_LONG.into());
            }
            let mut original = (*event).clone();
            let at = original.property(&Property::RecurrenceId).cloned();
            if at.iter().any(|at| at.params.iter().any(|one| one.name == ICalendarParameterName::Range)) {
                return Err(format!(
                    "{} changes all later occurrences too (RANGE=THISANDFUTURE), which is not read",
                    named(uid)
                ));
            }
            original.entries.retain(|entry| {
                !matches!(entry.name, Property::Dtstart | Property::Dtend | Property::Duration | Property::RecurrenceId)
            });
            original.entries.extend(at.map(|at| ICalendarEntry { name: Property::Dtstart, ..at }));
            replaced.extend(times(&original, &zones, (tz, reading), uid)?.into_iter().map(|(start, _)| start));
        }
        for (event, is_change) in
            whole.into_iter().map(|one| (one, false)).chain(changed.into_iter().map(|one| (one, true)))
        {
            if !(reading.goes_on)() {
                return Err(TOO_LONG.into());
            }
            if takes_nothing(event) {
                continue;
            }
            let recurs = is_change || several || event.is_recurrent();
            for (start, end) in times(event, &zones, (tz, reading), uid)? {
                if !is_change && replaced.contains(&start) {
                    continue;
                }
                add(event, (uid, recurs), (start, end), reading, found)?;
            }
        }
    }
    Ok(())
}

/// Of the events with one UID, and of those for one of its occurrences, the newest ones: with the highest `SEQUENCE`, then the
/// latest `DTSTAMP`. Several that are equally new are different events of a program that gives all of them one UID.
fn newest(group: Vec<&ICalendarComponent>) -> Vec<&ICalendarComponent> {
    let first =
        |event: &ICalendarComponent, name| event.property(&name).and_then(|entry| entry.values.first().cloned());
    let age = |event: &ICalendarComponent| {
        let sequence = first(event, Property::Sequence).and_then(|value| value.as_integer()).unwrap_or(0);
        let made = first(event, Property::Dtstamp).and_then(|value| value.as_partial_date_time()?.to_timestamp());
        (sequence, made)
    };
    let mut newest: BTreeMap<String, (_, Vec<&ICalendarComponent>)> = BTreeMap::new();
    for event in group {
        let occurrence = first(event, Property::RecurrenceId).map_or_else(String::new, |at| format!("{at:?}"));
        let age = age(event);
        let known = newest.entry(occurrence).or_insert_with(|| (age, Vec::new()));
        match age.cmp(&known.0) {
            Ordering::Greater => *known = (age, vec![event]),
            Ordering::Equal => known.1.push(event),
            Ordering::Less => {}
        }
    }
    newest.into_values().flat_map(|(_, events)| events).collect()
}

/// Whether an event was cancelled or takes no time.
fn takes_nothing(event: &ICalendarComponent) -> bool {
    event.status() == Some(&ICalendarStatus::Cancelled)
        || event.transparency() == Some(&ICalendarTransparency::Transparent)
}

type Moment = chrono::DateTime<Tz>;

/// Beginning and end of each occurrence of an event.
fn times(
    event: &ICalendarComponent,
    zones: &[&ICalendarComponent],
    (tz, reading): (Tz, &Reading<'_>),
    uid: &str,
) -> Result<Vec<(Moment, Moment)>, String> {
    let named = || named(uid);
    if event.entries.iter().filter(|entry| entry.name == Property::Rrule).count() > 1 {
        return Err(format!("{} has more than one RRULE", named()));
    }
    let rule = event.property(&Property::Rrule).and_then(|entry| entry.values.first());
    match rule {
        Some(ICalendarValue::RecurrenceRule(rule)) if rule.freq > ICalendarFrequency::Daily => {
            return Err(format!("{} recurs more than once a day", named()));
        }
        Some(ICalendarValue::RecurrenceRule(_)) | None => {}
        Some(_) => return Err(format!("{} has an RRULE that cannot be read", named())),
    }
    let components = zones.iter().map(|zone| (*zone).clone()).chain([event.clone()]).collect();
    let mut alone = ICalendar { components };
    let tz = if rule.is_some() { shift_rule(&mut alone, tz, reading.window.1) } else { tz };
    let expanded = alone.expand_dates(tz, MOST_OCCURRENCES);
    if !expanded.errors.is_empty() {
        return Err(format!("the days of {} cannot be read", named()));
    }
    if expanded.events.is_empty() && rule.is_none() {
        return Err(format!("{} has no days", named()));
    }
    if expanded.events.len() >= MOST_OCCURRENCES {
        return Err(format!("{} has too many occurrences, more than {MOST_OCCURRENCES}", named()));
    }
    let mut times = Vec::with_capacity(expanded.events.len());
    for one in expanded.events {
        let end = match one.end {
            TimeOrDelta::Time(end) => Some(end),
            TimeOrDelta::Delta(length) => one.start.checked_add_signed(length),
        };
        match end {
            Some(end) if end >= one.start => times.push((one.start, end)),
            _ => return Err(format!("{} ends before it begins", named())),
        }
    }
    Ok(times)
}

/// How errors name an event.
fn named(uid: &str) -> String {
    if uid.is_empty() { "an event without UID".to_owned() } else { format!("the event {}", short(uid, 60)) }
}

/// Prepares the rule of the only event of a calendar: `calcard` expands it in local time. So `UNTIL`, which is in UTC, becomes local
/// time too. A rule without an end, or with a later one, gets that of the window. Returns the zone of times without one, which is UTC if the event
/// begins at a time in UTC.
fn shift_rule(alone: &mut ICalendar, tz: Tz, end: Date) -> Tz {
    let Some(event) = alone.components.last() else { return tz };
    let start = event.property(&Property::Dtstart);
    let in_utc = |entry: &ICalendarEntry| {
        entry.values.first().and_then(ICalendarValue::as_partial_date_time).is_some_and(|time| time.tz_hour.is_some())
    };
    let default = if start.is_some_and(in_utc) { Tz::UTC } else { tz };
    let zone =
        alone.build_tz_resolver().with_default(default).resolve_or_default(start.and_then(ICalendarEntry::tz_id));
    let Some(event) = alone.components.last_mut() else { return default };
    let rule = event.property_mut(&Property::Rrule).and_then(|entry| entry.values.first_mut());
    if let Some(ICalendarValue::RecurrenceRule(rule)) = rule {
        set_until(rule, zone, end);
    }
    default
}

fn set_until(rule: &mut ICalendarRecurrenceRule, zone: Tz, end: Date) {
    let (year, month, day) = end.ymd();
    let last = (u16::try_from(year).ok(), u8::try_from(month).ok(), u8::try_from(day).ok());
    let is_later = |until: &PartialDateTime| (until.year, until.month, until.day) > last;
    if rule.count.is_none() && rule.until.as_ref().is_none_or(is_later) {
        rule.until = Some(PartialDateTime { year: last.0, month: last.1, day: last.2, ..PartialDateTime::default() });
    }
    if let Some(until) = rule.until.as_mut().filter(|until| until.tz_hour.is_some())
        && let Some(at) = until.to_date_time().and_then(|time| time.to_date_time_with_tz(Tz::UTC))
    {
        let local = at.with_timezone(&zone).naive_local();
        let part = |number: u32| u8::try_from(number).ok();
        *until = PartialDateTime {
            year: u16::try_from(local.year()).ok(),
            month: part(local.month()),
            day: part(local.day()),
            hour: part(local.hour()),
            minute: part(local.minute()),
            second: part(local.second()),
            tz_hour: None,
            tz_minute: None,
            tz_minus: false,
        };
    }
}

/// Adds an occurrence, if it is in the window.
fn add(
    event: &ICalendarComponent,
    (uid, recurs): (&str, bool),
    (start, end): (Moment, Moment),
    reading: &Reading<'_>,
    found: &mut BTreeMap<String, ExternalEvent>,
) -> Result<(), String> {
    let has_time = event
        .property(&Property::Dtstart)
        .and_then(|entry| entry.values.first())
        .is_some_and(|value| value.as_partial_date_time().is_some_and(|time| time.hour.is_some()));
    let day = |moment: &Moment| match has_time {
        true => Some(reading.zone.local(Timestamp::from_millis(moment.timestamp().checked_mul(1000)?)).date()),
        false => {
            let date = moment.naive_local().date();
            Date::from_ymd(date.year(), date.month(), date.day())
        }
    };
    let (Some(first), Some(last)) = (day(&start), day(&end)) else { return Ok(()) };
    if last < reading.window.0 || first >= reading.window.1 || (last == reading.window.0 && first < last) {
        return Ok(());
    }
    let uid = if uid.is_empty() { format!("{first}/{last}") } else { uid.to_owned() };
    let mut name = if uid.len() <= LONGEST_UID { uid } else { hex::encode(Sha256::digest(uid.as_bytes())) };
    if recurs {
        name = format!("{name}#{}", start.timestamp());
    }
    let summary = event.property(&Property::Summary).and_then(|entry| entry.values.first()?.as_text());
    let summary = short(summary.unwrap_or_default(), LONGEST_SUMMARY);
    found.insert(name.clone(), ExternalEvent { uid: name, start: first, end: last, summary });
    if found.len() > MOST_EVENTS {
        return Err(format!("it has more than {MOST_EVENTS} events, recurrences included"));
    }
    Ok(())
}

/// A text of others, without control characters and with at most so many characters.
fn short(text: &str, most: usize) -> String {
    let mut kept: String =
        text.trim().chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(most).collect();
    if text.trim().chars().nth(most).is_some() {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests;
