//! Everything that can end a command early, its exit code and what stderr says about it.

use crate::{record::printable, refusal::Refusal, style};
use std::io::{self, Write as _};

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What clap has to say; `--help` and `--version` too, which are no failures.
    Clap(Box<clap::Error>),
    /// The command line asks for something that makes no sense.
    Usage(String),
    /// The configuration file is wrong, or names what is not there.
    Config(String),
    /// Some of the checks of `doctor` failed; they have said so themselves.
    Checks {
        /// How many.
        failed: usize,
        /// The exit code of the worst.
        exit_code: u8,
    },
    /// No secret to authenticate with.
    NoCredential {
        /// What is missing.
        problem: String,
        /// How to get it.
        hint: &'static str,
    },
    /// No answer from the server.
    Unreachable {
        /// What happened.
        problem: String,
        /// What may help.
        hint: &'static str,
    },
    /// The server answered with an error.
    Refused(Box<Refusal>),
    /// The server answered with something that is not its API.
    Unreadable(String),
    /// The server tried what was asked, and it did not work out.
    Unsuccessful {
        /// One word for it.
        kind: &'static str,
        /// What happened.
        problem: String,
        /// What may help.
        hint: &'static str,
    },
    /// Something is there already that the command would replace.
    InTheWay {
        /// What.
        problem: String,
        /// What may help.
        hint: &'static str,
    },
    /// A file or stream of this machine failed.
    Io {
        /// What was attempted.
        doing: String,
        /// What came of it.
        error: io::Error,
    },
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        Self::Clap(Box::new(error))
    }
}

impl Failure {
    /// A failed write to stdout.
    pub(crate) fn stdout(error: io::Error) -> Self {
        Self::Io { doing: "write to stdout".into(), error }
    }

    /// One code for each class of failure; the list is in `--help`.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Clap(error) => u8::try_from(error.exit_code()).unwrap_or(2),
            Self::Usage(_) | Self::Config(_) => 2,
            Self::Checks { exit_code, .. } => *exit_code,
            Self::NoCredential { .. } => 4,
            Self::Unreachable { .. } => 7,
            Self::InTheWay { .. } => 6,
            Self::Refused(refusal) => refusal.exit_code(),
            Self::Unreadable(_) | Self::Unsuccessful { .. } => 1,
            Self::Io { error, .. } if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Io { .. } => 1,
        }
    }

    /// Whether it may be gone when the same is tried again.
    pub(crate) fn passes(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused(refusal) => matches!(refusal.status, 408 | 429 | 500..=599),
            _ => false,
        }
    }

    /// The problem and what may help, apart.
    pub(crate) fn told(&self) -> (String, Option<String>) {
        let text = self.text();
        let mut lines = text.lines();
        let problem = lines.next().unwrap_or_default();
        let problem = problem.split_once("]: ").map_or(problem, |(_, problem)| problem).to_owned();
        (problem, lines.find_map(|line| line.strip_prefix("hint: ")).map(str::to_owned))
    }

    /// Says it on stderr; help and version go to stdout. A reader that went away is no news.
    pub(crate) fn show(&self) {
        // Nobody is left to tell when this fails.
        let _ = match self {
            Self::Clap(error) => error.print(),
            Self::Io { error, .. } if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            _ => anstream::stderr().write_all(style::report(&self.text()).as_bytes()),
        };
    }

    fn text(&self) -> String {
        match self {
            Self::Clap(error) => error.to_string(),
            Self::Usage(problem) => report("usage", problem, Some("`--help` shows how")),
            Self::Config(problem) => {
                report("config", problem, Some("`rental-cli config path` shows where the file is"))
            }
            Self::Checks { failed, .. } => {
                let (checks, hint) = (if *failed == 1 { "check" } else { "checks" }, "what to do stands beside each");
                report("doctor", &format!("{failed} {checks} failed"), Some(hint))
            }
            Self::NoCredential { problem, hint } => report("authentication_error", problem, Some(hint)),
            Self::Unreachable { problem, hint } => report("unreachable", problem, Some(hint)),
            Self::Unsuccessful { kind, problem, hint } => report(kind, problem, Some(hint)),
            Self::InTheWay { problem, hint } => report("exists", problem, Some(hint)),
            Self::Refused(refusal) => refusal.to_string(),
            Self::Unreadable(problem) => report(
                "unreadable",
                problem,
                Some("check that --base-url points at a rental-server, not at something else"),
            ),
            Self::Io { doing, error } => report("io", &format!("cannot {doing}: {error}"), None),
        }
    }
}

fn report(kind: &str, problem: &str, hint: Option<&str>) -> String {
    let hint = hint.map(|hint| format!("hint: {hint}\n")).unwrap_or_default();
    format!("error[{kind}]: {}\n{hint}", printable(problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        assert_eq!(Failure::stdout(io::ErrorKind::BrokenPipe.into()).exit_code(), 0);
        assert_eq!(Failure::stdout(io::ErrorKind::StorageFull.into()).exit_code(), 1);
    }

    #[test]
    fn a_report_has_its_class_first_and_its_hint_last() {
        assert_eq!(report("usage", "no\nway", Some("try")), "error[usage]: no\\nway\nhint: try\n");
        assert_eq!(report("io", "gone", None), "error[io]: gone\n");
    }
}
