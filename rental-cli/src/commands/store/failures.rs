//! Failures of stores and backups, with the next step.

use crate::failure::Failure;
use rental_core::{
    check::{Remedy, Report},
    store::{OLDEST_VERSION, Place, SCHEMA_VERSION, StoreError, archive::ArchiveError},
};
use std::path::Path;

/// What the message about an empty file has.
const EMPTY: &str = "is empty (0 bytes)";

/// The next step after a check or a repair that found or left problems.
pub(super) fn next_step(report: &Report) -> &'static str {
    let has = |remedy| report.remedies.contains_key(&remedy);
    if has(Remedy::Backup) {
        "restore the last good backup with `rental-cli store restore`; docs/backup.md says what no repair mends (\"What a repair does\")"
    } else if has(Remedy::Repair) {
        "keep a copy of the file, then restore the last good backup with `rental-cli store restore`, or keep what is sound with `rental-cli store repair`"
    } else if has(Remedy::Decision) {
        "a person must decide: start the server, then change an object that each line names (of two rentals on one night, cancel one or give it other days; an operator without a token gets one with `rental-cli operators rotate`)"
    } else if report.is_sound() {
        "a backup has what is gone; without one there is nothing to do"
    } else {
        "start the server: it mends them at its start"
    }
}

/// Failure of a store that cannot be opened, read or written.
pub(super) fn store_failure(place: &dyn Place, error: StoreError) -> Failure {
    let is_file = place.file().is_some();
    let (kind, hint) = match &error {
        // An empty file has nothing to look at.
        StoreError::DamagedStore(text) if text.contains(EMPTY) => (
            "damaged",
            "restore a backup with `rental-cli store restore`, or remove the file to begin with a new store",
        ),
        StoreError::DamagedStore(_) if is_file => (
            "damaged",
            "restore the last good backup with `rental-cli store restore`, and keep this file until that serves",
        ),
        StoreError::Damaged(_) if is_file => (
            "damaged",
            "`rental-cli store check` has details; restore a backup with `rental-cli store restore`, or remove the row with `rental-cli store repair`",
        ),
        StoreError::Damaged(_) => ("damaged", "restore a backup with `rental-cli store restore`"),
        StoreError::InUse(_) => {
            ("in_use", "stop the server, or use `rental-cli store backup`, which works while it runs")
        }
        StoreError::NeedsUpgrade(_) => (
            "version",
            "back up the data file or the database first; then `rental-cli store upgrade URL` takes it to the present version, or `rental-cli store repair URL` ends a repair",
        ),
        _ => (if is_file { "store" } else { "database" }, place.advice()),
    };
    let problem = match error {
        // The hint has the advice.
        StoreError::DamagedStore(text) => {
            let advice = ["; restore it from a backup", "; check the path, or restore it"];
            let end = advice.iter().filter_map(|advice| text.find(advice)).min();
            text.get(..end.unwrap_or(text.len())).unwrap_or_default().to_owned()
        }
        StoreError::Unavailable(text) | StoreError::InUse(text) | StoreError::NeedsUpgrade(text) => text,
        StoreError::Damaged(row) => row.to_string(),
        other => other.to_string(),
    };
    Failure::Unsuccessful { kind, problem, hint }
}

/// Failure of a backup that cannot be read.
pub(super) fn unusable_backup(file: &Path, error: ArchiveError) -> Failure {
    match error {
        ArchiveError::Io(error) => Failure::Io { doing: format!("read {}", file.display()), error },
        other => Failure::Unsuccessful {
            kind: "backup",
            problem: format!("{}: {other}", file.display()),
            hint: "use another backup; no store was created",
        },
    }
}

/// Failure of a backup whose rows have an unsupported schema version.
pub(super) fn other_version(file: &Path, version: u64) -> Failure {
    Failure::Unsuccessful {
        kind: "version",
        problem: format!(
            "{} has schema version {version}, but this rental-cli supports versions {OLDEST_VERSION} to {SCHEMA_VERSION}; nothing was written",
            file.display()
        ),
        hint: "use the rental-cli of the server that wrote it",
    }
}
