//! The metrics of `/metrics`, in the Prometheus text format.

use crate::{
    access::{failures::Failures, quotas::Tenants},
    damaged_rows::DamagedRows,
    disk::Space,
    supervisor::Supervisor,
    webhooks::metrics::HookMetrics,
};
use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet, text::encode},
    metrics::{MetricType, TypedMetric, counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use rental_core::store::WriterStats;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Request {
    method: String,
    path: String,
    status: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Endpoint {
    method: String,
    path: String,
}

/// A histogram of durations without a lock: every request adds to it.
#[derive(Clone, Debug, Default)]
struct Durations(Arc<DurationCounts>);

#[derive(Debug, Default)]
struct DurationCounts {
    /// One for each bound, and one for what is longer than all.
    counts: [AtomicU64; BUCKETS.len() + 1],
    micros: AtomicU64,
}

impl Durations {
    fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = BUCKETS.iter().position(|bound| seconds <= *bound).unwrap_or(BUCKETS.len());
        self.0.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.0.micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

impl TypedMetric for Durations {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Durations {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> std::fmt::Result {
        let bounds = BUCKETS.into_iter().chain([f64::INFINITY]);
        let counts: Vec<(f64, u64)> =
            bounds.zip(self.0.counts.iter().map(|count| count.load(Ordering::Relaxed))).collect();
        let all = counts.iter().map(|(_, count)| count).sum();
        let seconds = self.0.micros.load(Ordering::Relaxed) as f64 / 1e6;
        encoder.encode_histogram::<NoLabelSet>(seconds, all, &counts, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

/// The metrics of one endpoint, looked up once, so that a request only adds to atomics.
struct Row {
    /// 2xx, 3xx, 4xx, 5xx.
    by_status: [Counter; 4],
    duration: Durations,
}

/// All metrics of the process.
pub(crate) struct Metrics {
    registry: Registry,
    rows: Vec<Row>,
    unmatched: Row,
    pub(crate) connections: Gauge,
    pub(crate) connections_total: Counter,
    pub(crate) connections_refused: Counter,
    /// Requests that were refused because their organization has its share already.
    pub(crate) crowded: Counter,
    pub(crate) replays: Counter,
    /// Vehicles whose attachments are to be derived again, at the last look.
    pub(crate) rechecks: Gauge,
    commits: Counter<u64, AtomicU64>,
    batches: Counter<u64, AtomicU64>,
}

/// Upper bounds in seconds: from an in-memory read to the request time-out.
const BUCKETS: [f64; 12] = [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 30.0];

impl Metrics {
    pub(crate) fn new<'e>(
        endpoints: impl Iterator<Item = (&'e str, &'e str)>,
        hooks: &HookMetrics,
        (damaged, space): (&DamagedRows, &Space),
        supervisor: &Supervisor,
        (failures, tenants): (&Failures, &Tenants),
    ) -> Self {
        let mut registry = Registry::with_prefix("rental");
        let requests = Family::<Request, Counter>::default();
        let durations = Family::<Endpoint, Durations>::default();
        registry.register("http_requests", "Requests by endpoint and class of status", requests.clone());
        registry.register(
            "http_request_duration_seconds",
            "Time from the head of a request to its answer",
            durations.clone(),
        );
        let row = |method: &str, path: &str| {
            let labels = |status: &str| Request { method: method.into(), path: path.into(), status: status.into() };
            Row {
                by_status: ["2xx", "3xx", "4xx", "5xx"].map(|status| requests.get_or_create(&labels(status)).clone()),
                duration: durations.get_or_create(&Endpoint { method: method.into(), path: path.into() }).clone(),
            }
        };
        let rows = endpoints.map(|(method, path)| row(method, path)).collect();
        let unmatched = row("other", "other");
        let (connections, connections_total, replays) = (Gauge::default(), Counter::default(), Counter::default());
        let (connections_refused, crowded, rechecks) = (Counter::default(), Counter::default(), Gauge::default());
        hooks.register(&mut registry);
        supervisor.register(&mut registry);
        space.register(&mut registry);
        failures.register(&mut registry);
        tenants.register(&mut registry);
        registry.register(
            "damaged_rows",
            "Damaged rows that background work and lists left out, each counted once",
            damaged.counter.clone(),
        );
        let (commits, batches) = (Counter::default(), Counter::default());
        registry.register("http_connections", "Open connections", connections.clone());
        registry.register("http_connections_opened", "Connections accepted", connections_total.clone());
        registry.register(
            "http_connections_refused",
            "Connections closed because their address had too many",
            connections_refused.clone(),
        );
        registry.register(
            "http_requests_crowded",
            "Requests answered with 503 because their organization had its share of those in progress",
            crowded.clone(),
        );
        registry.register(
            "attachments_vehicles_waiting",
            "Vehicles whose automatic attachments are to be derived again, counted each second",
            rechecks.clone(),
        );
        registry.register("idempotent_replays", "Requests answered from an idempotency record", replays.clone());
        registry.register("store_commits", "Durable commits of the store", commits.clone());
        registry.register(
            "store_batches",
            "Batches in these commits: more than one share a commit under load",
            batches.clone(),
        );
        Self {
            registry,
            rows,
            unmatched,
            connections,
            connections_total,
            connections_refused,
            crowded,
            replays,
            rechecks,
            commits,
            batches,
        }
    }

    /// Counts one request. `row` is its endpoint's index in the table, or `None` for an unknown path.
    pub(crate) fn record(&self, row: Option<usize>, status: u16, took: Duration) {
        let row = row.and_then(|row| self.rows.get(row)).unwrap_or(&self.unmatched);
        row.by_status[usize::from(status / 100).clamp(2, 5) - 2].inc();
        row.duration.observe(took);
    }

    /// The page, with the present numbers of the store.
    pub(crate) fn page(&self, writer: WriterStats) -> String {
        self.commits.inc_by(writer.commits.saturating_sub(self.commits.get()));
        self.batches.inc_by(writer.batches.saturating_sub(self.batches.get()));
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => text,
            Err(_) => String::new(),
        }
    }
}
