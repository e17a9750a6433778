//! The source of time, ids and random bytes for a platform.

use crate::{error::Error, operations::edge::Edge};

/// The source of time, ids and random bytes for a platform.
///
/// `SystemEdge` (feature `system`) reads those of the operating system. Write your own for tests, or to take them from
/// elsewhere. `now` must not go back. Each id must be a UUID of version 7, greater than every one before it, and carry the
/// present time: lists are ordered by id, and the time in an object's id is its `created_at`.
pub trait PlatformEdge: Edge {
    /// 32 cryptographically random bytes, for API keys and webhook secrets.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when there is no randomness.
    fn random_bytes(&self) -> Result<[u8; 32], Error>;
}
