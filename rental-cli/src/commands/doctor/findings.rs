//! What the checks found, printed as it is found.

use crate::{
    failure::Failure,
    output::{self, Output, style},
    text::{printable, wrapped},
};
use serde_json::json;

/// Exit codes, the most severe first: an unreachable server hides all other problems.
const BY_SEVERITY: [u8; 9] = [7, 9, 4, 5, 2, 1, 3, 6, 8];

/// What a check has.
pub(super) const COLUMNS: [&str; 4] = ["status", "name", "fact", "next"];

/// Columns of the name of a check on a terminal.
const NAME: usize = 18;
/// Columns before the fact: the sign, the name, and a space after each.
const HEAD: usize = NAME + 3;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Status {
    Passed,
    Warning,
    /// Failed, with this exit code.
    Failed(u8),
    /// Not checked: not possible, or not needed.
    Skipped,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Passed => "ok",
            Self::Warning => "warning",
            Self::Failed(_) => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// Result of one check.
struct Check {
    name: &'static str,
    status: Status,
    fact: String,
    /// Next step.
    next: Option<String>,
}

impl Check {
    fn text(&self, column: &str) -> String {
        match column {
            "status" => self.status.word().to_owned(),
            "name" => self.name.to_owned(),
            "fact" => self.fact.clone(),
            _ => self.next.clone().unwrap_or_default(),
        }
    }
}

/// Results so far. Each is printed at once, except with `--json` and `--columns`.
pub(super) struct Findings<'a> {
    out: &'a Output,
    checks: Vec<Check>,
}

impl<'a> Findings<'a> {
    pub(super) fn new(out: &'a Output) -> Self {
        Self { out, checks: Vec::new() }
    }

    pub(super) fn add(
        &mut self,
        name: &'static str,
        status: Status,
        fact: &str,
        next: Option<&str>,
    ) -> Result<(), Failure> {
        let check = Check { name, status, fact: printable(fact), next: next.map(printable) };
        if !self.out.json && self.out.chosen().is_empty() {
            output::print(&self.line(&check))?;
        }
        self.checks.push(check);
        Ok(())
    }

    pub(super) fn failed(&mut self, name: &'static str, failure: &Failure) -> Result<(), Failure> {
        let (problem, next) = failure.problem_and_hint();
        self.add(name, Status::Failed(failure.exit_code()), &problem, next.as_deref())
    }

    fn line(&self, check: &Check) -> String {
        let word = check.status.word();
        let next = check.next.as_deref().unwrap_or("");
        let Some(width) = self.out.width() else {
            return format!("{word}\t{}\t{}\t{next}\n", check.name, check.fact);
        };
        let (sign, style) = match check.status {
            Status::Passed => ("✓", style::SUCCESS),
            Status::Warning => ("!", style::WARNING),
            Status::Failed(_) => ("✗", style::ERROR),
            Status::Skipped => ("-", style::DIM),
        };
        let next = if next.is_empty() { String::new() } else { format!(": {next}") };
        let text = wrapped(&" ".repeat(HEAD), &format!("{}{next}", check.fact), width);
        // Escape sequences of colours have no width, so the first line gets its beginning afterwards.
        let text = text.get(HEAD..).unwrap_or_default();
        format!("{} {:<NAME$} {text}", self.out.paint.with(style, sign), check.name)
    }

    /// Prints the rest. The error has the exit code of the most severe failure.
    pub(super) fn end(self) -> Result<(), Failure> {
        let bad: Vec<u8> = self
            .checks
            .iter()
            .filter_map(|check| if let Status::Failed(code) = check.status { Some(code) } else { None })
            .collect();
        if self.out.json {
            let check = |check: &Check| json!({"name": check.name, "status": check.status.word(), "fact": check.fact, "next": check.next});
            let checks: Vec<_> = self.checks.iter().map(check).collect();
            let diagnosis = json!({"object": "diagnosis", "ok": bad.is_empty(), "checks": checks});
            self.out.json(&diagnosis.to_string())?;
        } else if !self.out.chosen().is_empty() {
            let columns = self.out.columns_or(&COLUMNS);
            let rows = self.checks.iter().map(|check| columns.iter().map(|column| check.text(column)).collect());
            self.out.rows(&columns, &rows.collect::<Vec<Vec<String>>>())?;
        }
        match BY_SEVERITY.into_iter().find(|code| bad.contains(code)).or_else(|| bad.first().copied()) {
            Some(exit_code) => Err(Failure::Checks { failed: bad.len(), exit_code }),
            None => Ok(()),
        }
    }
}
