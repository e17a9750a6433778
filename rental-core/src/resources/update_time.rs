//! The `updated_at` of a changed object.

use crate::value::Timestamp;

/// The `updated_at` of an object that changes at `now`. It is always later than before, also for two changes within one
/// millisecond or after the clock was set back. So a list by `updated_at` shows the object again.
pub(super) fn later(before: Timestamp, now: Timestamp) -> Timestamp {
    if now > before { now } else { before.plus_millis(1) }
}
