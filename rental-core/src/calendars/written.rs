//! A calendar as text (RFC 5545). It has whole days only, so it needs no time zone.

use crate::value::{Date, Timestamp};
use std::fmt::Write as _;

/// Names this program in the calendars that it writes (RFC 5545, 3.7.3).
const PRODUCT: &str = "-//rental-platform//Vehicle calendar//EN";
/// The end of the UIDs of entries. No host has this name (RFC 6761).
pub const OWN_DOMAIN: &str = "rental-platform.invalid";
/// Most bytes of a line without its end (RFC 5545, 3.1).
const LONGEST_LINE: usize = 75;

/// Days on which a vehicle is not for rent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// What the UID names, such as `rental-ID`. It stays when the days change.
    pub name: String,
    /// The first day.
    pub start: Date,
    /// The day after the last one.
    pub end: Date,
    /// What calendars show.
    pub summary: &'static str,
    /// When it was last changed.
    pub changed_at: Timestamp,
}

/// Writes the calendar with this title and these entries. The same entries always become the same bytes.
#[must_use]
pub fn written(title: &str, entries: &[Entry]) -> String {
    let mut text = String::with_capacity(300 + 330 * entries.len());
    for fixed in ["BEGIN:VCALENDAR", "VERSION:2.0"] {
        line(&mut text, fixed);
    }
    line(&mut text, &format!("PRODID:{PRODUCT}"));
    line(&mut text, "CALSCALE:GREGORIAN");
    let title = escaped(title);
    // RFC 7986, 5.1 and 5.7, and what older programs read instead.
    for name in ["NAME", "X-WR-CALNAME"] {
        line(&mut text, &format!("{name}:{title}"));
    }
    line(&mut text, "REFRESH-INTERVAL;VALUE=DURATION:PT15M");
    line(&mut text, "X-PUBLISHED-TTL:PT15M");
    for entry in entries {
        event(&mut text, entry);
    }
    line(&mut text, "END:VCALENDAR");
    text
}

fn event(text: &mut String, Entry { name, start, end, summary, changed_at }: &Entry) {
    let day = |date: &Date| date.to_string().replace('-', "");
    let changed = utc(*changed_at);
    line(text, "BEGIN:VEVENT");
    line(text, &format!("UID:{name}@{OWN_DOMAIN}"));
    // Without METHOD it says when the entry was last changed (RFC 5545, 3.8.7.2).
    line(text, &format!("DTSTAMP:{changed}"));
    line(text, &format!("LAST-MODIFIED:{changed}"));
    line(text, &format!("DTSTART;VALUE=DATE:{}", day(start)));
    line(text, &format!("DTEND;VALUE=DATE:{}", day(end)));
    line(text, &format!("SUMMARY:{summary}"));
    line(text, "STATUS:CONFIRMED");
    line(text, "TRANSP:OPAQUE");
    line(text, "END:VEVENT");
}

/// `2026-05-05T09:30:00.123Z` as `20260505T093000Z`.
fn utc(at: Timestamp) -> String {
    let text = at.to_string();
    let seconds = text.split('.').next().unwrap_or_default();
    seconds.chars().filter(|letter| !matches!(letter, '-' | ':')).chain("Z".chars()).collect()
}

/// A value of the type TEXT (RFC 5545, 3.3.11).
fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for letter in value.chars() {
        match letter {
            '\\' | ';' | ',' => escaped.extend(['\\', letter]),
            '\n' => escaped.push_str("\\n"),
            letter if letter.is_control() => {}
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Adds a line, folded into parts of at most [`LONGEST_LINE`] bytes between two characters.
fn line(text: &mut String, line: &str) {
    let mut used = 0;
    for letter in line.chars() {
        if used + letter.len_utf8() > LONGEST_LINE {
            text.push_str("\r\n ");
            used = 1;
        }
        text.push(letter);
        used += letter.len_utf8();
    }
    let _ = write!(text, "\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry() -> Entry {
        let day = |text| Date::parse(text).unwrap();
        let changed_at = Timestamp::parse("2026-05-05T09:30:00.123Z").unwrap();
        let name = "rental-0190d0f2-7c3a-7cc0-8000-000000000003".into();
        Entry { name, start: day("2026-06-01"), end: day("2026-06-05"), summary: "Booked", changed_at }
    }

    #[test]
    fn an_entry_has_an_exclusive_end_and_a_uid_that_stays() {
        let text = written("White Tesla", &[entry()]);
        let expected = "BEGIN:VEVENT\r\nUID:rental-0190d0f2-7c3a-7cc0-8000-000000000003@rental-platform.invalid\r\n\
            DTSTAMP:20260505T093000Z\r\nLAST-MODIFIED:20260505T093000Z\r\nDTSTART;VALUE=DATE:20260601\r\n\
            DTEND;VALUE=DATE:20260605\r\nSUMMARY:Booked\r\nSTATUS:CONFIRMED\r\nTRANSP:OPAQUE\r\nEND:VEVENT\r\n\
            END:VCALENDAR\r\n";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn a_title_is_escaped() {
        let text = written("Van, red; \\ \"big\"\nnew\u{7}", &[]);
        assert!(text.contains("\r\nNAME:Van\\, red\\; \\\\ \"big\"\\nnew\r\n"), "{text}");
    }

    proptest! {
        #[test]
        fn no_line_is_longer_than_75_bytes_and_none_is_lost(title in "\\PC{0,300}") {
            let text = written(&title, &[entry()]);
            prop_assert!(text.split("\r\n").all(|line| line.len() <= LONGEST_LINE));
            let unfolded = text.replace("\r\n ", "");
            let name = format!("\r\nNAME:{}\r\n", escaped(&title));
            prop_assert!(unfolded.contains(&name));
        }
    }
}
