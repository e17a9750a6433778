//! Everything that can end a command early, its exit code and what stderr says about it.

pub(crate) mod refusal;

use crate::{failure::refusal::Refusal, text::printable};
use serde::Serialize;
use std::{borrow::Cow, fmt, io};

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
        let Report { message, hint, .. } = self.report();
        (printable(&message), hint.map(Cow::into_owned))
    }

    /// The error object of the API where there is one, else one of the same shape.
    pub(crate) fn json(&self) -> String {
        if let Self::Refused(refusal) = self
            && let Some(own) = refusal.json()
        {
            return own.to_owned();
        }
        // Only texts, so it cannot fail.
        serde_json::to_string(&Envelope { error: self.report() }).unwrap_or_default()
    }

    /// The lines that say it: what happened, the bad fields, what may help, the request's id.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.to_string(),
            _ => self.report().to_string(),
        }
    }

    fn report(&self) -> Report<'_> {
        let of = |code, problem, hint| {
            let (kind, message) = ("client_error", Cow::Borrowed(problem));
            Report { kind, code, message, hint, request_id: None }
        };
        let advice = |hint: &'static str| Some(Cow::Borrowed(hint));
        match self {
            Self::Clap(error) => of_clap(error),
            Self::Usage(problem) => of("usage", problem, advice("`--help` shows how")),
            Self::Config(problem) => {
                of("config", problem, advice("`rental-cli config path` prints the path of the file"))
            }
            Self::Checks { failed, .. } => {
                let checks = if *failed == 1 { "check" } else { "checks" };
                let message = format!("{failed} {checks} failed").into();
                Report { message, ..of("doctor", "", advice("each failed check says what to do")) }
            }
            Self::NoCredential { problem, hint } => {
                Report { kind: "authentication_error", ..of("credential_missing", problem, advice(hint)) }
            }
            Self::Unreachable { problem, hint } => of("unreachable", problem, advice(hint)),
            Self::Unsuccessful { kind, problem, hint } => of(kind, problem, advice(hint)),
            Self::InTheWay { problem, hint } => of("exists", problem, advice(hint)),
            Self::Refused(refusal) => Report {
                kind: refusal.kind(),
                hint: refusal.hint().map(Cow::Owned),
                request_id: refusal.request_id(),
                ..of(refusal.code(), refusal.message(), None)
            },
            Self::Unreadable(problem) => {
                let hint = "check that --base-url is the URL of a rental-server";
                of("unreadable", problem, advice(hint))
            }
            Self::Io { doing, error } => {
                Report { message: format!("cannot {doing}: {error}").into(), ..of("io", "", None) }
            }
        }
    }
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: Report<'a>,
}

/// A failure in the members of the API's error object, and what may help.
#[derive(Serialize)]
struct Report<'a> {
    /// The class of the failure, the API's or `client_error`.
    #[serde(rename = "type")]
    kind: &'a str,
    /// The word for programs.
    code: &'a str,
    /// What happened.
    message: Cow<'a, str>,
    /// What may help.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error[{}]: {}", printable(self.code), printable(&self.message))?;
        match &self.hint {
            Some(hint) => writeln!(f, "hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// What clap says in its first paragraph, and its tips.
fn of_clap(error: &clap::Error) -> Report<'_> {
    let text = error.to_string();
    let said = |lines: &mut dyn Iterator<Item = &str>| lines.map(str::trim).collect::<Vec<_>>().join(" ");
    let message = said(&mut text.lines().take_while(|line| !line.is_empty()));
    let message = message.trim_start_matches("error: ").to_owned();
    let tips = said(&mut text.lines().filter_map(|line| line.trim_start().strip_prefix("tip: ")));
    let hint = if tips.is_empty() { "`--help` shows how".to_owned() } else { tips };
    Report { kind: "client_error", code: "usage", message: message.into(), hint: Some(hint.into()), request_id: None }
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
    fn a_report_has_its_code_first_and_its_hint_last() {
        let usage = Failure::Usage("no\nway".into());
        assert_eq!(usage.report().to_string(), "error[usage]: no\\nway\nhint: `--help` shows how\n");
        let io = Failure::Io { doing: "read x".into(), error: io::ErrorKind::NotFound.into() };
        assert_eq!(io.report().to_string(), "error[io]: cannot read x: entity not found\n");
    }
}
