//! How long the commits of the store take, and how many batches share one.

use crate::{
    edge,
    histogram::{Bounds, Histogram},
};
use prometheus_client::registry::{Registry, Unit};
use rental_core::store::{CommitObserver, StoreError};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

/// Upper bounds in seconds: from a fast disk to a database whose lock is contended.
const SECONDS: Bounds = [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];
/// Upper bounds of batches in one commit, up to the most that an engine takes.
const BATCHES: Bounds = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 24.0, 32.0, 64.0, 128.0, 256.0];

/// Measures the commits of this server, and refuses them while its clock cannot be trusted.
pub(crate) struct Commits {
    durations: Histogram,
    batches: Histogram,
    began: Mutex<Option<Instant>>,
}

impl Commits {
    pub(super) fn register(registry: &mut Registry) -> Arc<Self> {
        let (durations, batches) = (Histogram::durations(&SECONDS), Histogram::sizes(&BATCHES));
        registry.register_with_unit(
            "store_commit_duration",
            "Time of durable commits, from taking their batches",
            Unit::Seconds,
            durations.clone(),
        );
        registry.register(
            "store_commit_batches",
            "Batches that share a commit: more than one under load",
            batches.clone(),
        );
        Arc::new(Self { durations, batches, began: Mutex::default() })
    }
}

impl CommitObserver for Commits {
    fn admit(&self) -> Result<(), StoreError> {
        if edge::is_right() { Ok(()) } else { Err(StoreError::ClockJumped) }
    }

    fn begun(&self) {
        *self.began.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    fn committed(&self, batches: usize) {
        let began = *self.began.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(began) = began {
            self.durations.observe_duration(began.elapsed());
        }
        self.batches.observe_size(batches);
    }
}
