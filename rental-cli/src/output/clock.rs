//! Times for people: in the time zone of this computer, and how long ago they are.

use chrono::{DateTime, Local, TimeZone as _};
use rental_core::value::Timestamp;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The present of a command.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    now: Timestamp,
}

impl Clock {
    pub(crate) fn at(now: Timestamp) -> Self {
        Self { now }
    }

    /// A time in a table: how long ago within a day, else the local date and time.
    pub(crate) fn short(&self, time: Timestamp) -> String {
        self.relative(time, DAY).unwrap_or_else(|| match local(time) {
            Some(local) => local.format("%Y-%m-%d %H:%M").to_string(),
            None => time.to_string(),
        })
    }

    /// A time of one object: the local date and time with its offset, and how long ago within a month.
    pub(crate) fn long(&self, time: Timestamp) -> String {
        let shown =
            local(time).map_or_else(|| time.to_string(), |local| local.format("%Y-%m-%d %H:%M:%S %:z").to_string());
        match self.relative(time, 31 * DAY) {
            Some(relative) => format!("{shown} ({relative})"),
            None => shown,
        }
    }

    /// A moment of something that goes on: the local date and time, to the second.
    pub(crate) fn moment(time: Timestamp) -> String {
        local(time).map_or_else(|| time.to_string(), |local| local.format("%Y-%m-%d %H:%M:%S").to_string())
    }

    fn relative(&self, time: Timestamp, most: u64) -> Option<String> {
        let seconds = self.now.seconds().abs_diff(time.seconds());
        let text = match seconds {
            _ if seconds >= most => return None,
            0..MINUTE => return Some("now".into()),
            MINUTE..HOUR => format!("{} min", seconds / MINUTE),
            HOUR..DAY => format!("{} h", seconds / HOUR),
            _ => format!("{} d", seconds / DAY),
        };
        Some(if time.seconds() > self.now.seconds() { format!("in {text}") } else { format!("{text} ago") })
    }
}

fn local(time: Timestamp) -> Option<DateTime<Local>> {
    Local.timestamp_millis_opt(i64::try_from(time.millis()).ok()?).single()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_times_are_relative_and_others_dates() {
        let now = Timestamp::parse("2026-06-10T12:00:00.000Z").unwrap();
        let clock = Clock::at(now);
        let at = |seconds: i64| now.plus_millis(seconds * 1000);
        for (seconds, short) in
            [(0, "now"), (-59, "now"), (-60, "1 min ago"), (-7200, "2 h ago"), (90, "in 1 min"), (86_399, "in 23 h")]
        {
            assert_eq!(clock.short(at(seconds)), short, "{seconds}");
        }
        let days_ago = clock.short(at(-2 * 86_400));
        assert!(days_ago.starts_with("2026-06-0") && days_ago.len() == "2026-06-08 12:00".len(), "{days_ago}");
        assert!(clock.long(at(-2 * 86_400)).ends_with(" (2 d ago)"));
        assert!(!clock.long(at(-40 * 86_400)).contains("ago"));
    }
}
