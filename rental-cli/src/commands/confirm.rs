//! The question before a command destroys something or locks somebody out.

use crate::failure::Failure;
use clap::{Arg, ArgAction, ArgMatches};
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

/// Builds `--yes`.
pub(crate) fn yes() -> Arg {
    Arg::new("yes").long("yes").action(ArgAction::SetTrue).help("Do not ask; required without a terminal")
}

/// Asks on a terminal whether to do this; `what` is the question without its question mark. Returns when the answer is
/// yes. Without a terminal nobody can answer, so `--yes` is required.
pub(crate) fn confirm(matches: &ArgMatches, what: &str) -> Result<(), Failure> {
    if matches.get_flag("yes") {
        return Ok(());
    }
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(Failure::Usage(format!("{what}? Nothing was done: add --yes, because no terminal can answer")));
    }
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
