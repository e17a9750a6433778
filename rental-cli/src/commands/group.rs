//! What every group of commands is made of.

use crate::{commands::session::Session, failure::Failure, output::style};
use clap::{ArgMatches, Command};

/// A word at the prompt, mostly with commands below it.
pub(crate) struct Group {
    /// The word.
    pub(crate) name: &'static str,
    /// Its commands and their flags.
    pub(crate) command: fn() -> Command,
    /// Carries one of them out.
    pub(crate) run: fn(&ArgMatches, &Session) -> Result<(), Failure>,
}

/// Adds examples, which stand before the usage.
pub(crate) fn with_examples(command: Command, examples: &[&str]) -> Command {
    let heading = style::HEADING;
    command.before_help(format!("{heading}Examples:{heading:#}\n  {}", examples.join("\n  ")))
}
