//! The question before a command destroys something or locks somebody out.

use crate::failure::Failure;
use clap::{Arg, ArgAction, ArgMatches};
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

/// Builds `--yes` for [`confirm`].
pub(crate) fn yes() -> Arg {
    flag("Do not ask; required without a terminal")
}

/// Builds `--yes` for [`confirm_on_terminal`].
pub(crate) fn yes_on_terminal() -> Arg {
    flag("Do not ask on a terminal; elsewhere nothing is asked")
}

fn flag(help: &'static str) -> Arg {
    Arg::new("yes").long("yes").action(ArgAction::SetTrue).help(help)
}

/// Asks on a terminal whether to do this; `what` is the question without its question mark. Returns when the answer is
/// yes. Without a terminal nobody can answer, so `--yes` is required.
pub(crate) fn confirm(matches: &ArgMatches, what: &str) -> Result<(), Failure> {
    needs_yes(matches, what)?;
    if matches.get_flag("yes") { Ok(()) } else { ask(what) }
}

/// Refuses what [`confirm`] refuses, for a question that takes requests to put.
pub(crate) fn needs_yes(matches: &ArgMatches, what: &str) -> Result<(), Failure> {
    if matches.get_flag("yes") || is_answered() {
        return Ok(());
    }
    Err(Failure::Usage(format!("{what}? Nothing was done: add --yes, because no terminal can answer")))
}

/// The same for commands that scripts used before there was a question: without a terminal, they act at once.
pub(crate) fn confirm_on_terminal(matches: &ArgMatches, what: &str) -> Result<(), Failure> {
    if asks_on_terminal(matches) { ask(what) } else { Ok(()) }
}

/// Whether [`confirm_on_terminal`] asks, for a question that takes requests to put.
pub(crate) fn asks_on_terminal(matches: &ArgMatches) -> bool {
    !matches.get_flag("yes") && is_answered()
}

/// Whether a person sees the question and can answer it.
fn is_answered() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn ask(what: &str) -> Result<(), Failure> {
    let failed = |error| Failure::Io { doing: "ask on the terminal".into(), error };
    let mut stderr = io::stderr().lock();
    write!(stderr, "{what}? [y/N] ").and_then(|()| stderr.flush()).map_err(failed)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(failed)?;
    if ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()) {
        return Ok(());
    }
    Err(Failure::Unsuccessful {
        kind: "not_confirmed",
        problem: "nothing was done, because the answer was not yes".into(),
        hint: "answer y, or give --yes",
    })
}
