//! Spans as OTLP, with the names of the semantic conventions for HTTP.

use super::parts::{Source, attribute, nanos, scope, text};
use crate::trace_context::TraceParent;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::any_value::Value,
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

/// The request to the collector with these spans.
pub(super) fn request(spans: &[Span], source: &Source) -> ExportTraceServiceRequest {
    let spans = spans.iter().map(to_proto).collect();
    let of_scope = ScopeSpans { scope: scope(), spans, ..ScopeSpans::default() };
    let resource = Some(source.resource.clone());
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans { resource, scope_spans: vec![of_scope], ..ResourceSpans::default() }],
    }
}

fn to_proto(span: &Span) -> opentelemetry_proto::tonic::trace::v1::Span {
    let began = nanos(span.began.millis());
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
