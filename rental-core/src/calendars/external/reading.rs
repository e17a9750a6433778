//! How a calendar is read, what is found, and what its errors are made of.

use crate::{
    calendars::OWN_DOMAIN,
    value::{Date, Zone},
};
use chrono::{Days, NaiveDate, NaiveDateTime, NaiveTime};
use sha2::{Digest, Sha256};
use std::cell::Cell;

/// Most events of a calendar, and most of them after recurrences are expanded, in the window.
pub const MOST_EVENTS: usize = 5000;
/// Longest UID that is kept as it is. Of a longer one, and of one with control characters, a hash is kept.
const LONGEST_UID: usize = 150;
/// Most steps that the rules of a calendar take, and that one rule takes. A step compares a day with one value of a rule.
const MOST_STEPS: u32 = 2_000_000;
pub(super) const MOST_STEPS_OF_ONE: u32 = 200_000;

/// How a calendar is read.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// The zone of times without one, in which days begin and end.
    pub zone: Zone,
    /// The first day of the window, and the day after its last one. Events outside are left out.
    pub window: (Date, Date),
}

impl Reading {
    /// Midnight of the first day, by the clock.
    pub(super) fn start(&self) -> NaiveDateTime {
        midnight(self.window.0)
    }

    /// The end of the window on the clocks of all zones.
    pub(super) fn end(&self) -> NaiveDateTime {
        midnight(self.window.1).checked_add_days(Days::new(2)).unwrap_or(NaiveDateTime::MAX)
    }
}

fn midnight(day: Date) -> NaiveDateTime {
    let (year, month, day) = day.ymd();
    NaiveDate::from_ymd_opt(year, month, day).unwrap_or(NaiveDate::MAX).and_time(NaiveTime::MIN)
}

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

/// What was read of a calendar.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ExternalCalendar {
    /// In the order of their first days; no UID is there twice.
    pub events: Vec<ExternalEvent>,
    /// The UIDs of the events that could not be read.
    pub left_out: Vec<String>,
    /// For people: each event that was left out and why, and each time zone that is not known.
    pub problems: Vec<String>,
}

impl ExternalCalendar {
    /// Whether an event that could not be read has this name. Its occurrences have names that follow from its own.
    #[must_use]
    pub fn leaves_out(&self, name: &str) -> bool {
        let of =
            |uid: &String| name.strip_prefix(uid.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('#'));
        self.left_out.iter().any(of)
    }

    /// The problems in one sentence or two. `None` if there are none.
    #[must_use]
    pub fn told(&self) -> Option<String> {
        let first = self.problems.first()?;
        let more = match self.problems.len() - 1 {
            0 => String::new(),
            1 => " 1 more problem.".to_owned(),
            more => format!(" {more} more problems."),
        };
        Some(format!("In the calendar, {first}.{more}"))
    }
}

/// Why an event cannot be read: what follows its name.
pub(super) struct Broken {
    /// The line in which it begins.
    pub(super) line: usize,
    pub(super) why: String,
}

/// The steps that a calendar has taken.
#[derive(Default)]
pub(super) struct Steps(Cell<u32>);

impl Steps {
    pub(super) fn take(&self, steps: usize) {
        self.0.set(self.0.get().saturating_add(u32::try_from(steps).unwrap_or(u32::MAX)));
    }

    /// Fails when the calendar has taken too many.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.0.get() <= MOST_STEPS {
            return Ok(());
        }
        Err(format!("its rules take more than {MOST_STEPS} steps: let it have fewer events that recur"))
    }
}

/// How errors name an event.
pub(super) fn named(uid: &str, line: usize) -> String {
    if uid.is_empty() {
        format!("the event in line {line}")
    } else {
        format!("the event {} in line {line}", short(uid, 60))
    }
}

/// How blocks name an event: by its UID, or by a hash of one that is too long or has control characters.
pub(super) fn name_of(uid: &str) -> String {
    let is_kept_whole = uid.len() <= LONGEST_UID && !uid.chars().any(char::is_control);
    if is_kept_whole { uid.to_owned() } else { hex::encode(Sha256::digest(uid.as_bytes())) }
}

/// A text of others, without control characters and with at most so many characters.
pub(super) fn short(text: &str, most: usize) -> String {
    let mut kept: String =
        text.trim().chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(most).collect();
    if text.trim().chars().nth(most).is_some() {
        kept.push('…');
    }
    kept
}
