//! The only place that reads the clock and random numbers.

use rental_core::value::Timestamp;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// Current time of the local clock.
pub(crate) fn now() -> Timestamp {
    timestamp(since_1970())
}

/// Current time plus `ahead`.
pub(crate) fn time_in(ahead: Duration) -> Timestamp {
    timestamp(since_1970() + ahead)
}

/// Current time minus `ago`, at least 1970.
pub(crate) fn time_ago(ago: Duration) -> Timestamp {
    timestamp(since_1970().saturating_sub(ago))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the only place that reads the clock: `--expires-in` and `--since` count from now, signatures contain it"
)]
fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn timestamp(since_1970: Duration) -> Timestamp {
    Timestamp::from_millis(i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX))
}

/// 244 random bits as 64 hex digits.
#[expect(clippy::disallowed_methods, reason = "the only source of randomness")]
pub(crate) fn secret_digits() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

/// A random id of a span, which is not 0 (W3C Trace Context).
#[expect(clippy::disallowed_methods, reason = "the only source of randomness")]
pub(crate) fn span_id() -> u64 {
    Uuid::new_v4().as_u64_pair().1
}

/// A random id of this process among the writers of a database.
#[expect(clippy::disallowed_methods, reason = "the only source of randomness")]
pub(crate) fn server_id() -> Uuid {
    Uuid::new_v4()
}

/// A random idempotency key.
#[expect(clippy::disallowed_methods, reason = "the only source of randomness")]
pub(crate) fn idempotency_key() -> String {
    Uuid::new_v4().to_string()
}
