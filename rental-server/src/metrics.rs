//! The metrics of `/metrics`.

mod commits;
pub(crate) mod exposition;
pub(crate) mod feeds;
mod process;

use crate::{
    access::{failures::Failures, quotas::Tenants},
    backups::Backups,
    damaged_rows::DamagedRows,
    disk::Space,
    histogram::{Bounds, Histogram},
    supervisor::Supervisor,
    telemetry::Telemetry,
    webhooks::metrics::HookMetrics,
};
use commits::Commits;
use exposition::Exposition;
use feeds::FeedGauges;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, info::Info},
    registry::{Registry, Unit},
};
use std::{sync::Arc, time::Duration};

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

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Status {
    status: String,
}

/// The metrics of one endpoint, looked up once, so that a request only adds to atomics.
struct Row {
    /// 2xx, 3xx, 4xx, 5xx.
    by_status: [Counter; 4],
    duration: Histogram,
}

/// Statuses of errors that have a counter of their own.
const ERRORS: [u16; 16] = [400, 401, 403, 404, 405, 408, 409, 412, 413, 415, 422, 429, 431, 500, 502, 503];

/// All metrics of the process.
pub(crate) struct Metrics {
    registry: Registry,
    rows: Vec<Row>,
    unmatched: Row,
    /// Responses with an error, in the order of [`ERRORS`], and one counter for all others.
    errors: [Counter; ERRORS.len() + 1],
    pub(crate) commits: Arc<Commits>,
    pub(crate) feeds: FeedGauges,
    pub(crate) in_flight: Gauge,
    pub(crate) connections: Gauge,
    pub(crate) connections_total: Counter,
    pub(crate) connections_refused: Counter,
    /// Requests that were refused because their organization has its share already.
    pub(crate) crowded: Counter,
    /// How often a connection waited for its organization's turn.
    pub(crate) turn_waits: Counter,
    pub(crate) replays: Counter,
    /// Vehicles whose attachments are to be derived again, at the last look.
    pub(crate) rechecks: Gauge,
}

/// Upper bounds in seconds: from an in-memory read to the request time-out.
const SECONDS: Bounds = [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 30.0];

impl Metrics {
    pub(crate) fn new<'e>(
        endpoints: impl Iterator<Item = (&'e str, &'e str)>,
        (hooks, telemetry): (&HookMetrics, &Telemetry),
        (damaged, space, backups): (&DamagedRows, &Space, &Backups),
        supervisor: &Supervisor,
        (failures, tenants): (&Failures, &Tenants),
    ) -> Self {
        let mut all = Registry::default();
        all.sub_registry_with_prefix("process").register_collector(Box::new(process::Process::new()));
        let registry = all.sub_registry_with_prefix("rental");
        let build = [("version", env!("CARGO_PKG_VERSION")), ("commit", env!("RENTAL_COMMIT"))];
        registry.register(
            "build",
            "Version of the program, and the commit it was built from",
            Info::new(build.to_vec()),
        );
        let (rows, unmatched) = of_endpoints(registry, endpoints);
        let errors = of_errors(registry);
        hooks.register(registry);
        telemetry.register(registry);
        supervisor.register(registry);
        space.register(registry);
        backups.register(registry);
        failures.register(registry);
        tenants.register(registry);
        let (commits, feeds) = (Commits::register(registry), FeedGauges::register(registry));
        let mut counter = |name: &str, help: &str, counter: Counter| {
            registry.register(name, help, counter.clone());
            counter
        };
        counter(
            "damaged_rows",
            "Damaged rows that background work and lists left out, each counted once",
            damaged.counter.clone(),
        );
        let connections_total = counter("http_connections_opened", "Connections accepted", Counter::default());
        let connections_refused = counter(
            "http_connections_refused",
            "Connections closed because their address had too many",
            Counter::default(),
        );
        let crowded = counter(
            "http_requests_crowded",
            "Requests answered with 503 because their organization had its share of those in progress",
            Counter::default(),
        );
        let turn_waits = counter(
            "http_turn_waits",
            "Requests that waited because their organization had its part of the processors",
            Counter::default(),
        );
        let replays = counter("idempotent_replays", "Requests answered from an idempotency record", Counter::default());
        let mut gauge = |name: &str, help: &str| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let in_flight = gauge("http_requests_in_flight", "Requests whose response is not complete");
        let connections = gauge("http_connections", "Open connections");
        let rechecks = gauge(
            "attachments_vehicles_waiting",
            "Vehicles whose automatic attachments are to be derived again, counted each second",
        );
        Self {
            registry: all,
            rows,
            unmatched,
            errors,
            commits,
            feeds,
            in_flight,
            connections,
            connections_total,
            connections_refused,
            crowded,
            turn_waits,
            replays,
            rechecks,
        }
    }

    /// Counts one request. `row` is its endpoint's index in the table, or `None` for an unknown path.
    pub(crate) fn record(&self, row: Option<usize>, status: u16, took: Duration) {
        let row = row.and_then(|row| self.rows.get(row)).unwrap_or(&self.unmatched);
        row.by_status[usize::from(status / 100).clamp(2, 5) - 2].inc();
        row.duration.observe_duration(took);
        if status >= 400 {
            let known = ERRORS.iter().position(|error| *error == status);
            self.errors[known.unwrap_or(ERRORS.len())].inc();
        }
    }

    /// All metrics in this format.
    pub(crate) fn page(&self, exposition: Exposition) -> String {
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => exposition.of(text),
            Err(_) => String::new(),
        }
    }
}

/// The metrics of each endpoint, and those of requests to unknown paths.
fn of_endpoints<'e>(registry: &mut Registry, endpoints: impl Iterator<Item = (&'e str, &'e str)>) -> (Vec<Row>, Row) {
    let requests = Family::<Request, Counter>::default();
    let durations: Family<Endpoint, Histogram, fn() -> Histogram> =
        Family::new_with_constructor(|| Histogram::durations(&SECONDS));
    registry.register("http_requests", "Requests by endpoint and class of status", requests.clone());
    registry.register_with_unit(
        "http_request_duration",
        "Time from the head of a request to its answer",
        Unit::Seconds,
        durations.clone(),
    );
    let row = |method: &str, path: &str| {
        let labels = |status: &str| Request { method: method.into(), path: path.into(), status: status.into() };
        Row {
            by_status: ["2xx", "3xx", "4xx", "5xx"].map(|status| requests.get_or_create(&labels(status)).clone()),
            duration: durations.get_or_create(&Endpoint { method: method.into(), path: path.into() }).clone(),
        }
    };
    (endpoints.map(|(method, path)| row(method, path)).collect(), row("other", "other"))
}

/// The counters of responses with an error.
fn of_errors(registry: &mut Registry) -> [Counter; ERRORS.len() + 1] {
    let errors = Family::<Status, Counter>::default();
    registry.register("http_error_responses", "Responses with an error, by status", errors.clone());
    std::array::from_fn(|at| {
        let status = ERRORS.get(at).map_or_else(|| "other".to_owned(), u16::to_string);
        errors.get_or_create(&Status { status }).clone()
    })
}
