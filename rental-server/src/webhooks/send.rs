//! One attempt over HTTP, with the guarded client.

use super::settings::Settings;
use crate::{
    edge,
    outgoing::{
        Resolver,
        client::{self, Client, MOST_IDLE},
        failure,
    },
    trace_context::{TraceId, TraceParent},
};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response, Uri,
    body::Incoming,
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT},
};
use rental_core::{
    calendars,
    resources::delivery::{Attempt, EXCERPT},
    value::EventId,
    webhooks::{
        attempt::{Ending, Failure, retry_after},
        target,
    },
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use url::Url;

/// Most bytes of a response's body that are read. The rest is not waited for.
const MOST_READ: usize = 64 * 1024;
/// Time for one reading of a calendar, the body included.
pub(super) const CALENDAR_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends attempts, and reads calendars.
pub(crate) struct Sender {
    receivers: Client,
    /// For a request on a new connection.
    anew: Client,
    pub(super) calendars: Client,
    allow_private: bool,
    https_only: bool,
    timeout: Duration,
    pub(super) user_agent: HeaderValue,
    signature: HeaderName,
    event_id: HeaderName,
    event_type: HeaderName,
}

/// What is sent.
pub(crate) struct Message<'a> {
    pub(crate) url: &'a Url,
    pub(crate) event_id: String,
    pub(crate) event_type: &'a str,
    pub(crate) signature: String,
    /// The attempt as a span of the event's trace.
    pub(crate) trace: TraceParent,
    pub(crate) body: Bytes,
}

/// A new span of an event's trace, for one attempt. The store has no trace of an event; its id is as unique, and the same
/// for all endpoints and attempts.
pub(crate) fn span_of(event: EventId, settings: &Settings) -> TraceParent {
    let sampled = settings.telemetry.is_on();
    TraceParent { trace: TraceId(event.uuid().as_u128()), span: edge::new_span(), sampled }
}

impl Sender {
    pub(crate) fn new(settings: &Settings) -> Result<Self, String> {
        let bad = |_| format!("`{}` cannot be the prefix of a header", settings.brand);
        let name = |suffix: &str| HeaderName::try_from(format!("{}-{suffix}", settings.brand)).map_err(bad);
        let resolver = Resolver::new(settings.allow_private, settings.timeout);
        let open = Arc::default();
        Ok(Self {
            receivers: client::new(resolver.clone(), (MOST_READ, MOST_IDLE), settings.timeout, &open)?,
            anew: client::new(resolver.clone(), (MOST_READ, 0), settings.timeout, &open)?,
            calendars: client::new(resolver, (calendars::MOST_BYTES, MOST_IDLE), CALENDAR_TIMEOUT, &open)?,
            allow_private: settings.allow_private,
            https_only: settings.https_only,
            timeout: settings.timeout,
            user_agent: HeaderValue::try_from(format!("{}-Webhooks/1.0", settings.brand))
                .map_err(|error| error.to_string())?,
            signature: name("Signature")?,
            event_id: name("Event-Id")?,
            event_type: name("Event-Type")?,
        })
    }

    /// Makes one attempt. The time-out covers the request and the response with its body.
    pub(crate) async fn send(&self, message: Message<'_>) -> (Ending, Attempt) {
        let (at, started) = (edge::now(), Instant::now());
        let (ending, response) = match tokio::time::timeout(self.timeout, self.exchange(message)).await {
            Ok(Ok((ending, excerpt))) => (ending, Some(excerpt)),
            Ok(Err(failure)) => (Ending::Failed(failure), None),
            Err(_) => (Ending::Failed(Failure::TimedOut), None),
        };
        let (status, error) = match &ending {
            Ending::Answered { status, .. } => (Some(*status), None),
            Ending::Failed(failure) => (None, Some(failure.as_str().to_owned())),
        };
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        (ending, Attempt { at, duration_ms, status, error, response })
    }

    async fn exchange(&self, message: Message<'_>) -> Result<(Ending, String), Failure> {
        let host = self.allowed(message.url)?;
        let value = |text: &str| HeaderValue::try_from(text).map_err(|_| Failure::BadAnswer);
        let request = Request::post(host)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(ACCEPT, HeaderValue::from_static("*/*"))
            .header(USER_AGENT, &self.user_agent)
            .header(&self.signature, value(&message.signature)?)
            .header(&self.event_id, value(&message.event_id)?)
            .header(&self.event_type, value(message.event_type)?)
            .header("traceparent", value(&message.trace.to_string())?)
            .body(Full::new(message.body))
            .map_err(|_| Failure::BadAnswer)?;
        let response = match self.receivers.request(request.clone()).await {
            // Receivers close connections that were silent for a while. A delivery has an id, so this one can come twice.
            Err(error) if client::is_closed_after_use(&error) => self.anew.request(request).await,
            outcome => outcome,
        };
        let response = response.map_err(|error| failure(&error, error.is_connect()))?;
        let asked = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = asked.and_then(|asked| retry_after(asked, edge::now()));
        let ending = Ending::Answered { status: response.status().as_u16(), retry_after };
        let excerpt = excerpt(response).await.map_err(|error| failure(&error, false))?;
        Ok((ending, excerpt))
    }

    /// The URL for the client, unless it may not be connected to.
    pub(super) fn allowed(&self, url: &Url) -> Result<Uri, Failure> {
        // Saved before the operator forbade it.
        if self.https_only && url.scheme() != "https" {
            return Err(Failure::HttpsRequired);
        }
        // A literal address never reaches the resolver, so it is checked here. The resolver checks names.
        if !self.allow_private && target::check_host(url).is_err() {
            return Err(Failure::AddressForbidden);
        }
        url.as_str().parse().map_err(|_| Failure::BadAnswer)
    }
}

/// The beginning of the body. The body is read to its end, up to the limit, so that the connection can be used again.
async fn excerpt(response: Response<Incoming>) -> hyper::Result<String> {
    let (mut body, mut kept, mut read) = (response.into_body(), Vec::new(), 0);
    while read < MOST_READ {
        let Some(frame) = body.frame().await else { break };
        let Ok(chunk) = frame?.into_data() else { continue };
        read += chunk.len();
        let room = EXCERPT.saturating_sub(kept.len());
        kept.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }
    Ok(String::from_utf8_lossy(&kept).into_owned())
}
