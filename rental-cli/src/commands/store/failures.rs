//! Failures of stores and backups, with the next step.

use crate::failure::Failure;
use rental_core::store::{StoreError, archive::ArchiveError, redb::IN_USE};
use std::path::Path;

/// Failure of a store that cannot be opened or read.
pub(super) fn store_failure(error: StoreError) -> Failure {
    let (kind, hint) = match &error {
        StoreError::Corrupt(_) => {
            ("damaged", "run `rental-cli store check` for details; restore a backup with `rental-cli store restore`")
        }
        StoreError::Unavailable(text) if text.contains(IN_USE) => {
            ("in_use", "stop the server, or use `rental-cli store backup`, which works while it runs")
        }
        _ => ("store", "check the path, its permissions and the disk"),
    };
    let problem = match error {
        StoreError::Corrupt(text) | StoreError::Unavailable(text) => text,
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
