//! The source of time and ids. This crate itself reads no clock and creates no random numbers.

use crate::value::Timestamp;
use uuid::Uuid;

/// The source of time and ids for operations.
pub trait Edge: Send + Sync {
    /// The present time. It must not go back.
    fn now(&self) -> Timestamp;
    /// A new UUIDv7, greater than every earlier one.
    fn new_id(&self) -> Uuid;
}

/// The `created_at` of an object: the time in its id, so that a range of times is a range of ids.
pub(crate) fn created_at(id: Uuid) -> Timestamp {
    Timestamp::from_millis(i64::try_from(id.as_u128() >> 80).unwrap_or(0))
}
