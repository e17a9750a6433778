//! Numbers about calendar feeds, as they were last counted.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};
use rental_core::operations::calendar_feed_counts::FeedCounts;
use std::sync::atomic::AtomicU64;

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct State {
    state: &'static str,
}

/// The gauges of calendar feeds.
#[derive(Clone, Default)]
pub(crate) struct FeedGauges {
    feeds: Family<State, Gauge>,
    oldest: Gauge<f64, AtomicU64>,
}

impl FeedGauges {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let gauges = Self::default();
        registry.register("calendar_feeds", "Calendar feeds by state", gauges.feeds.clone());
        registry.register_with_unit(
            "calendar_feed_oldest_success_age",
            "Time since the last successful reading of the calendar feed where that is the longest ago",
            Unit::Seconds,
            gauges.oldest.clone(),
        );
        gauges.set(&FeedCounts::default());
        gauges
    }

    pub(crate) fn set(&self, counts: &FeedCounts) {
        let FeedCounts { working, failing, pending, paused, oldest_success_millis } = *counts;
        for (state, count) in [("working", working), ("failing", failing), ("pending", pending), ("paused", paused)] {
            self.feeds.get_or_create(&State { state }).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        self.oldest.set(oldest_success_millis as f64 / 1000.0);
    }
}
