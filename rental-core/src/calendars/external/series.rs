//! The occurrences of the events with one UID: those of its rule, its dates and its changed occurrences.
//!
//! Where a calendar can be read in two ways, the vehicle is taken on the days of both. A vehicle that is wrongly free is worse.

use super::{
    reading::Broken,
    rules::{self, ClockRange, MOST_OCCURRENCES, Why},
    times::{Time, Zones},
    zones::{ClockZone, Moment},
};
use calcard::{
    common::PartialDateTime,
    icalendar::{
        ICalendarComponent, ICalendarDuration, ICalendarEntry, ICalendarParameterName, ICalendarPeriod,
        ICalendarProperty as Property, ICalendarRecurrenceRule as Rule, ICalendarStatus, ICalendarTransparency,
        ICalendarValue,
    },
};
use chrono::{Days, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Steps for each occurrence, which is compared with changes and exceptions.
const OCCURRENCE: usize = 20;

/// One component VEVENT.
pub(super) struct Event<'a> {
    pub(super) component: &'a ICalendarComponent,
    /// Where it begins.
    line: usize,
    start: Time,
    length: Length,
    rule: Option<&'a Rule>,
    dates: Vec<(Time, Option<Length>)>,
    except: Vec<Time>,
    replaces: Option<Replaced>,
    age: (i64, Option<i64>),
}

/// Which occurrence an event changes.
#[derive(Clone, Copy)]
struct Replaced {
    at: Time,
    /// Whether it changes the later ones too (`RANGE=THISANDFUTURE`).
    and_later: bool,
}

/// How long an event is.
#[derive(Clone, Copy)]
struct Length {
    delta: TimeDelta,
    /// Whether it is so long in seconds and not by the clock.
    exact: bool,
    /// The kind of time at which it ends.
    end: Time,
}

/// An occurrence of an event.
pub(super) struct Occurrence<'e, 'a> {
    pub(super) event: &'e Event<'a>,
    pub(super) start: Time,
    pub(super) end: Time,
    /// Names it among those with one UID, also after it was moved. `None` if there is only one.
    pub(super) name: Option<Moment>,
}

impl<'a> Event<'a> {
    /// Reads an event.
    ///
    /// # Errors
    /// What follows its name.
    pub(super) fn of(component: &'a ICalendarComponent, line: usize, zones: &Zones<'_>) -> Result<Self, Why> {
        let replaces = match component.property(&Property::RecurrenceId) {
            Some(entry) => Some(Replaced {
                at: zones.first(entry).ok_or_else(|| unreadable("a RECURRENCE-ID"))?,
                and_later: entry.params.iter().any(|one| one.name == ICalendarParameterName::Range),
            }),
            None => None,
        };
        let start = match (component.property(&Property::Dtstart), replaces) {
            (Some(entry), _) => zones.first(entry).ok_or_else(|| unreadable("a DTSTART"))?,
            (None, Some(replaced)) => replaced.at,
            (None, None) => return Err("has no DTSTART".into()),
        };
        if component.entries.iter().filter(|entry| entry.name == Property::Rrule).count() > 1 {
            return Err("has more than one RRULE".into());
        }
        let rule = match component.property(&Property::Rrule).map(|entry| entry.values.first()) {
            Some(Some(ICalendarValue::RecurrenceRule(rule))) => Some(&**rule),
            Some(_) => return Err(unreadable("an RRULE")),
            None => None,
        };
        let length = length_of(component, start, zones)?;
        let mut dates = Vec::new();
        let mut except = Vec::new();
        for entry in &component.entries {
            match entry.name {
                Property::Rdate => dates.extend(dates_of(entry, start, zones).ok_or_else(|| unreadable("an RDATE"))?),
                // What is no time excludes nothing.
                Property::Exdate => except.extend(zones.times(entry)),
                _ => {}
            }
        }
        let first = |name| component.property(&name).and_then(|entry| entry.values.first());
        let sequence = first(Property::Sequence).and_then(ICalendarValue::as_integer).unwrap_or(0);
        let made = first(Property::Dtstamp).and_then(|value| value.as_partial_date_time()?.to_timestamp());
        Ok(Self { component, line, start, length, rule, dates, except, replaces, age: (sequence, made) })
    }

    /// Whether it was cancelled or takes no time.
    fn takes_nothing(&self) -> bool {
        self.component.status() == Some(&ICalendarStatus::Cancelled)
            || self.component.transparency() == Some(&ICalendarTransparency::Transparent)
    }

    /// When its occurrences begin and end, without those that are excepted.
    fn occurrences(&self, range: ClockRange, zones: &Zones<'_>) -> Result<Vec<(Time, Time)>, Broken> {
        let starts = self.starts(range, zones).map_err(|why| self.broken(why))?;
        zones.steps.take((starts.len() + self.dates.len()) * OCCURRENCE);
        let of_rule = starts.into_iter().map(|wall| (self.start.with(wall), self.length));
        let dates = self.dates.iter().map(|(start, length)| (*start, length.unwrap_or(self.length)));
        let ends = of_rule.chain(dates).map(|(start, length)| Some((start, length.end(start, zones)?)));
        let mut all = ends
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| self.broken("has days in a year that is too late".into()))?;
        self.check_count(all.len())?;
        if !self.except.is_empty() {
            let slots = Slots::of(all.iter().map(|(start, _)| *start), zones);
            let gone: HashSet<Moment> = self.except.iter().flat_map(|at| slots.at(*at, zones)).collect();
            all.retain(|(start, _)| !gone.contains(&zones.instant(*start)));
        }
        Ok(all)
    }

    /// What the clock shows when the occurrences of its rule begin. The first one begins at its start, also when the rule says
    /// something else.
    fn starts(&self, range: ClockRange, zones: &Zones<'_>) -> Result<Vec<NaiveDateTime>, Why> {
        let (Some(rule), start) = (self.rule, self.start.wall) else { return Ok(vec![self.start.wall]) };
        let until = match &rule.until {
            Some(until) => until_of(until, self.start, zones)
                .ok_or("has an RRULE that cannot be read: its UNTIL is no time")?
                .min(range.to),
            None => range.to,
        };
        let mut found = rules::starts(rule, start, ClockRange { to: until, ..range }, zones.steps)?;
        if found.first() != Some(&start) {
            found.insert(0, start);
        }
        Ok(found)
    }

    fn check_count(&self, occurrences: usize) -> Result<(), Broken> {
        if occurrences > MOST_OCCURRENCES { Err(self.broken(rules::too_many())) } else { Ok(()) }
    }

    fn broken(&self, why: Why) -> Broken {
        Broken { line: self.line, why }
    }
}

fn unreadable(what: &str) -> Why {
    format!("has {what} that cannot be read")
}

/// The last time at which an occurrence can begin. The longer reading counts where there are two: a day ends at its end, and a time
/// in UTC where a day belongs can mean that day, or the one of the organization.
fn until_of(until: &PartialDateTime, start: Time, zones: &Zones<'_>) -> Option<NaiveDateTime> {
    let until = zones.time(until, None)?;
    if !until.has_time {
        return until.wall.date().and_hms_opt(23, 59, 59);
    }
    if !start.has_time {
        return zones.days(until).into_iter().max().map(|day| day.and_time(NaiveTime::MIN));
    }
    match until.zone {
        Some(_) => zones.wall_in(zones.instant(until), start.zone.unwrap_or(zones.default)),
        None => Some(until.wall),
    }
}

fn length_of(component: &ICalendarComponent, start: Time, zones: &Zones<'_>) -> Result<Length, Why> {
    let length = if let Some(entry) = component.property(&Property::Dtend) {
        between(start, zones.first(entry).ok_or_else(|| unreadable("a DTEND"))?, zones)
    } else if let Some(entry) = component.property(&Property::Duration) {
        match entry.values.first() {
            Some(ICalendarValue::Duration(duration)) => lasting(duration, start),
            _ => None,
        }
        .ok_or_else(|| unreadable("a DURATION"))?
    } else if start.has_time {
        Length { delta: TimeDelta::zero(), exact: true, end: start }
    } else {
        Length { delta: TimeDelta::days(1), exact: false, end: start }
    };
    if length.delta < TimeDelta::zero() { Err("ends before it begins".into()) } else { Ok(length) }
}

fn between(start: Time, end: Time, zones: &Zones<'_>) -> Length {
    let exact = start.has_time && end.has_time;
    let delta = if exact {
        TimeDelta::seconds(zones.instant(end).saturating_sub(zones.instant(start)))
    } else {
        end.wall - start.wall.date().and_time(NaiveTime::MIN)
    };
    Length { delta, exact, end }
}

/// Days are counted by the clock, and hours in seconds (RFC 5545, 3.3.6).
fn lasting(duration: &ICalendarDuration, start: Time) -> Option<Length> {
    let is_days = duration.hours == 0 && duration.minutes == 0 && duration.seconds == 0;
    Some(Length { delta: duration.to_time_delta()?, exact: start.has_time && !is_days, end: start })
}

impl Length {
    /// The end of an occurrence. `None` for a year that no date has.
    fn end(&self, start: Time, zones: &Zones<'_>) -> Option<Time> {
        if self.exact {
            return Zones::utc(zones.instant(start).checked_add(self.delta.num_seconds())?);
        }
        let wall =
            if start.has_time == self.end.has_time { start.wall } else { start.wall.date().and_time(NaiveTime::MIN) };
        Some(self.end.with(wall.checked_add_signed(self.delta)?))
    }
}

/// The times of an RDATE, with the lengths of its periods. `None` if it cannot be read.
fn dates_of(entry: &ICalendarEntry, event: Time, zones: &Zones<'_>) -> Option<Vec<(Time, Option<Length>)>> {
    let in_zone = |mut time: Time| {
        time.zone = time.zone.or(if time.has_time { event.zone } else { None });
        time
    };
    let one = |value: &ICalendarValue| match value {
        ICalendarValue::PartialDateTime(time) => Some((in_zone(zones.time(time, entry.tz_id())?), None)),
        ICalendarValue::Period(ICalendarPeriod::Range { start, end }) => {
            let start = in_zone(zones.time(start, entry.tz_id())?);
            let length = between(start, in_zone(zones.time(end, entry.tz_id())?), zones);
            (length.delta >= TimeDelta::zero()).then_some((start, Some(length)))
        }
        ICalendarValue::Period(ICalendarPeriod::Duration { start, duration }) => {
            let start = in_zone(zones.time(start, entry.tz_id())?);
            let length = lasting(duration, start).filter(|length| length.delta >= TimeDelta::zero())?;
            Some((start, Some(length)))
        }
        _ => None,
    };
    entry.values.iter().filter(|value| value.as_text() != Some("")).map(one).collect()
}

/// Finds the occurrences that a RECURRENCE-ID or an EXDATE names.
#[derive(Default)]
struct Slots {
    starts: HashMap<Moment, Time>,
    /// Those of `starts` that are times.
    times: HashSet<Moment>,
    zones: Vec<Option<ClockZone>>,
    /// The occurrences at times, and the whole days, by what the clock of the event shows.
    days_of_times: HashMap<NaiveDate, Vec<Moment>>,
    days: HashMap<NaiveDate, Vec<Moment>>,
}

impl Slots {
    fn of(starts: impl Iterator<Item = Time>, zones: &Zones<'_>) -> Self {
        let mut slots = Self::default();
        for start in starts {
            let at = zones.instant(start);
            let by_day = if start.has_time { &mut slots.days_of_times } else { &mut slots.days };
            by_day.entry(start.wall.date()).or_default().push(at);
            slots.starts.entry(at).or_insert(start);
            if start.has_time {
                slots.times.insert(at);
                if !slots.zones.contains(&start.zone) && slots.zones.len() < 8 {
                    slots.zones.push(start.zone);
                }
            }
        }
        slots
    }

    /// The occurrences that begin then. A day names those at a time of that day, and a time an all-day one of its day: calendar
    /// programs do so, although RFC 5545 (3.8.4.4) wants the type of DTSTART.
    fn at(&self, named: Time, zones: &Zones<'_>) -> Vec<Moment> {
        if !named.has_time {
            let day = named.wall.date();
            return self.days.get(&day).or_else(|| self.days_of_times.get(&day)).cloned().unwrap_or_default();
        }
        // A time without a zone is one of the series.
        let in_zones = self.zones.iter().filter(|_| named.zone.is_none()).map(|zone| Time { zone: *zone, ..named });
        let exact = in_zones.chain([named]).map(|time| zones.instant(time)).find(|at| self.times.contains(at));
        if let Some(exact) = exact {
            return vec![exact];
        }
        zones.days(named).iter().find_map(|day| self.days.get(day)).cloned().unwrap_or_default()
    }
}

/// Of events, the newest ones: with the highest `SEQUENCE`, then the latest `DTSTAMP`. Several that are equally new are different
/// events of a program that gives all of them one UID.
fn newest<'e, 'a>(events: Vec<&'e Event<'a>>) -> Vec<&'e Event<'a>> {
    let newest = events.iter().map(|event| event.age).max();
    events.into_iter().filter(|event| Some(event.age) == newest).collect()
}

/// The change of an occurrence and of all later ones.
struct Later<'e, 'a> {
    /// Names that occurrence.
    from: Moment,
    /// When it began, as the calendar has it.
    at: Time,
    event: &'e Event<'a>,
}

impl<'e, 'a> Later<'e, 'a> {
    /// What becomes of a later occurrence: it is as much earlier or later, by the clock, as the one that is named. `None` for a
    /// year that no date has.
    fn of(&self, start: Time, zones: &Zones<'_>) -> Option<Occurrence<'e, 'a>> {
        let at = match (self.at.has_time, start.has_time) {
            (true, true) => Time { zone: self.at.zone.or(start.zone), ..self.at },
            (false, true) => start.with(self.at.wall.date().and_time(start.wall.time())),
            (_, false) => start.with(self.at.wall.date().and_time(NaiveTime::MIN)),
        };
        let becomes = self.event.start;
        let shift = becomes.wall - zones.wall_as(at, becomes);
        let moved = becomes.with(zones.wall_as(start, becomes).checked_add_signed(shift)?);
        let end = self.event.length.end(moved, zones)?;
        Some(Occurrence { event: self.event, start: moved, end, name: Some(zones.instant(start)) })
    }
}

/// The occurrences of the events with one UID that take time.
///
/// # Errors
/// Which of them cannot be read, and why.
pub(super) fn occurrences<'e, 'a>(
    events: &'e [Event<'a>],
    zones: &Zones<'_>,
) -> Result<Vec<Occurrence<'e, 'a>>, Broken> {
    let (changed, whole): (Vec<_>, Vec<_>) = events.iter().partition(|event| event.replaces.is_some());
    let whole = newest(whole);
    let recurs = |event: &&Event<'_>| event.rule.is_some() || !event.dates.is_empty();
    let has_names = whole.len() > 1 || !changed.is_empty() || whole.iter().any(recurs);
    let range = range_of(events, zones);
    let mut series = Vec::new();
    for event in &whole {
        series.extend(event.occurrences(range, zones)?.into_iter().map(|(start, end)| (*event, start, end)));
        event.check_count(series.len())?;
    }
    let slots = Slots::of(series.iter().map(|(_, start, _)| *start), zones);
    let (replaced, later, mut all) = changes(&changed, &slots, zones, range)?;
    for (event, start, end) in series {
        let name = zones.instant(start);
        if replaced.contains(&name) {
            continue;
        }
        let last = later.partition_point(|one| one.from <= name).checked_sub(1).and_then(|last| later.get(last));
        let Some(last) = last else {
            all.push(Occurrence { event, start, end, name: Some(name) });
            continue;
        };
        for one in later.iter().filter(|one| one.from == last.from) {
            all.push(one.of(start, zones).unwrap_or(Occurrence { event, start, end, name: Some(name) }));
        }
        event.check_count(all.len())?;
    }
    all.retain(|one| !one.event.takes_nothing());
    if !has_names {
        all.iter_mut().for_each(|one| one.name = None);
    }
    Ok(all)
}

/// When the occurrences begin that can be in the window.
fn range_of(events: &[Event<'_>], zones: &Zones<'_>) -> ClockRange {
    let longest = events.iter().map(|event| event.length.delta).max().unwrap_or_default();
    // By how much a change moves an occurrence, and perhaps all later ones.
    let shifts = || events.iter().filter_map(|event| Some(event.start.wall - event.replaces?.at.wall));
    let ahead = shifts().max().unwrap_or_default().max(TimeDelta::zero());
    let back = shifts().min().unwrap_or_default().clamp(TimeDelta::days(-366), TimeDelta::zero());
    let (first, end) = (zones.reading.start(), zones.reading.end());
    let from = longest.checked_add(&ahead).and_then(|before| first.checked_sub_signed(before));
    ClockRange {
        // The clocks of all zones, and days that are counted by the clock.
        from: from.and_then(|from| from.checked_sub_days(Days::new(3))).unwrap_or(NaiveDateTime::MIN),
        to: end.checked_sub_signed(back).unwrap_or(end),
    }
}

type Changes<'e, 'a> = (HashSet<Moment>, Vec<Later<'e, 'a>>, Vec<Occurrence<'e, 'a>>);

/// The occurrences that have an event of their own, the changes of all later ones in their order, and the occurrences of both.
fn changes<'e, 'a>(
    changed: &[&'e Event<'a>],
    slots: &Slots,
    zones: &Zones<'_>,
    range: ClockRange,
) -> Result<Changes<'e, 'a>, Broken> {
    // What a change names, and the changes that name it.
    type Named<'e, 'a> = (Vec<Moment>, Vec<&'e Event<'a>>);
    let mut by_name: BTreeMap<(Moment, bool), Named<'_, '_>> = BTreeMap::new();
    for event in changed {
        let Some(of) = event.replaces else { continue };
        let found = slots.at(of.at, zones);
        let name = found.first().copied().unwrap_or_else(|| zones.instant(of.at));
        by_name.entry((name, of.and_later)).or_insert_with(|| (found, Vec::new())).1.push(event);
    }
    let (mut replaced, mut later, mut all) = (HashSet::new(), Vec::new(), Vec::new());
    for ((name, and_later), (found, events)) in by_name {
        replaced.extend(found);
        for event in newest(events) {
            for (start, end) in event.occurrences(range, zones)? {
                all.push(Occurrence { event, start, end, name: Some(name) });
            }
            event.check_count(all.len())?;
            if let Some(of) = event.replaces.filter(|_| and_later) {
                let at = slots.starts.get(&name).copied().unwrap_or(of.at);
                later.push(Later { from: name, at, event });
            }
        }
    }
    Ok((replaced, later, all))
}
