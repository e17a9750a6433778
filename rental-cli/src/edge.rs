//! The clock and randomness of this program, in one place.

use rental_core::value::Timestamp;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// The time that is `ahead` of the local clock.
#[expect(
    clippy::disallowed_methods,
    reason = "the command line's one look at the clock: `--expires-in` counts from now"
)]
pub(crate) fn time_in(ahead: Duration) -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from((now + ahead).as_millis()).unwrap_or(i64::MAX))
}

/// A key that no other request has.
#[expect(clippy::disallowed_methods, reason = "the command line's one source of randomness")]
pub(crate) fn idempotency_key() -> String {
    Uuid::new_v4().to_string()
}
