//! The clock, ids and randomness of the operating system. The only file of this crate that reads them.

use super::edge::PlatformEdge;
use crate::{error::Error, operations::edge::Edge, value::Timestamp};
use std::{
    sync::{Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};
use uuid::{ContextV7, Uuid};

/// The clock, ids and randomness of the operating system (feature `system`).
///
/// Ids are UUIDs of version 7. They rise within one `SystemEdge`, also when the clock is set back.
#[derive(Debug)]
pub struct SystemEdge {
    /// Keeps ids of one millisecond ascending.
    ids: Mutex<ContextV7>,
}

impl SystemEdge {
    /// An edge whose ids begin at the present time.
    #[must_use]
    pub fn new() -> Self {
        Self { ids: Mutex::new(ContextV7::new()) }
    }
}

impl Default for SystemEdge {
    fn default() -> Self {
        Self::new()
    }
}

impl Edge for SystemEdge {
    #[expect(clippy::disallowed_methods, reason = "this is the one file of the crate that reads the clock")]
    fn now(&self) -> Timestamp {
        let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }

    fn new_id(&self) -> Uuid {
        let ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that a later call never has an earlier time.
        let millis = self.now().millis();
        let nanos = u32::try_from(millis % 1000 * 1_000_000).unwrap_or(0);
        Uuid::new_v7(uuid::Timestamp::from_unix(&*ids, millis / 1000, nanos))
    }
}

impl PlatformEdge for SystemEdge {
    fn random_bytes(&self) -> Result<[u8; 32], Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)
            .map_err(|error| Error::Unavailable(format!("the operating system gives no random bytes: {error}")))?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_rise_and_carry_the_time() {
        let edge = SystemEdge::new();
        let before = edge.now();
        let ids: Vec<Uuid> = (0..10_000).map(|_| edge.new_id()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
        assert!(crate::operations::id_time(ids[0]) >= before);
    }

    #[test]
    fn random_bytes_differ() {
        let edge = SystemEdge::new();
        assert_ne!(edge.random_bytes().unwrap(), edge.random_bytes().unwrap());
    }
}
