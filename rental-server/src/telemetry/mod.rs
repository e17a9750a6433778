//! Sends spans to an OpenTelemetry collector (OTLP over HTTP with protobuf), if `--otlp-endpoint` names one. Metrics are scraped.
//!
//! A request only puts its span into a bounded queue: when that is full, the span is dropped and counted. One background task
//! sends batches; while the collector does not answer, it keeps nothing but the queue and says so once a minute. Spans have
//! method, route, status, duration and organization: no key, no body, no address, no personal data.

mod headers;
mod protobuf;
mod spans;

pub(crate) use headers::headers;
pub(crate) use spans::{Span, What};

use self::protobuf::Message;
use crate::outgoing::{
    Resolver,
    client::{self, Client},
};
use http_body_util::Full;
use hyper::{
    Method, Request, Uri,
    header::{CONTENT_TYPE, HeaderMap, HeaderValue},
};
use prometheus_client::{metrics::counter::Counter, registry::Registry};
use std::{
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::mpsc::{Receiver, Sender, channel},
    time::{Instant, timeout, timeout_at},
};
use url::Url;

/// Spans that wait to be sent. Further ones are dropped.
const QUEUE: usize = 4096;
/// Most spans in one request to the collector.
const MOST_SPANS: usize = 512;
/// Time for one request to the collector.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Most bytes that are read of a response, whose body says nothing.
const MOST_READ: usize = 64 * 1024;
/// Time to send what is left when the server stops.
const FAREWELL: Duration = Duration::from_secs(3);
/// Time between two log lines about a collector that takes nothing.
const BETWEEN_LINES: Duration = Duration::from_secs(60);

/// Where spans go, and how often.
#[derive(Clone, Debug)]
pub(crate) struct Collector {
    pub(crate) url: Url,
    pub(crate) interval: Duration,
    /// Headers of every message, such as a token.
    pub(crate) headers: HeaderMap,
}

/// The way to the collector. Without one, nothing is recorded.
#[derive(Clone, Default)]
pub(crate) struct Telemetry {
    export: Option<Arc<Export>>,
    /// Spans that did not reach the collector.
    dropped: Counter,
}

struct Export {
    client: Client,
    traces: Uri,
    /// Headers of every message.
    headers: HeaderMap,
    interval: Duration,
    source: Message,
    sender: Sender<Span>,
    waiting: tokio::sync::Mutex<Waiting>,
    /// When the log last had a line about a failure.
    logged: Mutex<Option<Instant>>,
}

/// What the task that sends works on. It outlives the task.
struct Waiting {
    queue: Receiver<Span>,
    batch: Vec<Span>,
}

impl Telemetry {
    pub(crate) fn to(collector: Option<&Collector>) -> Result<Self, String> {
        let export = collector.map(Export::new).transpose()?.map(Arc::new);
        Ok(Self { export, dropped: Counter::default() })
    }

    /// Whether spans are recorded.
    pub(crate) fn is_on(&self) -> bool {
        self.export.is_some()
    }

    /// Records a span. Never waits.
    pub(crate) fn record(&self, span: Span) {
        if let Some(export) = &self.export
            && export.sender.try_send(span).is_err()
        {
            self.dropped.inc();
        }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "otlp_spans_dropped",
            "Spans that did not reach the collector: the queue was full, or the collector did not take them",
            self.dropped.clone(),
        );
    }

    /// Sends for ever.
    pub(crate) async fn run(&self) {
        let Some(export) = &self.export else { return std::future::pending().await };
        let mut waiting = export.waiting.lock().await;
        let Waiting { queue, batch } = &mut *waiting;
        loop {
            let next = Instant::now() + export.interval;
            while batch.len() < MOST_SPANS {
                let room = MOST_SPANS - batch.len();
                // Late, or closed.
                if timeout_at(next, queue.recv_many(batch, room)).await.unwrap_or(0) == 0 {
                    break;
                }
            }
            self.send_spans(export, batch).await;
        }
    }

    /// Sends what is left, for a moment. The task must have ended.
    pub(crate) async fn flush(&self) {
        let Some(export) = &self.export else { return };
        let rest = async {
            let mut waiting = export.waiting.lock().await;
            let Waiting { queue, batch } = &mut *waiting;
            while batch.len() < QUEUE
                && let Ok(span) = queue.try_recv()
            {
                batch.push(span);
            }
            self.send_spans(export, batch).await;
        };
        // What the collector does not take now is lost.
        let _ = timeout(FAREWELL, rest).await;
    }

    async fn send_spans(&self, export: &Export, batch: &mut Vec<Span>) {
        if !batch.is_empty() {
            if !export.send(batch).await {
                self.dropped.inc_by(batch.len() as u64);
            }
            batch.clear();
        }
    }
}

impl Export {
    fn new(collector: &Collector) -> Result<Self, String> {
        // The operator names the collector, so its address may be a private one.
        let client = client::new(Resolver::new(true, TIMEOUT), (MOST_READ, 1), TIMEOUT, &Arc::default())?;
        let mut traces = collector.url.clone();
        traces.set_path(&format!("{}/v1/traces", collector.url.path().trim_end_matches('/')));
        let traces = Uri::try_from(traces.as_str()).map_err(|error| format!("cannot use --otlp-endpoint: {error}"))?;
        let mut headers = collector.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        let (sender, queue) = channel(QUEUE);
        Ok(Self {
            client,
            traces,
            headers,
            interval: collector.interval,
            source: spans::source(),
            sender,
            waiting: tokio::sync::Mutex::new(Waiting { queue, batch: Vec::new() }),
            logged: Mutex::default(),
        })
    }

    /// Sends a batch; whether the collector took it. A failure is logged, once a minute at most.
    async fn send(&self, batch: &[Span]) -> bool {
        let mut request = Request::new(Full::from(spans::request(batch, &self.source)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.traces.clone();
        *request.headers_mut() = self.headers.clone();
        let why = match timeout(TIMEOUT, self.client.request(request)).await {
            Ok(Ok(response)) if response.status().is_success() => return true,
            Ok(Ok(response)) => format!("it answered with {}", response.status()),
            Ok(Err(error)) => first_cause(&error),
            Err(_) => format!("it did not answer within {} s", TIMEOUT.as_secs()),
        };
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.is_none_or(|logged| logged.elapsed() >= BETWEEN_LINES) {
            *logged = Some(Instant::now());
            tracing::warn!(
                why,
                "the collector of --otlp-endpoint takes no data; requests go on, and it is tried again"
            );
        }
        false
    }
}

fn first_cause(mut error: &dyn Error) -> String {
    while let Some(cause) = error.source() {
        error = cause;
    }
    error.to_string()
}
