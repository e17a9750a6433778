//! The one place that reads the wall clock and makes random ids.

use crate::trace_context::TraceId;
use rental_core::{operations::Edge, value::Timestamp};
use std::{
    sync::{
        LazyLock, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};
use uuid::{ContextV7, Uuid};

/// The present time, in milliseconds.
#[expect(clippy::disallowed_methods, reason = "this is the edge")]
pub(crate) fn now() -> Timestamp {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

/// Orders the ids of one millisecond, and continues to rise when the clock is set back.
static IDS: LazyLock<Mutex<ContextV7>> = LazyLock::new(|| Mutex::new(ContextV7::new()));

/// Lets ids rise from this time on, although the clock may be behind it: new objects are newer than those of before.
pub(crate) fn ids_rise_from(newest: Timestamp) {
    let _ = FixedClock(newest).new_id();
}

/// The time at which a request began, the same for all that it does; and new ids.
pub(crate) struct FixedClock(Timestamp);

impl FixedClock {
    pub(crate) fn new() -> Self {
        Self(now())
    }
}

impl Edge for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }

    /// Rises within this process even when the clock is set back.
    fn new_id(&self) -> Uuid {
        let millis = self.0.millis();
        let nanos = u32::try_from(millis % 1000 * 1_000_000).unwrap_or(0);
        let context = IDS.lock().unwrap_or_else(PoisonError::into_inner);
        Uuid::new_v7(uuid::Timestamp::from_unix(&*context, millis / 1000, nanos))
    }
}

/// The present time at each call, for work that takes longer than a request.
pub(crate) struct Clock;

impl Edge for Clock {
    fn now(&self) -> Timestamp {
        now()
    }

    fn new_id(&self) -> Uuid {
        FixedClock::new().new_id()
    }
}

/// 32 random bytes for a secret, from the operating system.
///
/// # Panics
/// When the operating system has no random bytes; ids are made of them as well.
pub(crate) fn secret_bytes() -> [u8; 32] {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).unwrap_or_else(|error| panic!("no random bytes: {error}"));
    bytes
}

/// `req_` and 32 hexadecimal digits, unique among all servers; not a secret.
#[derive(Clone, Copy)]
pub(crate) struct RequestId([u8; 36]);

impl RequestId {
    pub(crate) fn new() -> Self {
        let mut text = *b"req_00000000000000000000000000000000";
        Uuid::from_u128(unique()).simple().encode_lower(&mut text[4..]);
        Self(text)
    }

    pub(crate) fn as_str(&self) -> &str {
        // Always ASCII.
        std::str::from_utf8(&self.0).unwrap_or("")
    }
}

/// The number of a new span of a trace, never 0.
pub(crate) fn new_span() -> u64 {
    // The lower half differs among as many numbers as a process ever makes.
    (unique() as u64).max(1)
}

/// A new trace.
pub(crate) fn new_trace() -> TraceId {
    TraceId(unique().max(1))
}

/// A number that no other call in any process returns.
fn unique() -> u128 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    static SEED: LazyLock<u128> =
        LazyLock::new(|| u128::from_be_bytes(secret_bytes()[..16].try_into().unwrap_or_default()));
    let count = u128::from(COUNT.fetch_add(1, Ordering::Relaxed));
    // An odd multiplier makes different numbers of different counts; the seed tells one process from another.
    SEED.wrapping_add(count.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}
