//! Responses before they are sent: status, headers, and a body that is complete or streamed.

use crate::{
    http::{call::Call, problem::render},
    limits::{FairShare, Holder},
};
use bytes::Bytes;
use futures_util::stream;
use rental_core::{error::Error, store::Revision};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    io,
    sync::{Arc, OnceLock},
};
use tokio::sync::mpsc::Receiver;
use warp::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

/// Here as well, because handlers name it together with [`Handled`].
pub(crate) use crate::http::problem::Problem;

/// What a handler returns.
pub(crate) type Handled = Result<Reply, Problem>;

/// Parts of a streamed body. An error breaks the response off, so that the client does not take it for complete.
pub(crate) type Parts = Receiver<io::Result<Bytes>>;

/// A response, before the headers that every response has.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
    pub(crate) headers: HeaderMap,
    /// Sent instead of `body`.
    pub(crate) parts: Option<Parts>,
}

/// Whether a client is told that it shows no valid key, or that it sends too much.
pub(crate) fn turns_away(handled: &Handled) -> bool {
    match handled {
        Ok(reply) => reply.status == StatusCode::TOO_MANY_REQUESTS,
        Err(problem) => problem.failed_authentication().is_some(),
    }
}

/// A document that stays the same while the process runs, with its ETag.
pub(crate) struct Document {
    body: Bytes,
    tag: String,
}

impl Document {
    pub(crate) fn new(body: impl Into<Bytes>) -> Self {
        let body = body.into();
        let tag = format!("\"{}\"", hex::encode(&Sha256::digest(&body)[..16]));
        Self { body, tag }
    }

    /// 404 with this document.
    pub(crate) fn not_found(&self) -> Reply {
        Reply { status: StatusCode::NOT_FOUND, ..Reply::json(self.body.clone()) }
    }

    /// The document as JSON, or 304 when the client has it already. Clients ask each time: an update changes it.
    pub(crate) fn reply(&self, call: &Call) -> Reply {
        let reply = if lists_tag(call.headers(), &header::IF_NONE_MATCH, &self.tag) == Some(true) {
            Reply { status: StatusCode::NOT_MODIFIED, ..Reply::json(Bytes::new()) }
        } else {
            Reply::json(self.body.clone())
        };
        reply.with(header::ETAG, &self.tag).with(header::CACHE_CONTROL, "no-cache")
    }
}

/// Keeps a call until its streamed body is sent or dropped. The accept loop sets it, so that a connection that still
/// sends a response does not count as idle.
#[derive(Clone, Default)]
pub(crate) struct Held(pub(crate) Arc<OnceLock<Arc<Call>>>);

/// Bytes of a body above which it counts against a share until it was sent.
const SMALL_RESPONSE: usize = 16 << 10;

/// Bytes of a response with their part of a share. The connection drops them when the last one was sent.
pub(crate) struct Unsent<P> {
    bytes: Bytes,
    _part: P,
}

impl<P: Send + 'static> Unsent<P> {
    /// The same bytes, which give the part back when they are dropped.
    pub(crate) fn bytes(bytes: Bytes, part: P) -> Bytes {
        Bytes::from_owner(Self { bytes, _part: part })
    }
}

impl<P> AsRef<[u8]> for Unsent<P> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Reply {
    /// 200 with JSON.
    pub(crate) fn json(body: Bytes) -> Self {
        Self { status: StatusCode::OK, body, headers: HeaderMap::with_capacity(6), parts: None }
    }

    /// JSON with the status of a stored response.
    pub(crate) fn stored(status: u16, body: Bytes) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { status, ..Self::json(body) }
    }

    /// Counts a large body for its holder until all of it was sent: a client need not read.
    pub(crate) fn counted(mut self, responses: &Arc<FairShare>, holder: Holder) -> Self {
        if self.body.len() > SMALL_RESPONSE {
            let part = responses.take_anyway(holder, self.body.len());
            self.body = Unsent::bytes(self.body, part);
        }
        self
    }

    /// 304: the client has this revision already.
    pub(crate) fn unchanged(revision: Revision) -> Self {
        Self { status: StatusCode::NOT_MODIFIED, ..Self::json(Bytes::new()) }.with(header::ETAG, &etag(revision))
    }

    /// 302: a page is there, as seen from the path of the request.
    pub(crate) fn page_is_at(relative: &str) -> Self {
        Self { status: StatusCode::FOUND, ..Self::json(Bytes::new()) }.with(header::LOCATION, relative)
    }

    /// 200 with a body that is sent while it is made.
    pub(crate) fn stream(parts: Parts) -> Self {
        Self { parts: Some(parts), ..Self::json(Bytes::new()) }
    }

    /// 200 with an HTML page and its content security policy.
    pub(crate) fn page(body: Bytes, policy: &str) -> Self {
        Self::json(body).into_page(policy)
    }

    /// The same body as an HTML page.
    pub(crate) fn into_page(self, policy: &str) -> Self {
        self.with(header::CONTENT_TYPE, "text/html; charset=utf-8")
            .with(header::CONTENT_SECURITY_POLICY, policy)
            .with(header::REFERRER_POLICY, "no-referrer")
    }

    /// Forbids caches to store the response, unless it has an ETag: clients keep what they can revalidate.
    pub(crate) fn not_stored(self) -> Self {
        if self.headers.contains_key(header::ETAG) { self } else { self.with(header::CACHE_CONTROL, "no-store") }
    }

    /// Removes the ETag: the response is no object.
    pub(crate) fn without_revision(mut self) -> Self {
        self.headers.remove(header::ETAG);
        self
    }

    /// An object with its ETag.
    pub(crate) fn object(body: Bytes, revision: Revision) -> Self {
        Self::json(body).with(header::ETAG, &etag(revision))
    }

    pub(crate) fn with(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }

    /// Adds a new key or secret as the last member, and forbids caches to store it. A replay for an idempotency key does
    /// not have it, because the server does not store it.
    pub(crate) fn showing_once(self, name: &str, secret: &str) -> Self {
        let replayed = self.headers.contains_key("idempotent-replayed");
        if self.status.is_success() && !replayed && self.body.last() == Some(&b'}') {
            return self.adding(name, &json!(secret)).with(header::CACHE_CONTROL, "no-store");
        }
        self
    }

    /// Adds a last member to the object in the body.
    pub(crate) fn adding(mut self, name: &str, value: &Value) -> Self {
        if let Some((b'}', object)) = self.body.split_last() {
            self.body = [object, format!(",\"{name}\":{value}}}").as_bytes()].concat().into();
        }
        self
    }

    /// The response to a problem, with the headers that tell a client what to do next.
    pub(crate) fn problem(problem: &Problem, request_id: &str) -> Self {
        let (status, body) = render(problem, request_id);
        let reply = Self { status, body, headers: HeaderMap::new(), parts: None };
        match problem {
            Problem::Core(Error::Unauthenticated(_)) | Problem::BadToken(_) => {
                reply.with(header::WWW_AUTHENTICATE, "Bearer realm=\"rental\"")
            }
            Problem::Core(Error::IdempotencyInUse | Error::Unavailable(_))
            | Problem::TaskFailing(_)
            | Problem::NotReady { .. }
            | Problem::Crowded => reply.with(header::RETRY_AFTER, "1"),
            Problem::Core(Error::StorageFull | Error::ClockJumped) => reply.with(header::RETRY_AFTER, "5"),
            Problem::MethodNotAllowed { allow } => reply.with(header::ALLOW, allow),
            Problem::TooManyRequests { retry_after, .. } => reply.with(header::RETRY_AFTER, &retry_after.to_string()),
            Problem::UnsupportedMediaType(_) => reply.with(header::ACCEPT, "application/json"),
            Problem::BodyTimeout | Problem::BodyBroken | Problem::TooLarge { .. } => {
                reply.with(header::CONNECTION, "close")
            }
            _ => reply,
        }
    }
}

/// The ETag of a revision (RFC 9110, 8.8.3): strong, because a record's bytes change only with its revision.
pub(crate) fn etag(revision: Revision) -> String {
    format!("\"{revision}\"")
}

/// Whether an `If-Match` or `If-None-Match` header lists this revision, or is `*`. Weak tags match as strong ones do.
pub(crate) fn lists(headers: &HeaderMap, name: &HeaderName, revision: Revision) -> Option<bool> {
    headers.get(name)?;
    lists_tag(headers, name, &etag(revision))
}

/// The same for any tag.
fn lists_tag(headers: &HeaderMap, name: &HeaderName, tag: &str) -> Option<bool> {
    let mut values = headers.get_all(name).iter().peekable();
    values.peek()?;
    let listed = |value: &HeaderValue| {
        let text = value.to_str().unwrap_or("");
        text.split(',').map(str::trim).any(|item| item == "*" || item.trim_start_matches("W/") == tag)
    };
    Some(values.any(listed))
}

/// Adds the headers that every response has, and makes a response of warp.
pub(crate) fn finish(reply: Reply, request_id: &str) -> warp::reply::Response {
    let Reply { status, body, mut headers, parts } = reply;
    if status != StatusCode::NOT_MODIFIED {
        headers.entry(header::CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
    }
    headers.insert(
        HeaderName::from_static("request-id"),
        HeaderValue::from_str(request_id).unwrap_or(HeaderValue::from_static("")),
    );
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(HeaderName::from_static("service-version"), HeaderValue::from_static(rental_core::API_VERSION));
    let mut response = match parts {
        None => warp::Reply::into_response(Response::new(body)),
        Some(mut parts) => {
            let held = Held::default();
            let with_body = held.clone();
            let body = stream::poll_fn(move |context| {
                let _ = &with_body;
                parts.poll_recv(context)
            });
            let mut response = warp::Reply::into_response(warp::reply::stream(body));
            response.extensions_mut().insert(held);
            response
        }
    };
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weak_or_listed_tag_matches_and_another_does_not() {
        let check = |value: &'static str, expected: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_MATCH, HeaderValue::from_static(value));
            assert_eq!(lists(&headers, &header::IF_MATCH, 7), Some(expected), "{value}");
        };
        check("\"7\"", true);
        check("W/\"7\"", true);
        check("\"1\", \"7\"", true);
        check("*", true);
        check("7", false);
        check("\"17\"", false);
        assert_eq!(lists(&HeaderMap::new(), &header::IF_MATCH, 7), None);
    }
}
