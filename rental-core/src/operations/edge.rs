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
