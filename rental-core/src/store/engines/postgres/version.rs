//! The schema version of a database, which other servers may change at any time.
//!
//! A commit checks the version when it locks the row of `rental.store` (`transaction.rs`). A read checks it in its own
//! statement, without another round trip: [`guard`] fails with a division by zero when the version is another one.

use crate::store::versioned;
use std::sync::{Arc, atomic::AtomicU64};
use tokio_postgres::{Error, error::SqlState};

/// The version that this server expects. It changes only when this server upgrades the store.
pub(super) type Expected = Arc<AtomicU64>;

/// A condition for a statement, which is either true or makes the statement fail. `$n` is the number of its parameter.
macro_rules! guard {
    ($n:literal) => {
        concat!("1 / (SELECT count(*) FROM rental.store WHERE id = 1 AND schema_version = $", $n, ") = 1")
    };
}
pub(super) use guard;

/// Whether a read failed because the store has another version.
pub(super) fn is_of_guard(error: &Error) -> bool {
    error.code() == Some(&SqlState::DIVISION_BY_ZERO)
}

/// The message when the store has another version, so this server can neither read nor write.
pub(super) fn outdated(expected: u64, found: Option<u64>) -> String {
    if let Some(damaged) = found.filter(|version| version.cast_signed() < 0) {
        return versioned::newer_than_this(damaged);
    }
    let now = found.map_or_else(|| "another schema version".to_owned(), |version| format!("schema version {version}"));
    format!(
        "the store has {now} by now, this server works with {expected}: another server has upgraded it; stop this server and \
         start its new version"
    )
}
