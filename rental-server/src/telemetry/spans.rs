//! Spans as OTLP, with the names of the semantic conventions for HTTP.

use crate::{edge, trace_context::TraceParent};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value},
    resource::v1::Resource,
    trace::v1::{ResourceSpans, ScopeSpans, Status, span::SpanKind},
};
use rental_core::value::{OrganizationId, Timestamp};
use std::time::Duration;

/// The codes of a span's status, as OTLP has them.
const UNSET: i32 = 0;
const ERROR: i32 = 2;

/// One request or attempt, when it has ended.
pub(crate) struct Span {
    /// Its trace and its own number.
    pub(crate) context: TraceParent,
    /// The span of the caller.
    pub(crate) parent: Option<u64>,
    pub(crate) began: Timestamp,
    pub(crate) took: Duration,
    pub(crate) organization: Option<OrganizationId>,
    pub(crate) what: What,
}

/// What a span is about.
pub(crate) enum What {
    /// A request to this server: method and path pattern of its endpoint, if it has one.
    Request { endpoint: Option<(&'static str, &'static str)>, status: u16 },
    /// An attempt of a webhook: the type of its event, the status of the response, or why there is none.
    Attempt { event_type: String, status: Option<u16>, error: Option<String> },
}

/// Who sends the spans: this process.
pub(super) fn source() -> Resource {
    let attributes = vec![
        text("service.name", "rental-server"),
        text("service.version", env!("CARGO_PKG_VERSION")),
        text("service.instance.id", &edge::new_trace().to_string()),
    ];
    Resource { attributes, ..Resource::default() }
}

/// The request to the collector with these spans.
pub(super) fn request(spans: &[Span], source: &Resource) -> ExportTraceServiceRequest {
    let scope = InstrumentationScope { name: "rental-server".into(), ..InstrumentationScope::default() };
    let spans = spans.iter().map(to_proto).collect();
    let of_scope = ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() };
    let resource = Some(source.clone());
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans { resource, scope_spans: vec![of_scope], ..ResourceSpans::default() }],
    }
}

fn to_proto(span: &Span) -> opentelemetry_proto::tonic::trace::v1::Span {
    let began = span.began.millis().saturating_mul(1_000_000);
    let took = u64::try_from(span.took.as_nanos()).unwrap_or(u64::MAX);
    let (name, kind, status, mut attributes) = match &span.what {
        What::Request { endpoint, status } => {
            let (method, route) = endpoint.unwrap_or(("_OTHER", ""));
            let mut attributes = vec![text("http.request.method", method)];
            if !route.is_empty() {
                attributes.push(text("http.route", route));
            }
            (format!("{method} {route}").trim_end().to_owned(), SpanKind::Server, Some(*status), attributes)
        }
        What::Attempt { event_type, status, error } => {
            let mut attributes = vec![text("http.request.method", "POST"), text("rental.event.type", event_type)];
            attributes.extend(error.as_deref().map(|error| text("error.type", error)));
            ("webhook attempt".to_owned(), SpanKind::Client, *status, attributes)
        }
    };
    let number = |status: u16| attribute("http.response.status_code", Value::IntValue(status.into()));
    attributes.extend(status.map(number));
    attributes.extend(span.organization.map(|id| text("rental.organization.id", &id.to_string())));
    // A server's span fails with its own errors only, a client's with all.
    let failed = match kind {
        SpanKind::Server => status.is_some_and(|status| status >= 500),
        _ => !status.is_some_and(|status| (200..300).contains(&status)),
    };
    let code = if failed { ERROR } else { UNSET };
    opentelemetry_proto::tonic::trace::v1::Span {
        trace_id: span.context.trace.0.to_be_bytes().to_vec(),
        span_id: span.context.span.to_be_bytes().to_vec(),
        parent_span_id: span.parent.map_or_else(Vec::new, |parent| parent.to_be_bytes().to_vec()),
        flags: u32::from(span.context.sampled),
        name,
        kind: kind.into(),
        start_time_unix_nano: began,
        end_time_unix_nano: began.saturating_add(took),
        attributes,
        status: Some(Status { code, ..Status::default() }),
        ..Default::default()
    }
}

/// An attribute whose value is a text.
fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}
