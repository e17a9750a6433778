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

/// How far the time in a new id may be ahead of the clock of its request, which began before ids of later requests were made.
const AHEAD_MILLIS: i64 = 60_000;

/// The time in an id.
pub(crate) fn id_time(id: Uuid) -> Timestamp {
    Timestamp::from_millis(i64::try_from(id.as_u128() >> 80).unwrap_or(0))
}

/// The `created_at` of an object that is made now: the time in its id, so that a range of times is a range of ids. Ids never go
/// back: once the clock was set back, they are ahead of it, and then it is the time of the clock.
pub(crate) fn created_at(id: Uuid, now: Timestamp) -> Timestamp {
    let in_id = id_time(id);
    if in_id > now.plus_millis(AHEAD_MILLIS) { now } else { in_id }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_dated_by_its_id_unless_ids_are_ahead_of_the_clock() {
        let id = Uuid::from_u128(1_800_000_000_000 << 80);
        let in_id = Timestamp::from_millis(1_800_000_000_000);
        for (behind, expected) in [(0, in_id), (AHEAD_MILLIS, in_id), (-5, in_id)] {
            assert_eq!(created_at(id, in_id.plus_millis(-behind)), expected, "{behind} ms");
        }
        let now = in_id.plus_millis(-AHEAD_MILLIS - 1);
        assert_eq!(created_at(id, now), now);
    }
}
