//! The type of a command group, and the examples in its help.

use crate::{commands::session::Session, failure::Failure, output::style};
use clap::{ArgMatches, Command};

/// A top-level command, usually with subcommands.
pub(crate) struct Group {
    /// Name on the command line.
    pub(crate) name: &'static str,
    /// Builds its subcommands and flags.
    pub(crate) command: fn() -> Command,
    /// Runs it.
    pub(crate) run: fn(&ArgMatches, &Session) -> Result<(), Failure>,
}

/// Adds examples, which help shows before the usage.
pub(crate) fn with_examples(command: Command, examples: &[&str]) -> Command {
    let heading = style::HEADING;
    command.before_help(format!("{heading}Examples:{heading:#}\n  {}", examples.join("\n  ")))
}
