//! Numbers about deliveries, for `/metrics`.

use crate::histogram::{Bounds, Histogram};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{counter::Counter, family::Family, gauge::ConstGauge},
    registry::{Registry, Unit},
};
use rental_core::{
    resources::{audit_entry, delivery, event, lead},
    webhooks::attempt::{Ending, Failure},
};
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Upper bounds in seconds: from a receiver on the same network to the usual time-out, and longer ones.
const SECONDS: Bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
/// Upper bounds of the delays of deliveries, in seconds: to those of the retry schedule.
const DELAYS: Bounds = [0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 150.0, 900.0, 3600.0, 10_800.0, 86_400.0];

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
    /// Age of the oldest event that an enabled endpoint, or the relay, has not yet; 0 when there is none.
    pub(crate) oldest_event_millis: u64,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Reason {
    reason: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Outcome {
    outcome: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Object {
    object: &'static str,
}

/// Counts of attempts, and the last count of the backlog.
#[derive(Clone)]
pub(crate) struct HookMetrics {
    /// By outcome.
    attempts: Family<Outcome, Histogram, fn() -> Histogram>,
    not_sent: Family<Reason, Counter>,
    /// How long after they were made deliveries were accepted.
    delays: Histogram,
    /// Endpoints disabled by failures.
    pub(crate) disabled: Counter,
    /// Deliveries that waited until retention ended.
    pub(crate) expired: Counter,
    removed: Family<Object, Counter>,
    backlog: Arc<Counted>,
}

/// The last count of the backlog; `None` before the first one, so that no scrape takes it for empty.
#[derive(Debug, Default)]
struct Counted(Mutex<Option<Backlog>>);

impl Collector for Counted {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(backlog) = *self.0.lock().unwrap_or_else(PoisonError::into_inner) else { return Ok(()) };
        let mut gauge = |name: &str, unit: Option<Unit>, help: &str, value: f64| {
            let metric = ConstGauge::new(value);
            metric.encode(encoder.encode_descriptor(name, help, unit.as_ref(), metric.metric_type())?)
        };
        let seconds = |millis: u64| millis as f64 / 1000.0;
        let waiting = "Deliveries to enabled endpoints: due, or waiting for their next attempt.";
        let kept = "Deliveries kept for disabled endpoints.";
        let due = "For how long the most overdue delivery to an enabled endpoint has been due.";
        let age = "Age of the oldest event that an enabled endpoint has not received.";
        gauge("webhook_outbox_events", None, "Events that are not deliveries yet.", backlog.outbox as f64)?;
        gauge("webhook_deliveries_waiting", None, waiting, backlog.enabled as f64)?;
        gauge("webhook_deliveries_kept", None, kept, backlog.disabled as f64)?;
        gauge("webhook_oldest_due", Some(Unit::Seconds), due, seconds(backlog.oldest_due_millis))?;
        gauge("webhook_oldest_undelivered_age", Some(Unit::Seconds), age, seconds(backlog.oldest_event_millis))
    }
}

impl Default for HookMetrics {
    fn default() -> Self {
        let attempts: Family<_, _, fn() -> Histogram> = Family::new_with_constructor(|| Histogram::durations(&SECONDS));
        let (not_sent, removed) = (Family::<Reason, Counter>::default(), Family::<Object, Counter>::default());
        // A counter that appears with its first event has no rate.
        for outcome in ["delivered", "refused", "unanswered"] {
            drop(attempts.get_or_create(&Outcome { outcome }));
        }
        for failure in Failure::UNREACHED {
            drop(not_sent.get_or_create(&Reason { reason: failure.as_str() }));
        }
        for spec in [&event::SPEC, &delivery::SPEC, &lead::SPEC, &audit_entry::SPEC] {
            drop(removed.get_or_create(&Object { object: spec.object }));
        }
        let (disabled, expired, backlog) = Default::default();
        let delays = Histogram::durations(&DELAYS);
        Self { attempts, delays, not_sent, disabled, expired, removed, backlog }
    }
}

impl HookMetrics {
    /// Sets the gauges to a new count of the backlog.
    pub(crate) fn set_backlog(&self, backlog: Backlog) {
        *self.backlog.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(backlog);
    }

    /// Counts objects whose retention ended.
    pub(crate) fn count_removed(&self, object: &'static str, count: u64) {
        self.removed.get_or_create(&Object { object }).inc_by(count);
    }

    /// Counts one attempt. One that reached no address in an outage of this server's network tells nothing about a receiver.
    pub(crate) fn record(&self, ending: &Ending, is_outage: bool, duration_ms: u64) {
        if let Some(failure) = ending.unreached().filter(|_| is_outage) {
            self.not_sent.get_or_create(&Reason { reason: failure.as_str() }).inc();
            return;
        }
        let outcome = match ending {
            _ if ending.is_success() => "delivered",
            Ending::Answered { .. } => "refused",
            Ending::Failed(_) => "unanswered",
        };
        self.attempts.get_or_create(&Outcome { outcome }).observe_duration(Duration::from_millis(duration_ms));
    }

    /// Counts a delivery that its endpoint accepted, so long after it was made.
    pub(crate) fn delivered(&self, delay_ms: u64) {
        self.delays.observe_duration(Duration::from_millis(delay_ms));
    }

    /// Adds them to the page of metrics.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "webhook_attempt_duration",
            "Time of attempts by outcome: delivered (2xx), refused (another status), unanswered",
            Unit::Seconds,
            self.attempts.clone(),
        );
        registry.register_with_unit(
            "webhook_delivery_delay",
            "Time from a delivery to the attempt that its endpoint accepted, with all retries and waiting",
            Unit::Seconds,
            self.delays.clone(),
        );
        registry.register(
            "webhook_attempts_not_sent",
            "Attempts that reached no address while this server's network failed; they count against no endpoint",
            self.not_sent.clone(),
        );
        registry.register(
            "webhook_endpoints_disabled",
            "Endpoints disabled after 20 failures in a row",
            self.disabled.clone(),
        );
        registry.register(
            "webhook_deliveries_expired",
            "Deliveries given up because they waited for longer than deliveries are kept",
            self.expired.clone(),
        );
        registry.register("retention_removed", "Objects removed because their retention ended", self.removed.clone());
        registry.register_collector(Box::new(Arc::clone(&self.backlog)));
    }
}
