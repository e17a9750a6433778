//! The lines of a calendar that say on which days something takes place. Everything else, such as descriptions, alarms and
//! attachments, is left out before the text is parsed: the parser cannot be interrupted, so it gets a bounded number of parts.

use super::reading::{MOST_EVENTS, short};

/// Most lines and values of a calendar that say on which days something takes place.
pub(super) const MOST_PARTS: usize = 200_000;

/// The properties of calendars, events and time zones that are read.
const READ: [&str; 15] = [
    "DTEND",
    "DTSTAMP",
    "DTSTART",
    "DURATION",
    "EXDATE",
    "METHOD",
    "RDATE",
    "RECURRENCE-ID",
    "RRULE",
    "SEQUENCE",
    "STATUS",
    "SUMMARY",
    "TRANSP",
    "TZID",
    "UID",
];
/// Those with a time zone. Their values have no colon.
const TIMES: [&str; 5] = ["DTEND", "DTSTART", "EXDATE", "RDATE", "RECURRENCE-ID"];
/// Those of standard and summer time in a time zone.
const READ_OF_ZONES: [&str; 5] = ["DTSTART", "RDATE", "RRULE", "TZOFFSETFROM", "TZOFFSETTO"];

/// A whole calendar, or several, with the read properties only and without folds.
#[derive(Default)]
pub(super) struct Reduced {
    pub(super) text: String,
    /// The line in which each event begins.
    pub(super) events: Vec<usize>,
    /// The components that have begun and not ended, in capitals.
    open: Vec<String>,
    parts: usize,
}

/// Reduces the text of a whole calendar, or of several.
///
/// # Errors
/// A sentence for people: it is cut off, broken, or too large.
pub(super) fn reduced(text: &str) -> Result<Reduced, String> {
    let mut reduced = Reduced { text: String::with_capacity(text.len()), ..Reduced::default() };
    let mut lines = text.lines().enumerate().peekable();
    let mut unfolded = String::new();
    while let Some((number, first)) = lines.next() {
        let mut line = first;
        if lines.peek().is_some_and(|(_, next)| next.starts_with([' ', '\t'])) {
            unfolded.clear();
            unfolded.push_str(first);
            while let Some((_, next)) = lines.next_if(|(_, next)| next.starts_with([' ', '\t'])) {
                unfolded.extend(next.chars().skip(1));
            }
            line = &unfolded;
        }
        reduced.take(number + 1, line)?;
    }
    match reduced.open.last() {
        Some(open) => Err(format!("{} in it does not end: it was cut off", short(open, 30))),
        None => Ok(reduced),
    }
}

impl Reduced {
    fn take(&mut self, number: usize, line: &str) -> Result<(), String> {
        let Some(colon) = line.find([':', ';']) else {
            let is_known = !self.open.is_empty() || line.trim().is_empty();
            return if is_known { Ok(()) } else { Err(no_part(line)) };
        };
        let name = line.get(..colon).unwrap_or_default().trim();
        if name.eq_ignore_ascii_case("BEGIN") || name.eq_ignore_ascii_case("END") {
            let component = line.get(colon + 1..).unwrap_or_default().trim().to_ascii_uppercase();
            return if name.len() == 5 { self.begin(number, component) } else { self.end(number, &component) };
        }
        if self.open.is_empty() {
            return Err(no_part(line));
        }
        let read: &[&str] = if self.open.len() > 2 { &READ_OF_ZONES } else { &READ };
        let is_one_of = |names: &[&str]| names.iter().any(|read| name.eq_ignore_ascii_case(read));
        if !self.is_read() || !is_one_of(read) {
            return Ok(());
        }
        match quoted(line).filter(|_| is_one_of(&TIMES)) {
            Some(quoted) => self.add(&quoted),
            None => self.add(line),
        }
    }

    fn begin(&mut self, number: usize, component: String) -> Result<(), String> {
        match (self.open.last().map(String::as_str), component.as_str()) {
            (None, "VCALENDAR") | (Some("VCALENDAR"), _) => {}
            (None, _) => return Err(no_part(&format!("BEGIN:{component}"))),
            (_, "VCALENDAR" | "VEVENT") => return Err("an event in it does not end: it was cut off".into()),
            _ => {}
        }
        if component == "VEVENT" {
            self.events.push(number);
        }
        if self.events.len() > MOST_EVENTS {
            return Err(format!("it has more than {MOST_EVENTS} events"));
        }
        self.open.push(component);
        self.add_part("BEGIN")
    }

    fn end(&mut self, number: usize, component: &str) -> Result<(), String> {
        let open = self.open.last().map_or_else(String::new, |open| format!(" before the end of {}", short(open, 30)));
        if self.open.last().is_none_or(|open| open != component) {
            return Err(format!(
                "END:{} in its line {number} comes{open}: it is broken or cut off",
                short(component, 30)
            ));
        }
        self.add_part("END")?;
        self.open.pop();
        Ok(())
    }

    /// The innermost component begins or ends.
    fn add_part(&mut self, what: &str) -> Result<(), String> {
        if self.is_read() {
            let component = self.open.last().cloned().unwrap_or_default();
            return self.add(&format!("{what}:{component}"));
        }
        Ok(())
    }

    /// Whether the innermost open component is a calendar, or an event or a time zone of one, or standard or summer time of that.
    fn is_read(&self) -> bool {
        let inner = |at: usize| self.open.get(at).map(String::as_str);
        match self.open.len() {
            1 => true,
            2 => matches!(inner(1), Some("VEVENT" | "VTIMEZONE")),
            3 => inner(1) == Some("VTIMEZONE") && matches!(inner(2), Some("STANDARD" | "DAYLIGHT")),
            _ => false,
        }
    }

    fn add(&mut self, line: &str) -> Result<(), String> {
        self.parts += 1 + line.bytes().filter(|byte| matches!(byte, b',' | b';')).count();
        if self.parts > MOST_PARTS {
            return Err(format!("it has more than {MOST_PARTS} lines and values about days"));
        }
        self.text.push_str(line);
        self.text.push('\n');
        Ok(())
    }
}

/// A line with the quotes that its time zone lacks: Outlook writes `TZID=tzone://Microsoft/Custom:` and names of several cities.
fn quoted(line: &str) -> Option<String> {
    let (head, value) = line.rsplit_once(':').filter(|(head, _)| head.contains([':', ',']))?;
    let at = head.to_ascii_uppercase().find(";TZID=")? + ";TZID=".len();
    let (before, after) = head.split_at_checked(at)?;
    let name = after.split(';').next().filter(|name| !name.contains('"'))?;
    Some(format!("{before}\"{name}\"{}:{value}", after.strip_prefix(name)?))
}

fn no_part(line: &str) -> String {
    format!("it has a line that is no part of a calendar: {}", short(line, 60))
}
