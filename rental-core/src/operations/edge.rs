//! What the outside gives to a request: the time, and ids. Nothing in this crate reads a clock or makes up a number.

use crate::value::Timestamp;
use uuid::Uuid;

/// The time and the ids of one request, given by the edge.
pub trait Edge: Send + Sync {
    /// The time of the request.
    fn now(&self) -> Timestamp;
    /// A new UUIDv7, later than every one before it.
    fn new_id(&self) -> Uuid;
}
