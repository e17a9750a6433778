//! How far a long command is: one line on stderr that is written over. Only a terminal shows it.

use crate::text::printable;
use std::{
    io::{self, IsTerminal as _, Write as _},
    sync::OnceLock,
    time::{Duration, Instant},
};

/// Pause between two looks of the line; more often nobody could read it.
const REDRAW: Duration = Duration::from_millis(100);
/// Before this much time a rate says nothing.
const RATE_AFTER: Duration = Duration::from_millis(500);

/// Set by `--quiet` and `--json`.
static SILENT: OnceLock<()> = OnceLock::new();

/// Shows no progress from now on: the user asked for quiet.
pub(crate) fn silence() {
    SILENT.get_or_init(|| ());
}

/// What is counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Unit {
    Bytes,
    Things,
}

/// A running count. The line goes away when it ends, also by an error.
#[derive(Debug)]
pub(crate) struct Progress {
    label: String,
    unit: Unit,
    total: Option<u64>,
    done: u64,
    started: Instant,
    drawn: Option<Instant>,
    /// Columns of the line on the screen.
    width: usize,
    shown: bool,
}

impl Progress {
    /// Counts bytes, of `total` where that is known. `label` says what happens: `reading fleet.csv`.
    pub(crate) fn bytes(total: Option<u64>, label: &str) -> Self {
        Self::new(Unit::Bytes, total, label)
    }

    /// Counts things, of `total` where that is known. `label` names them: `events`.
    pub(crate) fn count(total: Option<u64>, label: &str) -> Self {
        Self::new(Unit::Things, total, label)
    }

    /// Says what happens as long as it does, where nothing can be counted.
    pub(crate) fn busy(label: &str) -> Self {
        let mut progress = Self::new(Unit::Things, None, label);
        if progress.shown {
            let text = progress.label.clone();
            progress.draw(&text);
        }
        progress
    }

    fn new(unit: Unit, total: Option<u64>, label: &str) -> Self {
        let shown = SILENT.get().is_none() && io::stderr().is_terminal();
        let label = printable(label);
        Self { label, unit, total, done: 0, started: Instant::now(), drawn: None, width: 0, shown }
    }

    /// `more` of them are done.
    pub(crate) fn add(&mut self, more: u64) {
        self.done = self.done.saturating_add(more);
        if self.shown && self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW) {
            self.drawn = Some(Instant::now());
            let text = line(&self.label, self.unit, self.done, self.total, self.started.elapsed());
            self.draw(&text);
        }
    }

    /// So many of them are done in all.
    pub(crate) fn at(&mut self, done: u64) {
        self.add(done.saturating_sub(self.done));
    }

    /// Takes the line away.
    pub(crate) fn finish(self) {
        // Dropping does it.
    }

    fn draw(&mut self, text: &str) {
        // A line that is wider than the terminal cannot be written over.
        let room = terminal_size::terminal_size_of(io::stderr()).map_or(80, |(width, _)| usize::from(width.0));
        let text: String = text.chars().take(room.saturating_sub(1)).collect();
        let (before, width) = (self.width, text.chars().count());
        self.width = width;
        let mut stderr = io::stderr().lock();
        // Nobody needs to read it.
        let _ = write!(stderr, "\r{}\r{text}", " ".repeat(before)).and_then(|()| stderr.flush());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.width > 0 {
            self.draw("");
        }
    }
}

/// `reading fleet.csv: 3.2 of 10.0 MiB (32 %), 1.1 MiB/s`.
fn line(label: &str, unit: Unit, done: u64, total: Option<u64>, elapsed: Duration) -> String {
    let amount = |count: u64| match unit {
        Unit::Bytes => size(count),
        Unit::Things => count.to_string(),
    };
    let of = match total.filter(|total| *total > 0) {
        Some(total) => {
            let percent = u128::from(done.min(total)) * 100 / u128::from(total);
            format!("{} of {} ({percent} %)", amount(done), amount(total))
        }
        None => amount(done),
    };
    let rate = if elapsed < RATE_AFTER {
        String::new()
    } else {
        let per_second = u128::from(done) * 1000 / elapsed.as_millis().max(1);
        format!(", {}/s", amount(u64::try_from(per_second).unwrap_or(u64::MAX)))
    };
    match unit {
        Unit::Bytes => format!("{label}: {of}{rate}"),
        Unit::Things => format!("{of} {label}{rate}"),
    }
}

/// `512 B`, `3.2 MiB`: units are powers of 1024.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let tenths = u128::from(bytes) * 10;
    let mut scale = 1024u128;
    if tenths < scale * 10 {
        return format!("{bytes} B");
    }
    let mut at = 0;
    while tenths / scale >= 10_240 && at + 1 < UNITS.len() {
        scale *= 1024;
        at += 1;
    }
    let scaled = tenths / scale;
    format!("{}.{} {}", scaled / 10, scaled % 10, UNITS[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_decimal_and_the_largest_unit_that_fits() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (1024 * 1024 - 1, "1023.9 KiB"),
            (10 * 1024 * 1024, "10.0 MiB"),
            (3 << 40, "3.0 TiB"),
            (u64::MAX, "16383.9 PiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn the_line_says_how_much_of_how_much_and_how_fast() {
        let check = |unit, done, total, millis, expected: &str| {
            assert_eq!(line("x", unit, done, total, Duration::from_millis(millis)), expected);
        };
        check(Unit::Bytes, 512 * 1024, Some(1024 * 1024), 100, "x: 512.0 KiB of 1.0 MiB (50 %)");
        check(Unit::Bytes, 4096, None, 2000, "x: 4.0 KiB, 2.0 KiB/s");
        check(Unit::Things, 30, Some(40), 1000, "30 of 40 (75 %) x, 30/s");
        check(Unit::Things, 5, Some(0), 0, "5 x");
        check(Unit::Things, 50, Some(40), 0, "50 of 40 (100 %) x");
    }

    #[test]
    fn off_a_terminal_nothing_is_drawn() {
        let mut progress = Progress::bytes(Some(10), "x");
        progress.shown = false;
        progress.add(5);
        assert_eq!((progress.done, progress.width), (5, 0));
    }
}
