//! Colours. Data in a pipe is never coloured, whatever `--color` says.

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Color, Style};
use clap::builder::Styles;
use std::{
    env,
    io::{self, IsTerminal as _},
};

/// Values of `--color`.
pub(crate) const CHOICES: [&str; 3] = ["auto", "always", "never"];

const fn colour(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(Color::Ansi(colour)))
}

pub(crate) const HEADING: Style = Style::new().bold();
pub(crate) const SUCCESS: Style = colour(AnsiColor::Green);
pub(crate) const WARNING: Style = colour(AnsiColor::Yellow);
pub(crate) const ERROR: Style = colour(AnsiColor::Red);
pub(crate) const HINT: Style = colour(AnsiColor::Cyan);
pub(crate) const DIM: Style = Style::new().dimmed();

/// Colours of clap's help and errors.
pub(crate) const HELP: Styles = Styles::styled()
    .header(HEADING)
    .usage(HEADING)
    .literal(HINT)
    .placeholder(DIM)
    .valid(SUCCESS)
    .invalid(WARNING)
    .error(ERROR.bold());

/// Applies `--color` before clap parses the command line, so that it applies to clap's own messages too. Clap checks the
/// value later.
pub(crate) fn apply_color_flag() {
    let mut args = env::args_os().skip(1);
    while let Some(arg) = args.next() {
        let word = match arg.to_str() {
            Some("--") => return,
            Some("--color") => args.next().and_then(|word| word.into_string().ok()),
            Some(text) => text.strip_prefix("--color=").map(str::to_owned),
            None => None,
        };
        match word.as_deref() {
            Some("always") => ColorChoice::Always.write_global(),
            Some("never") => ColorChoice::Never.write_global(),
            _ => {}
        }
    }
}

/// Whether stdout is coloured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Paint(bool);

impl Paint {
    /// No colours.
    #[cfg(test)]
    pub(crate) const NONE: Self = Self(false);
    /// Always colours.
    #[cfg(test)]
    pub(crate) const ALL: Self = Self(true);

    /// Colours when stdout is a terminal that takes them (`NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE`, `TERM`).
    pub(crate) fn stdout() -> Self {
        Self(io::stdout().is_terminal() && AutoStream::choice(&io::stdout()) != ColorChoice::Never)
    }

    /// The text in a style.
    pub(crate) fn with(self, style: Style, text: &str) -> String {
        if self.0 && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// A word that says how something stands.
    pub(crate) fn status(self, word: &str) -> String {
        self.with(of_status(word), word)
    }
}

fn of_status(word: &str) -> Style {
    match word {
        "available" | "ACTIVE" | "enabled" | "delivered" | "paid" | "read_write" | "pro" => SUCCESS,
        "pending" | "open" | "NEW" | "APPROVED" | "maintenance" | "rented" => WARNING,
        "failed" | "disabled" | "void" | "CANCELLED" | "retired" => ERROR,
        "COMPLETED" => DIM,
        _ => Style::new(),
    }
}

/// A report of a failure with its first word, its hint and the request id set apart.
pub(crate) fn report(text: &str) -> String {
    let line = |line: &str| {
        let (style, cut) = match line {
            _ if line.starts_with("error[") => (ERROR.bold(), line.find("]:").map_or(line.len(), |at| at + 2)),
            _ if line.starts_with("hint:") => (HINT, "hint:".len()),
            _ if line.starts_with("request id") => (DIM, line.len()),
            _ => return format!("{line}\n"),
        };
        format!("{style}{}{style:#}{}\n", &line[..cut], &line[cut..])
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_the_same_text_with_colours_in_it() {
        let text = "error[usage]: no\n  param x\nhint: try\nrequest id 7\n";
        let coloured = report(text);
        assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), text);
        assert!(coloured.starts_with("\u{1b}[1m\u{1b}[31merror[usage]:\u{1b}[0m no\n"), "{coloured:?}");
    }

    #[test]
    fn nothing_is_painted_without_colours() {
        assert_eq!(Paint::NONE.status("failed"), "failed");
        assert_eq!(Paint::ALL.status("failed"), "\u{1b}[31mfailed\u{1b}[0m");
        assert_eq!(Paint::ALL.status("White Tesla"), "White Tesla");
    }
}
