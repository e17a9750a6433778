//! Failures of stores and backups, with the next step.

use crate::failure::Failure;
use rental_core::store::{StoreError, archive::ArchiveError, redb::IN_USE};
use std::path::Path;

/// The command that the core names when a store has an older version.
pub(super) const UPGRADE_COMMAND: &str = "rental-cli store upgrade";

/// Failure of a store that cannot be opened or read.
pub(super) fn store_failure(error: StoreError) -> Failure {
    let (kind, hint) = match &error {
        StoreError::DamagedStore(_) | StoreError::Damaged(_) => {
            ("damaged", "run `rental-cli store check` for details; restore a backup with `rental-cli store restore`")
        }
        StoreError::Unavailable(text) if text.contains(IN_USE) => {
            ("in_use", "stop the server, or use `rental-cli store backup`, which works while it runs")
        }
        StoreError::Unavailable(text) if text.contains(UPGRADE_COMMAND) => (
            "version",
            "back up the data file or the database first; then `rental-cli store upgrade URL` takes it to the present version",
        ),
        _ => ("store", "check the path, its permissions and the disk"),
    };
    let problem = match error {
        StoreError::DamagedStore(text) | StoreError::Unavailable(text) => text,
        StoreError::Damaged(row) => row.to_string(),
        other => other.to_string(),
    };
    Failure::Unsuccessful { kind, problem, hint }
}

/// Failure of a database.
pub(super) fn database_failure(error: StoreError) -> Failure {
    if let StoreError::Unavailable(text) = &error
        && text.contains(UPGRADE_COMMAND)
    {
        return store_failure(error);
    }
    let problem = match error {
        StoreError::DamagedStore(text) | StoreError::Unavailable(text) => text,
        StoreError::Damaged(row) => row.to_string(),
        other => other.to_string(),
    };
    Failure::Unsuccessful {
        kind: "database",
        problem,
        hint: "check the URL, PGPASSWORD or PGPASSFILE, and the database",
    }
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
