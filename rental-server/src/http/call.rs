//! One request: its head, and its body when the handler reads it.

use crate::{
    edge::{FixedClock, RequestId},
    http::{problem::Problem, traffic::InFlight},
    trace_context::{TraceId, TraceParent, is_request_id},
};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use rental_core::{
    resources::{audit_entry::Actor, operator::Role},
    value::OrganizationId,
};
use std::{
    borrow::Cow,
    net::IpAddr,
    pin::Pin,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};
use tracing::field::{self, DisplayValue};
use warp::http::{HeaderMap, Method, Request, Uri, Version, header};

/// A request without its body.
///
/// Shared by the connection, the handler and a streamed response: the request counts as in flight until the last of
/// them has dropped it.
pub(crate) struct Call {
    pub(crate) method: Method,
    uri: Uri,
    headers: HeaderMap,
    version: Version,
    /// When the head was read.
    pub(crate) at: Instant,
    /// Whether a body follows.
    has_body: bool,
    pub(crate) request_id: RequestId,
    pub(crate) clock: FixedClock,
    /// Whether the handler waits for the body. A time-out is the client's fault then.
    reading: AtomicBool,
    /// Whether the body was read to its end.
    read: AtomicBool,
    /// Who calls what as an operator. Set after the check of the token; empty for API keys.
    pub(crate) admitted: OnceLock<Admitted>,
    /// The organization of the API key. Set only where spans are recorded.
    pub(crate) organization: OnceLock<OrganizationId>,
    in_flight: InFlight,
}

/// Who calls as an operator, for the audit log.
pub(crate) struct Admitted {
    /// The operation, as the OpenAPI document names it.
    pub(crate) operation: &'static str,
    pub(crate) actor: Actor,
    pub(crate) role: Role,
}

impl Call {
    /// The call of a request with this head; takes the headers out of it.
    pub(super) fn new<B: hyper::body::Body>(request: &mut Request<B>, in_flight: InFlight) -> Self {
        Self {
            method: request.method().clone(),
            uri: request.uri().clone(),
            headers: std::mem::take(request.headers_mut()),
            version: request.version(),
            at: Instant::now(),
            has_body: !request.body().is_end_stream(),
            request_id: RequestId::new(),
            clock: FixedClock::new(),
            reading: AtomicBool::new(false),
            read: AtomicBool::new(false),
            admitted: OnceLock::new(),
            organization: OnceLock::new(),
            in_flight,
        }
    }

    /// Name of the operator who calls; empty for API keys.
    pub(crate) fn actor(&self) -> &str {
        self.admitted.get().map_or("", |admitted| admitted.actor.name())
    }

    /// The raw query, without its `?`.
    pub(crate) fn query(&self) -> &str {
        self.uri.query().unwrap_or("")
    }

    /// The path, as it was sent.
    pub(crate) fn path(&self) -> &str {
        self.uri.path()
    }

    /// The path for logs and messages.
    pub(crate) fn shown_path(&self) -> Cow<'_, str> {
        shown_path(self.path())
    }

    /// Whether the client takes HTML pages, as browsers do. No other client asks for them.
    pub(crate) fn takes_pages(&self) -> bool {
        let mut accepted = self.headers.get_all(header::ACCEPT).iter();
        accepted.any(|types| types.as_bytes().windows(9).any(|part| part.eq_ignore_ascii_case(b"text/html")))
    }

    /// The address that the request comes from: of the peer, or of the client that a trusted proxy names.
    pub(crate) fn client_address(&self) -> IpAddr {
        self.in_flight.traffic().client(&self.headers)
    }

    /// Whether the connection is encrypted.
    pub(super) fn is_secure(&self) -> bool {
        self.in_flight.traffic().is_secure()
    }

    /// The version of HTTP, and the target of the request.
    pub(super) fn version_and_target(&self) -> (Version, &Uri) {
        (self.version, &self.uri)
    }

    /// Whether the client may still send a part of the body. The connection is closed after the response then, and the
    /// response says so (RFC 9112, 9.6).
    pub(crate) fn has_unread_body(&self) -> bool {
        self.has_body && !self.read.load(Ordering::Relaxed)
    }

    /// Whether the handler waits for the body.
    pub(super) fn is_reading(&self) -> bool {
        self.reading.load(Ordering::Relaxed)
    }

    /// Notes that the body was read to its end.
    pub(super) fn body_was_read(&self) {
        self.reading.store(false, Ordering::Relaxed);
        self.read.store(true, Ordering::Relaxed);
    }

    /// Notes that the response is made. Bytes that arrive from now on belong to the next request, unless a part of this
    /// body is unread. A client of HTTP/2 sends frames at any time, so its connection is always closed gently.
    pub(super) fn response_is_made(&self) {
        if !self.has_unread_body() && self.version != Version::HTTP_2 {
            self.in_flight.traffic().all_was_read();
        }
    }

    /// The length of the body, if the client says it.
    pub(crate) fn announced_length(&self) -> Option<usize> {
        self.headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    /// The trace that the client says the request belongs to.
    pub(crate) fn trace_parent(&self) -> Option<TraceParent> {
        static NAME: header::HeaderName = header::HeaderName::from_static("traceparent");
        TraceParent::parse(self.single(&NAME).ok()??)
    }

    /// The id of that trace, as a field of the log.
    pub(super) fn trace_id(&self) -> Option<DisplayValue<TraceId>> {
        self.trace_parent().map(|parent| field::display(parent.trace))
    }

    /// The id that the client gave the request, if it is short and has no special characters.
    pub(super) fn client_request_id(&self) -> Option<&str> {
        client_request_id(&self.headers)
    }

    /// All headers.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// A header that may come at most once; `Err` when it comes more often or is not text.
    pub(crate) fn single(&self, name: &header::HeaderName) -> Result<Option<&str>, ()> {
        single(&self.headers, name)
    }
}

fn single<'h>(headers: &'h HeaderMap, name: &header::HeaderName) -> Result<Option<&'h str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}

/// The id that the client gave a request, if it is short and has no special characters.
pub(super) fn client_request_id(headers: &HeaderMap) -> Option<&str> {
    static NAME: header::HeaderName = header::HeaderName::from_static("x-request-id");
    single(headers, &NAME).ok()?.filter(|id| is_request_id(id))
}

/// Longest part of a path that logs and messages show.
const LONGEST_SHOWN: usize = 64;

/// A path without its long parts, wherever they are: they can be tokens of calendar feeds. Ids are shorter.
pub(super) fn shown_path(path: &str) -> Cow<'_, str> {
    if path.split('/').all(|part| part.len() <= LONGEST_SHOWN) {
        return Cow::Borrowed(path);
    }
    let shown = path.split('/').map(|part| if part.len() <= LONGEST_SHOWN { part } else { "…" });
    Cow::Owned(shown.collect::<Vec<_>>().join("/"))
}

/// A request's body in parts. A trait object, so that no handler is generic over the type of the stream.
pub(crate) type Body<'r> = Pin<&'r mut (dyn Stream<Item = Result<Bytes, Problem>> + Send + 'r)>;

/// Reads a JSON body of at most `limit` bytes.
pub(crate) async fn read_body(call: &Call, body: &mut Body<'_>, limit: usize) -> Result<Bytes, Problem> {
    let too_large = Problem::TooLarge { limit };
    let announced = call.announced_length();
    if announced.is_some_and(|length| length > limit) {
        return Err(too_large);
    }
    if is_encoded(call) {
        return Err(Problem::UnsupportedMediaType(
            "Compressed bodies are not taken. Send the JSON without `Content-Encoding`.",
        ));
    }
    call.reading.store(true, Ordering::Relaxed);
    let mut bytes = BytesMut::with_capacity(announced.unwrap_or(0));
    while let Some(part) = body.next().await {
        let part = part?;
        if bytes.len() + part.len() > limit {
            return Err(too_large);
        }
        bytes.extend_from_slice(&part);
    }
    call.body_was_read();
    if !bytes.is_empty() && !is_json(call) {
        return Err(Problem::UnsupportedMediaType(
            "The body must be JSON. Send the header `Content-Type: application/json`.",
        ));
    }
    Ok(bytes.freeze())
}

/// Whether the body is compressed, or encoded in another way.
pub(super) fn is_encoded(call: &Call) -> bool {
    let encoding = call.headers().get(header::CONTENT_ENCODING);
    encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Whether the type is `application/json` or `application/SOMETHING+json`, in UTF-8. Without a type, JSON is assumed.
fn is_json(call: &Call) -> bool {
    let Ok(Some(value)) = call.single(&header::CONTENT_TYPE) else {
        return !call.headers().contains_key(header::CONTENT_TYPE);
    };
    let value = value.to_ascii_lowercase();
    let mut parts = value.split(';').map(str::trim);
    let essence = parts.next().unwrap_or("");
    let json = essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"));
    json && parts.filter_map(|part| part.strip_prefix("charset=")).all(|charset| charset.trim_matches('"') == "utf-8")
}
