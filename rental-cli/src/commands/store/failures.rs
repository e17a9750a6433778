//! What can go wrong with a store or a backup, and what may help.

use crate::failure::Failure;
use rental_core::store::{StoreError, archive::ArchiveError, redb::IN_USE};
use std::path::Path;

/// The words by which a refusal names the command that helps.
const UPGRADE: &str = "rental-cli store upgrade";

/// Whether a store has to be upgraded before it can be used.
pub(super) fn is_older(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable(text) if text.contains(UPGRADE))
}

/// For a store that cannot be opened or read.
pub(super) fn failure(error: StoreError) -> Failure {
    let (kind, hint) = match &error {
        StoreError::Corrupt(_) | StoreError::Damaged(_) => {
            ("damaged", "run `rental-cli store check` for details; restore a backup with `rental-cli store restore`")
        }
        StoreError::Unavailable(text) if text.contains(IN_USE) => {
            ("in_use", "stop the server, or use `rental-cli store backup`, which works while it runs")
        }
        error if is_older(error) => (
            "version",
            "back up the data file or the database first; then `rental-cli store upgrade URL` takes it to the present version",
        ),
        _ => ("store", "check the path, its permissions and the disk"),
    };
    let problem = match error {
        StoreError::Corrupt(text) | StoreError::Unavailable(text) => text,
        StoreError::Damaged(row) => row.to_string(),
        other => other.to_string(),
    };
    Failure::Unsuccessful { kind, problem, hint }
}

/// For a backup that cannot be used.
pub(super) fn unfit(file: &Path, error: ArchiveError) -> Failure {
    match error {
        ArchiveError::Io(error) => Failure::Io { doing: format!("read {}", file.display()), error },
        other => Failure::Unsuccessful {
            kind: "backup",
            problem: format!("{}: {other}", file.display()),
            hint: "use another backup; no store was created",
        },
    }
}
