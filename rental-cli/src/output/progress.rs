//! Progress of long commands: one line on stderr, on terminals only.

use crate::text::printable;
use bytesize::ByteSize;
use indicatif::{
    BinaryBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressState, ProgressStyle,
};
use std::{fmt::Write, sync::OnceLock, time::Duration};

const BYTES: &str = "{msg}: {binary_bytes}{speed}";
const BYTES_OF: &str = "{msg}: {binary_bytes} of {binary_total_bytes} ({percent} %){speed}{rest}";
const COUNT: &str = "{human_pos} {msg}{rate}";
const COUNT_OF: &str = "{human_pos} of {human_len} {msg} ({percent} %){rate}{rest}";
const BUSY: &str = "{msg}";

/// Set by `--quiet` and `--json`.
static SILENT: OnceLock<()> = OnceLock::new();

/// Turns progress off, for `--quiet` and `--json`.
pub(crate) fn silence() {
    SILENT.get_or_init(|| ());
}

/// One progress line. Dropping it erases the line, also after an error.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Counts bytes, of `total` if known. `label` names the activity: `reading fleet.csv`.
    pub(crate) fn bytes(total: Option<u64>, label: &str) -> Self {
        Self::new(total, label, BYTES_OF, BYTES)
    }

    /// Counts items, of `total` if known. `label` names the items: `events`.
    pub(crate) fn count(total: Option<u64>, label: &str) -> Self {
        Self::new(total, label, COUNT_OF, COUNT)
    }

    /// Shows `label` during an activity that cannot be counted.
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
        // Writing to a string does not fail.
        let style = style
            .with_key("speed", |state: &ProgressState, out: &mut dyn Write| {
                let _ = out.write_str(&speed(state.per_sec()));
            })
            .with_key("rate", |state: &ProgressState, out: &mut dyn Write| {
                let _ = out.write_str(&rate(state.per_sec()));
            })
            .with_key("rest", |state: &ProgressState, out: &mut dyn Write| {
                let _ = out.write_str(&rest(state.per_sec(), state.eta()));
            });
        let bar = ProgressBar::with_draw_target(total, target).with_style(style);
        Self(bar.with_message(printable(label)).with_finish(ProgressFinish::AndClear))
    }

    /// Adds `more` to the count.
    pub(crate) fn add(&mut self, more: u64) {
        self.0.inc(more);
    }

    /// Sets the count.
    pub(crate) fn at(&mut self, done: u64) {
        self.0.set_position(done);
    }

    /// Erases the line while `print` prints something.
    pub(crate) fn hidden_while<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }

    /// Erases the line.
    pub(crate) fn finish(self) {
        // Dropping does it.
    }
}

/// Bytes in each second; nothing while they are not known.
fn speed(per_sec: f64) -> String {
    // Far below 2^53.
    if per_sec < 1.0 { String::new() } else { format!(", {}/s", BinaryBytes(per_sec as u64)) }
}

/// Items in each second; nothing while they are not known.
fn rate(per_sec: f64) -> String {
    if per_sec < 0.5 { String::new() } else { format!(", {per_sec:.0}/s") }
}

/// The time that is left; nothing while the rate is not known.
fn rest(per_sec: f64, left: Duration) -> String {
    if per_sec < 0.5 { String::new() } else { format!(", {:#} left", HumanDuration(left)) }
}

/// Formats a size in powers of 1024: `512 B`, `3.2 MiB`.
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

    #[test]
    fn rate_and_rest_are_left_out_until_they_are_known() {
        let left = Duration::from_secs(30);
        assert_eq!((speed(0.0), rate(0.0), rest(0.0, left)), (String::new(), String::new(), String::new()));
        assert_eq!((rate(0.4), rest(0.4, left)), (String::new(), String::new()));
        assert_eq!(
            (speed(2048.0), rate(12.4), rest(12.4, left)),
            (", 2.00 KiB/s".into(), ", 12/s".into(), ", 30s left".into())
        );
    }

    /// `Progress::new` falls back to another style if a template is invalid.
    #[test]
    fn every_template_is_sound() {
        for template in [BYTES, BYTES_OF, COUNT, COUNT_OF, BUSY] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
