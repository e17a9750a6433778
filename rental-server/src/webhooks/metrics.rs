//! Numbers about deliveries, for `/metrics`.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use rental_core::webhooks::attempt::Ending;
use std::sync::atomic::AtomicU64;

/// What waits to be delivered.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Backlog {
    /// Events without deliveries yet.
    pub(crate) outbox: u64,
    /// Deliveries to enabled endpoints: due now, or waiting for their next attempt.
    pub(crate) enabled: u64,
    /// Deliveries that are kept for disabled endpoints.
    pub(crate) disabled: u64,
    /// For how long the most overdue delivery to an enabled endpoint has been due; 0 when none is due.
    pub(crate) oldest_due_millis: u64,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Reason {
    reason: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Object {
    object: &'static str,
}

/// Counts of attempts, and the last count of the backlog.
#[derive(Clone, Default)]
pub(crate) struct HookMetrics {
    delivered: Counter,
    refused: Counter,
    unanswered: Counter,
    not_sent: Family<Reason, Counter>,
    /// Endpoints disabled by failures.
    pub(crate) disabled: Counter,
    /// Deliveries that waited for a disabled endpoint until retention ended.
    pub(crate) expired: Counter,
    removed: Family<Object, Counter>,
    seconds: Counter<f64, AtomicU64>,
    outbox: Gauge,
    waiting: Gauge,
    kept: Gauge,
    oldest_due: Gauge<f64, AtomicU64>,
}

impl HookMetrics {
    /// Sets the gauges to a new count of the backlog.
    pub(crate) fn set_backlog(&self, backlog: Backlog) {
        let gauge = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.outbox.set(gauge(backlog.outbox));
        self.waiting.set(gauge(backlog.enabled));
        self.kept.set(gauge(backlog.disabled));
        self.oldest_due.set(backlog.oldest_due_millis as f64 / 1000.0);
    }

    /// Counts objects whose retention ended.
    pub(crate) fn count_removed(&self, object: &'static str, count: u64) {
        self.removed.get_or_create(&Object { object }).inc_by(count);
    }

    /// Counts one attempt.
    pub(crate) fn record(&self, ending: &Ending, duration_ms: u64) {
        if let Some(failure) = ending.local_failure() {
            self.not_sent.get_or_create(&Reason { reason: failure.as_str() }).inc();
            return;
        }
        let counter = match ending {
            _ if ending.is_success() => &self.delivered,
            Ending::Answered { .. } => &self.refused,
            Ending::Failed(_) => &self.unanswered,
        };
        counter.inc();
        self.seconds.inc_by(duration_ms as f64 / 1000.0);
    }

    /// Adds them to the page of metrics.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register("webhook_attempts_delivered", "Attempts answered with 2xx", self.delivered.clone());
        registry.register("webhook_attempts_refused", "Attempts answered otherwise", self.refused.clone());
        registry.register("webhook_attempts_unanswered", "Attempts without an answer", self.unanswered.clone());
        registry.register(
            "webhook_attempts_not_sent",
            "Attempts that this server or its network could not make; they count against no endpoint",
            self.not_sent.clone(),
        );
        registry.register("webhook_attempt_seconds", "Time spent in attempts", self.seconds.clone());
        registry.register(
            "webhook_endpoints_disabled",
            "Endpoints disabled after 20 failures in a row",
            self.disabled.clone(),
        );
        registry.register(
            "webhook_deliveries_expired",
            "Deliveries given up because their endpoint was disabled for longer than they are kept",
            self.expired.clone(),
        );
        registry.register("retention_removed", "Objects removed because their retention ended", self.removed.clone());
        registry.register("webhook_outbox_events", "Events that are not deliveries yet", self.outbox.clone());
        registry.register("webhook_deliveries_waiting", "Deliveries to enabled endpoints", self.waiting.clone());
        registry.register("webhook_deliveries_kept", "Deliveries kept for disabled endpoints", self.kept.clone());
        registry.register(
            "webhook_oldest_due_seconds",
            "For how long the most overdue delivery has been due",
            self.oldest_due.clone(),
        );
    }
}
