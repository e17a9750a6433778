//! How a calendar is read, and what its errors are made of.

use crate::value::{Date, Zone};

/// Most events of a calendar, and most of them after recurrences are expanded, in the window.
pub const MOST_EVENTS: usize = 5000;
/// Why reading ends when there is no time left.
pub(super) const TOO_LONG: &str = "reading it takes too long";
/// How a calendar is read.
pub struct Reading<'a> {
    /// The zone of times without one, in which days begin and end.
    pub zone: Zone,
    /// The first day of the window, and the day after its last one. Events outside are left out.
    pub window: (Date, Date),
    /// Whether there is still time. It is asked before each event, and before its occurrences are expanded.
    pub goes_on: &'a dyn Fn() -> bool,
}

/// How errors name an event.
pub(super) fn named(uid: &str) -> String {
    if uid.is_empty() { "an event without UID".to_owned() } else { format!("the event {}", short(uid, 60)) }
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
