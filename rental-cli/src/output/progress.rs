//! How far a long command is: one line on stderr that is written over. Only a terminal shows it.

use crate::text::printable;
use bytesize::ByteSize;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressState, ProgressStyle};
use std::{fmt::Write, sync::OnceLock};

const BYTES: &str = "{msg}: {binary_bytes}, {binary_bytes_per_sec}";
const BYTES_OF: &str =
    "{msg}: {binary_bytes} of {binary_total_bytes} ({percent} %), {binary_bytes_per_sec}, {eta} left";
const COUNT: &str = "{human_pos} {msg}, {rate}/s";
const COUNT_OF: &str = "{human_pos} of {human_len} {msg} ({percent} %), {rate}/s, {eta} left";
const BUSY: &str = "{msg}";

/// Set by `--quiet` and `--json`.
static SILENT: OnceLock<()> = OnceLock::new();

/// Shows no progress from now on: the user asked for quiet.
pub(crate) fn silence() {
    SILENT.get_or_init(|| ());
}

/// A running count. The line goes away when it ends, also by an error.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Counts bytes, of `total` where that is known. `label` says what happens: `reading fleet.csv`.
    pub(crate) fn bytes(total: Option<u64>, label: &str) -> Self {
        Self::new(total, label, BYTES_OF, BYTES)
    }

    /// Counts things, of `total` where that is known. `label` names them: `events`.
    pub(crate) fn count(total: Option<u64>, label: &str) -> Self {
        Self::new(total, label, COUNT_OF, COUNT)
    }

    /// Says what happens as long as it does, where nothing can be counted.
    pub(crate) fn busy(label: &str) -> Self {
        let progress = Self::new(None, label, BUSY, BUSY);
        progress.0.tick();
        progress
    }

    fn new(total: Option<u64>, label: &str, with_total: &str, without: &str) -> Self {
        let target = match SILENT.get() {
            None => ProgressDrawTarget::stderr(),
            Some(()) => ProgressDrawTarget::hidden(),
        };
        let total = total.filter(|total| *total > 0);
        let template = if total.is_some() { with_total } else { without };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let style = style.with_key("rate", |state: &ProgressState, out: &mut dyn Write| {
            // Nobody needs to read it.
            let _ = write!(out, "{:.0}", state.per_sec());
        });
        let bar = ProgressBar::with_draw_target(total, target).with_style(style);
        Self(bar.with_message(printable(label)).with_finish(ProgressFinish::AndClear))
    }

    /// `more` of them are done.
    pub(crate) fn add(&mut self, more: u64) {
        self.0.inc(more);
    }

    /// So many of them are done in all.
    pub(crate) fn at(&mut self, done: u64) {
        self.0.set_position(done);
    }

    /// Takes the line away.
    pub(crate) fn finish(self) {
        // Dropping does it.
    }
}

/// `512 B`, `3.2 MiB`: units are powers of 1024.
pub(crate) fn size(bytes: u64) -> String {
    ByteSize::b(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_decimal_and_the_largest_unit_that_fits() {
        for (bytes, text) in [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (3 << 40, "3.0 TiB")]
        {
            assert_eq!(size(bytes), text);
        }
    }

    /// A template with a mistake would be shown as it stands, or not at all.
    #[test]
    fn every_template_is_sound() {
        for template in [BYTES, BYTES_OF, COUNT, COUNT_OF, BUSY] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
