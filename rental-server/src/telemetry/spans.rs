//! Spans as OTLP, with the names of the semantic conventions for HTTP.

use super::protobuf::Message;
use crate::{edge, trace_context::TraceParent};
use rental_core::value::{OrganizationId, Timestamp};
use std::time::Duration;

// Values of OTLP's enumerations `SpanKind` and `StatusCode`.
const SERVER: u32 = 2;
const CLIENT: u32 = 3;
const UNSET: u32 = 0;
const ERROR: u32 = 2;

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

/// Who sends the spans: this process, a `Resource`.
pub(super) fn source() -> Message {
    let attributes = [
        text("service.name", "rental-server"),
        text("service.version", env!("CARGO_PKG_VERSION")),
        text("service.instance.id", &edge::new_trace().to_string()),
    ];
    attributes.iter().fold(Message::default(), |resource, attribute| resource.message(1, attribute))
}

/// The request to the collector with these spans, an `ExportTraceServiceRequest`.
pub(super) fn request(spans: &[Span], source: &Message) -> Vec<u8> {
    let scope = Message::default().bytes(1, "rental-server");
    let of_scope = Message::default().message(1, &scope);
    let of_scope = spans.iter().fold(of_scope, |of_scope, span| of_scope.message(2, &message(span)));
    let of_resource = Message::default().message(1, source).message(2, &of_scope);
    Message::default().message(1, &of_resource).into_bytes()
}

/// A `Span`.
fn message(span: &Span) -> Message {
    let began = span.began.millis().saturating_mul(1_000_000);
    let took = u64::try_from(span.took.as_nanos()).unwrap_or(u64::MAX);
    let (name, kind, status, mut attributes) = match &span.what {
        What::Request { endpoint, status } => {
            let (method, route) = endpoint.unwrap_or(("_OTHER", ""));
            let mut attributes = vec![text("http.request.method", method)];
            if !route.is_empty() {
                attributes.push(text("http.route", route));
            }
            (format!("{method} {route}").trim_end().to_owned(), SERVER, Some(*status), attributes)
        }
        What::Attempt { event_type, status, error } => {
            let mut attributes = vec![text("http.request.method", "POST"), text("rental.event.type", event_type)];
            attributes.extend(error.as_deref().map(|error| text("error.type", error)));
            ("webhook attempt".to_owned(), CLIENT, *status, attributes)
        }
    };
    let number = |status: u16| attribute("http.response.status_code", &Message::default().number(3, status.into()));
    attributes.extend(status.map(number));
    attributes.extend(span.organization.map(|id| text("rental.organization.id", &id.to_string())));
    // A server's span fails with its own errors only, a client's with all.
    let failed = match kind {
        SERVER => status.is_some_and(|status| status >= 500),
        _ => !status.is_some_and(|status| (200..300).contains(&status)),
    };
    let parent = span.parent.map_or_else(Vec::new, |parent| parent.to_be_bytes().to_vec());
    let written = Message::default()
        .bytes(1, span.context.trace.0.to_be_bytes())
        .bytes(2, span.context.span.to_be_bytes())
        .bytes(4, parent)
        .bytes(5, name)
        .number(6, kind)
        .fixed_64(7, began)
        .fixed_64(8, began.saturating_add(took))
        .message(15, &Message::default().number(3, if failed { ERROR } else { UNSET }))
        .fixed_32(16, span.context.sampled.into());
    attributes.iter().fold(written, |written, attribute| written.message(9, attribute))
}

/// An attribute whose value is a text.
fn text(key: &str, value: &str) -> Message {
    attribute(key, &Message::default().bytes(1, value))
}

/// A `KeyValue`; the value is an `AnyValue`.
fn attribute(key: &str, value: &Message) -> Message {
    Message::default().bytes(1, key).message(2, value)
}
