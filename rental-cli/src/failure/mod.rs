//! Why commands fail: exit code, text and JSON of each failure.

pub(crate) mod error_response;
pub(crate) mod hidden;
pub(crate) mod synonyms;

use crate::{failure::error_response::ErrorResponse, text::printable};
use serde::Serialize;
use std::{borrow::Cow, fmt, io};

/// The reason why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A message of clap: a usage error, or the text of `--help` or `--version`.
    Clap(Box<clap::Error>),
    /// The command line is syntactically valid but contradictory or incomplete.
    Usage(String),
    /// The configuration file is invalid, or a profile does not exist.
    Config(String),
    /// Checks of `doctor` failed. Their report is already printed.
    Checks {
        /// Number of failed checks.
        failed: usize,
        /// Exit code of the most severe one.
        exit_code: u8,
    },
    /// There is no API key or admin token to authenticate with.
    NoCredential {
        /// Which secret is missing, and why.
        problem: String,
        /// How to get one.
        hint: &'static str,
    },
    /// The server did not respond.
    Unreachable {
        /// What happened.
        problem: String,
        /// The next step.
        hint: &'static str,
    },
    /// The server responded with an error status.
    ErrorResponse(Box<ErrorResponse>),
    /// The response is not one of this API.
    Unreadable(String),
    /// The operation ran and its result is negative.
    Unsuccessful {
        /// Error code, such as `not_delivered`.
        kind: &'static str,
        /// What happened.
        problem: String,
        /// The next step.
        hint: &'static str,
    },
    /// A person ended the command before it was done.
    Interrupted {
        /// How far it came.
        problem: String,
        /// The next step.
        hint: &'static str,
    },
    /// A file or store exists that the command would overwrite.
    AlreadyExists {
        /// What exists.
        problem: String,
        /// The next step.
        hint: &'static str,
    },
    /// A local file or stream failed.
    Io {
        /// The failed operation: `read x.csv`.
        doing: String,
        /// The error of the operating system.
        error: io::Error,
    },
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        Self::Clap(Box::new(error))
    }
}

impl Failure {
    /// Makes the failure of a write to stdout.
    pub(crate) fn stdout(error: io::Error) -> Self {
        Self::Io { doing: "write to stdout".into(), error }
    }

    /// Exit code of the process; `--help` lists all codes.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Clap(error) => u8::try_from(error.exit_code()).unwrap_or(2),
            Self::Usage(_) | Self::Config(_) => 2,
            Self::Checks { exit_code, .. } => *exit_code,
            Self::NoCredential { .. } => 4,
            Self::Unreachable { .. } => 7,
            Self::Interrupted { .. } => 130,
            Self::AlreadyExists { .. } => 6,
            Self::ErrorResponse(response) => response.exit_code(),
            Self::Unsuccessful { kind: "not_found", .. } => 3,
            Self::Unsuccessful { kind: "every_row_invalid", .. } => 6,
            Self::Unreadable(_) | Self::Unsuccessful { .. } => 1,
            Self::Io { error, .. } if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Io { .. } => 1,
        }
    }

    /// Whether a later attempt can succeed without any change.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::ErrorResponse(response) => matches!(response.status, 408 | 429 | 500..=599),
            _ => false,
        }
    }

    /// Returns what happened and the next step.
    pub(crate) fn problem_and_hint(&self) -> (String, Option<String>) {
        let Report { message, hint, .. } = self.report();
        (printable(&message), hint.map(Cow::into_owned))
    }

    /// JSON for `--json`: the API's own error object, or one of the same shape. Both have `hint`, if there is one.
    pub(crate) fn json(&self) -> String {
        if let Self::ErrorResponse(response) = self
            && let Some(own) = response.json()
        {
            return own;
        }
        // Cannot fail: all members are strings.
        serde_json::to_string(&Envelope { error: self.report() }).unwrap_or_default()
    }

    /// Text for people: what happened, the invalid fields, the next step, the request id.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::ErrorResponse(response) => response.to_string(),
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
            Self::Interrupted { problem, hint } => of("interrupted", problem, advice(hint)),
            Self::AlreadyExists { problem, hint } => of("exists", problem, advice(hint)),
            Self::ErrorResponse(response) => Report {
                kind: response.kind(),
                hint: response.hint().map(Cow::Owned),
                request_id: response.request_id(),
                ..of(response.code(), response.message(), None)
            },
            Self::Unreadable(problem) => {
                let hint = "check that --base-url is the URL of a rental-server";
                of("unreadable", problem, advice(hint))
            }
            Self::Io { doing, error } => {
                let hint = match error.kind() {
                    io::ErrorKind::NotFound => Some("check the path; a relative path starts in the current directory"),
                    io::ErrorKind::PermissionDenied => Some("check the permissions of the file and of its directories"),
                    io::ErrorKind::IsADirectory => Some("give the path of a file, not of a directory"),
                    io::ErrorKind::StorageFull => Some("free disk space, then repeat the command"),
                    _ => None,
                };
                let message = format!("cannot {doing}: {error}").into();
                Report { message, ..of("io", "", hint.map(Cow::Borrowed)) }
            }
        }
    }
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: Report<'a>,
}

/// A failure in the shape of the API's error object, plus `hint`.
#[derive(Serialize)]
struct Report<'a> {
    /// Class: one of the API's, or `client_error`.
    #[serde(rename = "type")]
    kind: &'a str,
    /// Code for programs.
    code: &'a str,
    /// What happened.
    message: Cow<'a, str>,
    /// The next step.
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

/// Takes the message from the first paragraph of clap's text, and the hint from its tips.
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
        let hint = "hint: check the path; a relative path starts in the current directory\n";
        assert_eq!(io.report().to_string(), format!("error[io]: cannot read x: entity not found\n{hint}"));
    }
}
