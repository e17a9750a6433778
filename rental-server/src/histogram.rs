//! Histograms without a lock: requests, attempts and commits add to them.

use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::{MetricType, TypedMetric},
};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Upper bounds of buckets, rising. What is above all of them has a bucket of its own.
pub(crate) type Bounds = [f64; 12];

/// A histogram of durations or of sizes. Clones share their counts.
#[derive(Clone)]
pub(crate) struct Histogram(Arc<Counts>);

struct Counts {
    bounds: &'static Bounds,
    /// By how much `sum` grows for each unit of the bounds.
    scale: f64,
    below: [AtomicU64; 12],
    above: AtomicU64,
    sum: AtomicU64,
}

impl Histogram {
    /// A histogram of durations, with bounds in seconds.
    pub(crate) fn durations(bounds: &'static Bounds) -> Self {
        Self::new(bounds, 1e6)
    }

    /// A histogram of whole numbers.
    pub(crate) fn sizes(bounds: &'static Bounds) -> Self {
        Self::new(bounds, 1.0)
    }

    fn new(bounds: &'static Bounds, scale: f64) -> Self {
        let (below, above, sum) = Default::default();
        Self(Arc::new(Counts { bounds, scale, below, above, sum }))
    }

    pub(crate) fn observe_duration(&self, took: Duration) {
        self.observe(took.as_secs_f64(), u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    pub(crate) fn observe_size(&self, size: usize) {
        self.observe(size as f64, size as u64);
    }

    fn observe(&self, value: f64, part: u64) {
        let bucket = self.0.bounds.iter().zip(&self.0.below).find(|(bound, _)| value <= **bound);
        bucket.map_or(&self.0.above, |(_, count)| count).fetch_add(1, Ordering::Relaxed);
        self.0.sum.fetch_add(part, Ordering::Relaxed);
    }

    /// How much was observed.
    fn count(&self) -> u64 {
        self.buckets().iter().map(|(_, count)| count).sum()
    }

    /// The count of each bucket by its upper bound.
    fn buckets(&self) -> Vec<(f64, u64)> {
        let counts = self.0.below.iter().chain([&self.0.above]).map(|count| count.load(Ordering::Relaxed));
        self.0.bounds.iter().copied().chain([f64::INFINITY]).zip(counts).collect()
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Histogram({})", self.count())
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let buckets = self.buckets();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = self.0.sum.load(Ordering::Relaxed) as f64 / self.0.scale;
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0];

    #[test]
    fn a_bound_belongs_to_its_bucket_and_what_is_above_all_bounds_is_counted() {
        let sizes = Histogram::sizes(&BOUNDS);
        [0, 1, 2, 12, 13, 1000].into_iter().for_each(|size| sizes.observe_size(size));
        let full: Vec<(f64, u64)> = sizes.buckets().into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(full, [(1.0, 2), (2.0, 1), (12.0, 1), (f64::INFINITY, 2)]);
        assert_eq!(sizes.0.sum.load(Ordering::Relaxed), 1028);
    }

    #[test]
    fn durations_are_summed_in_microseconds() {
        let durations = Histogram::durations(&BOUNDS);
        durations.observe_duration(Duration::from_millis(1500));
        assert_eq!((durations.0.sum.load(Ordering::Relaxed), durations.buckets()[1]), (1_500_000, (2.0, 1)));
    }
}
