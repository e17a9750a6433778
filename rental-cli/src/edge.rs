//! The clock and randomness of this program, in one place.

use rental_core::value::Timestamp;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// The time of the local clock.
pub(crate) fn now() -> Timestamp {
    timestamp(since_1970())
}

/// The time that is `ahead` of the local clock.
pub(crate) fn time_in(ahead: Duration) -> Timestamp {
    timestamp(since_1970() + ahead)
}

/// The time that the local clock showed so long `ago`; not before 1970.
pub(crate) fn time_ago(ago: Duration) -> Timestamp {
    timestamp(since_1970().saturating_sub(ago))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the command line's one look at the clock: `--expires-in` and `--since` count from now, signatures name it"
)]
fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn timestamp(since_1970: Duration) -> Timestamp {
    Timestamp::from_millis(i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX))
}

/// 244 random bits in hex.
#[expect(clippy::disallowed_methods, reason = "the command line's one source of randomness")]
pub(crate) fn secret_digits() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

/// A name for this program among those that use a database.
#[expect(clippy::disallowed_methods, reason = "the command line's one source of randomness")]
pub(crate) fn server_id() -> Uuid {
    Uuid::new_v4()
}

/// A key that no other request has.
#[expect(clippy::disallowed_methods, reason = "the command line's one source of randomness")]
pub(crate) fn idempotency_key() -> String {
    Uuid::new_v4().to_string()
}
