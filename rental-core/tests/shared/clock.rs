//! A clock for tests that change things at given hours.

use rental_core::{operations::edge::Edge, value::Timestamp};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use uuid::Uuid;

const BEGIN: i64 = 1_780_272_000_000; // 2026-06-01T00:00:00Z
const HOUR: i64 = 3_600_000;

/// The next id, and the hour that it is.
pub(crate) struct Clock(AtomicU64, AtomicI64);

impl Clock {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(1), AtomicI64::new(0))
    }

    /// Sets it to an hour.
    pub(crate) fn set(&self, hour: i64) {
        self.1.store(hour, Ordering::Relaxed);
    }

    /// The hour that it is.
    pub(crate) fn hour(&self) -> i64 {
        self.1.load(Ordering::Relaxed)
    }
}

impl Edge for Clock {
    fn now(&self) -> Timestamp {
        time(self.hour())
    }

    fn new_id(&self) -> Uuid {
        Uuid::from_u128(1 << 100 | u128::from(self.0.fetch_add(1, Ordering::Relaxed)))
    }
}

/// An instant of June 2026, in hours after its beginning (UTC).
pub(crate) fn time(hours: i64) -> Timestamp {
    Timestamp::from_millis(BEGIN + hours * HOUR)
}

pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
