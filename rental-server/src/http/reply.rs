//! Answers: one exhaustive match from errors to statuses, and the error body (`docs/decisions.md`, "Errors").

use crate::http::call::Call;
use bytes::Bytes;
use futures_util::Stream;
use rental_core::{
    error::{Error, FieldCode, FieldError, FieldErrors, KeyProblem},
    store::Revision,
};
use serde::Serialize;
use std::{
    io,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};
use tokio::sync::mpsc::Receiver;
use uuid::Uuid;
use warp::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

/// Whatever a request is refused for: what the core says, and what only HTTP knows.
#[derive(Clone, Debug)]
pub(crate) enum Problem {
    Core(Error),
    /// The admin token is wrong.
    NotAdmin,
    RouteUnknown {
        hint: String,
    },
    MethodNotAllowed {
        allow: String,
    },
    TooLarge {
        limit: usize,
    },
    UnsupportedMediaType(&'static str),
    BadHeader {
        name: &'static str,
        rule: &'static str,
    },
    TooManyRequests {
        retry_after: u64,
    },
    BodyTimeout,
    BodyBroken,
    /// This background task dies again and again.
    TaskFailing(&'static str),
    /// The store is being upgraded, before the server serves anything.
    StoreUpgrading,
    /// An uploaded file is not what it claims.
    FileRefused(String),
}

/// How the handling of a request ends.
pub(crate) type Handled = Result<Reply, Problem>;

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}

/// Status, `type` and `code` of a problem.
type Class = (StatusCode, &'static str, &'static str);

/// The five `type`s beside `idempotency_error`.
const AUTHENTICATION: &str = "authentication_error";
const PERMISSION: &str = "permission_error";
const REQUEST: &str = "invalid_request_error";
const IDEMPOTENCY: &str = "idempotency_error";
const RATE: &str = "rate_limit_error";
const API: &str = "api_error";

/// Every way in which a request can be refused, for the error catalogue of the documentation.
pub(crate) const CATALOGUE: &[(u16, &str, &str, &str)] = &[
    (400, REQUEST, "body_invalid_json", "The body is not one JSON object. The message says the line and column."),
    (400, REQUEST, "file_refused", "The file is not what its format says. Nothing of it was recorded."),
    (400, REQUEST, "parameter_invalid", "A field or parameter has a value that it does not take."),
    (400, REQUEST, "parameter_missing", "A required field is missing."),
    (400, REQUEST, "parameter_unknown", "There is no such field or parameter, or only the server sets it."),
    (400, REQUEST, "parameter_duplicate", "A field or parameter is sent more than once."),
    (400, REQUEST, "resource_missing", "The body names an object that does not exist."),
    (401, AUTHENTICATION, "api_key_missing", "There is no `Authorization: Bearer` header, or it is garbled."),
    (401, AUTHENTICATION, "api_key_invalid", "There is no such API key."),
    (401, AUTHENTICATION, "api_key_revoked", "The API key was revoked."),
    (401, AUTHENTICATION, "api_key_expired", "The API key has expired."),
    (403, PERMISSION, "plan_required", "API access requires the Pro plan."),
    (403, PERMISSION, "insufficient_scope", "The API key may read, but not write."),
    (404, REQUEST, "resource_missing", "There is no such object."),
    (404, REQUEST, "route_unknown", "There is no such path."),
    (405, REQUEST, "method_not_allowed", "The path exists, but not with this method. `Allow` lists those it has."),
    (408, REQUEST, "request_timeout", "The body did not arrive in time."),
    (
        409,
        REQUEST,
        "vehicle_unavailable",
        "Another rental holds the vehicle on one of these nights; `conflicting_rental_id` names it.",
    ),
    (409, REQUEST, "state_conflict", "What the object is now does not allow this change."),
    (
        409,
        IDEMPOTENCY,
        "idempotency_key_in_use",
        "The first request with this idempotency key still runs. Retry after `Retry-After` seconds.",
    ),
    (412, REQUEST, "precondition_failed", "`If-Match` names another revision than the present one."),
    (413, REQUEST, "request_too_large", "The body is larger than the server takes."),
    (415, REQUEST, "unsupported_media_type", "The body is not `application/json`, or it has a `Content-Encoding`."),
    (422, IDEMPOTENCY, "idempotency_key_reused", "The idempotency key was used for another request."),
    (429, RATE, "rate_limited", "Too many requests with this key. Retry after `Retry-After` seconds."),
    (500, API, "internal_error", "A fault of the server. The request id helps to find it."),
    (
        503,
        API,
        "service_unavailable",
        "The server cannot serve now. Retry after `Retry-After` seconds, with the same idempotency key.",
    ),
    (
        503,
        API,
        "store_upgrading",
        "The server upgrades its store. Retry after `Retry-After` seconds; `/readyz` tells how far the upgrade is.",
    ),
];

fn class(problem: &Problem) -> Class {
    match problem {
        Problem::Core(error) => core_class(error),
        Problem::NotAdmin => (StatusCode::UNAUTHORIZED, AUTHENTICATION, key_code(KeyProblem::Invalid)),
        Problem::RouteUnknown { .. } => (StatusCode::NOT_FOUND, REQUEST, "route_unknown"),
        Problem::MethodNotAllowed { .. } => (StatusCode::METHOD_NOT_ALLOWED, REQUEST, "method_not_allowed"),
        Problem::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, REQUEST, "request_too_large"),
        Problem::UnsupportedMediaType(_) => (StatusCode::UNSUPPORTED_MEDIA_TYPE, REQUEST, "unsupported_media_type"),
        Problem::BadHeader { .. } => (StatusCode::BAD_REQUEST, REQUEST, "parameter_invalid"),
        Problem::TooManyRequests { .. } => (StatusCode::TOO_MANY_REQUESTS, RATE, "rate_limited"),
        Problem::BodyTimeout => (StatusCode::REQUEST_TIMEOUT, REQUEST, "request_timeout"),
        Problem::BodyBroken => (StatusCode::BAD_REQUEST, REQUEST, "body_invalid_json"),
        Problem::FileRefused(_) => (StatusCode::BAD_REQUEST, REQUEST, "file_refused"),
        Problem::TaskFailing(_) => (StatusCode::SERVICE_UNAVAILABLE, API, "service_unavailable"),
        Problem::StoreUpgrading => (StatusCode::SERVICE_UNAVAILABLE, API, "store_upgrading"),
    }
}

fn core_class(error: &Error) -> Class {
    match error {
        Error::Unauthenticated(problem) => (StatusCode::UNAUTHORIZED, AUTHENTICATION, key_code(*problem)), // spec, Errors
        Error::PlanRequired => (StatusCode::FORBIDDEN, PERMISSION, "plan_required"), // spec, Errors
        Error::ScopeRequired => (StatusCode::FORBIDDEN, PERMISSION, "insufficient_scope"), // spec, Errors
        Error::NotFound { .. } => (StatusCode::NOT_FOUND, REQUEST, "resource_missing"),
        Error::Malformed(_) => (StatusCode::BAD_REQUEST, REQUEST, "body_invalid_json"),
        Error::Invalid(errors) => (
            StatusCode::BAD_REQUEST,
            REQUEST,
            errors.listed().first().map_or("parameter_invalid", |first| first.code.as_str()),
        ),
        Error::VehicleUnavailable { .. } => (StatusCode::CONFLICT, REQUEST, "vehicle_unavailable"),
        Error::PreconditionFailed => (StatusCode::PRECONDITION_FAILED, REQUEST, "precondition_failed"),
        Error::Conflict(_) => (StatusCode::CONFLICT, REQUEST, "state_conflict"),
        Error::IdempotencyReused => (StatusCode::UNPROCESSABLE_ENTITY, IDEMPOTENCY, "idempotency_key_reused"),
        Error::IdempotencyInUse => (StatusCode::CONFLICT, IDEMPOTENCY, "idempotency_key_in_use"),
        Error::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, API, "service_unavailable"),
        Error::Damaged(_) | Error::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, API, "internal_error"),
    }
}

fn key_code(problem: KeyProblem) -> &'static str {
    match problem {
        KeyProblem::Missing => "api_key_missing",
        KeyProblem::Invalid => "api_key_invalid",
        KeyProblem::Revoked => "api_key_revoked",
        KeyProblem::Expired => "api_key_expired",
    }
}

fn message(problem: &Problem) -> String {
    match problem {
        Problem::Core(error) => core_message(error),
        Problem::NotAdmin => {
            "This is not the admin token. It lies in the file that the server named at its start.".into()
        }
        Problem::RouteUnknown { hint } => hint.clone(),
        Problem::MethodNotAllowed { allow } => format!("This path does not take that method; it takes {allow}."),
        Problem::TooLarge { limit } => format!("The body is larger than {limit} bytes."),
        Problem::UnsupportedMediaType(rule) => (*rule).to_owned(),
        Problem::BadHeader { name, rule } => format!("The header `{name}` {rule}."),
        Problem::TooManyRequests { retry_after } => {
            format!("Too many requests with this key. Try again in {retry_after} s.")
        }
        Problem::BodyTimeout => "The body did not arrive in time. Send it again.".into(),
        Problem::TaskFailing(task) => format!(
            "The background task `{task}` fails again and again, so this server is not ready. The log says why; restart the \
             server if that does not end it."
        ),
        Problem::StoreUpgrading => {
            "The server is upgrading its store to a new schema version. Try again, with the same idempotency key; /readyz \
             tells how far the upgrade is."
                .into()
        }
        Problem::FileRefused(why) => format!("This file was refused, and nothing of it recorded: {why}."),
        Problem::BodyBroken => "The body could not be read to its end: its framing is broken.".into(),
    }
}

fn core_message(error: &Error) -> String {
    match error {
        Error::Unauthenticated(KeyProblem::Missing) => {
            "No API key. Send it as `Authorization: Bearer <API_KEY>`.".into()
        }
        Error::Unauthenticated(KeyProblem::Invalid) => {
            "This API key does not exist. Check that it was copied whole.".into()
        }
        Error::Unauthenticated(KeyProblem::Revoked) => "This API key was revoked. Use another one.".into(),
        Error::Unauthenticated(KeyProblem::Expired) => "This API key has expired. Use another one.".into(),
        Error::PlanRequired => "API access requires the Pro plan.".into(),
        Error::ScopeRequired => "This API key has the scope `read`; writing needs one with `read_write`.".into(),
        Error::NotFound { object } => format!("There is no such {}.", object.replace('_', " ")),
        Error::Malformed(message) | Error::Conflict(message) | Error::VehicleUnavailable { message, .. } => {
            message.clone()
        }
        Error::Invalid(errors) => invalid_message(errors),
        Error::PreconditionFailed => {
            "The object has changed since the revision in `If-Match`. GET it again, then repeat the change if you still want it.".into()
        }
        Error::IdempotencyReused => {
            "This idempotency key was used for another request. Use a new key for a new request.".into()
        }
        Error::IdempotencyInUse => {
            "The first request with this idempotency key still runs. Try again in a second.".into()
        }
        Error::Unavailable(_) => {
            "The service cannot take this request now. Try again, with the same idempotency key.".into()
        }
        Error::Damaged(_) | Error::Internal(_) => {
            "Something went wrong on our side. The request id helps us to find it.".into()
        }
    }
}

fn invalid_message(errors: &FieldErrors) -> String {
    let first = errors.listed().first().map_or("", |error| &error.message);
    match (errors.listed().len(), errors.unlisted()) {
        (0 | 1, _) => first.to_owned(),
        (listed, 0) => format!("{first} ({} more in `errors`.)", listed - 1),
        (listed, unlisted) => format!("{first} ({} more in `errors`, {unlisted} more not listed.)", listed - 1),
    }
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: Body<'a>,
}

#[derive(Serialize)]
struct Body<'a> {
    r#type: &'a str,
    code: &'a str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<Vec<Item<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conflicting_rental_id: Option<Uuid>,
    request_id: &'a str,
}

#[derive(Serialize)]
struct Item<'a> {
    param: &'a str,
    code: &'a str,
    message: &'a str,
}

/// Status and bytes of the answer to a problem.
pub(crate) fn render(problem: &Problem, request_id: &str) -> (StatusCode, Bytes) {
    let (status, r#type, code) = class(problem);
    let fields: Option<&[FieldError]> = match problem {
        Problem::Core(Error::Invalid(errors)) => Some(errors.listed()),
        _ => None,
    };
    let (param, conflicting_rental_id) = match problem {
        Problem::Core(Error::VehicleUnavailable { rental, .. }) => (Some("vehicle_id"), Some(*rental)),
        Problem::BadHeader { name, .. } => (Some(*name), None),
        _ => (fields.and_then(|fields| fields.first()).map(|first| first.param.as_str()), None),
    };
    let item = |error: &'_ FieldError| -> (String, FieldCode, String) {
        (error.param.clone(), error.code, error.message.clone())
    };
    let items: Option<Vec<_>> = fields.map(|fields| fields.iter().map(item).collect());
    let errors = items.as_ref().map(|items| {
        items.iter().map(|(param, code, message)| Item { param, code: code.as_str(), message }).collect::<Vec<_>>()
    });
    let body = Body { r#type, code, message: message(problem), param, errors, conflicting_rental_id, request_id };
    let bytes = serde_json::to_vec(&Envelope { error: body }).unwrap_or_default();
    (status, bytes.into())
}

/// A finished answer, before the headers that every response carries.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
    pub(crate) headers: HeaderMap,
    /// In the place of `body`.
    pub(crate) stream: Option<Streamed>,
}

/// A body that is made while it is sent. An error in it breaks the answer off.
#[derive(Debug)]
pub(crate) struct Streamed {
    parts: Receiver<io::Result<Bytes>>,
    held: Held,
}

/// What lives as long as a streamed body: the accept loop puts the call here, so that a connection whose response is
/// still being sent does not count as silent.
#[derive(Clone, Default)]
pub(crate) struct Held(pub(crate) Arc<OnceLock<Arc<Call>>>);

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Held")
    }
}

impl Streamed {
    pub(crate) fn new(parts: Receiver<io::Result<Bytes>>) -> Self {
        Self { parts, held: Held::default() }
    }
}

impl Stream for Streamed {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.parts.poll_recv(context)
    }
}

impl Reply {
    /// 200 with JSON.
    pub(crate) fn json(body: Bytes) -> Self {
        Self { status: StatusCode::OK, body, headers: HeaderMap::with_capacity(6), stream: None }
    }

    /// JSON with the status of a stored response.
    pub(crate) fn stored(status: u16, body: Bytes) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { status, ..Self::json(body) }
    }

    /// 304: the client has this revision already.
    pub(crate) fn unchanged(revision: Revision) -> Self {
        Self { status: StatusCode::NOT_MODIFIED, ..Self::json(Bytes::new()) }.with(header::ETAG, &etag(revision))
    }

    /// 200 with a body that is still to be made.
    pub(crate) fn stream(stream: Streamed) -> Self {
        Self { stream: Some(stream), ..Self::json(Bytes::new()) }
    }

    /// 200 with a page that may do no more than `policy` says.
    pub(crate) fn page(body: Bytes, policy: &str) -> Self {
        Self::json(body)
            .with(header::CONTENT_TYPE, "text/html; charset=utf-8")
            .with(header::CONTENT_SECURITY_POLICY, policy)
            .with(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
            .with(header::REFERRER_POLICY, "no-referrer")
    }

    /// For an answer that is no object.
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

    /// Adds a member that is shown in this answer alone, as its last: a key or secret that was just made. The answer
    /// that an idempotency key repeats has no such member, because nobody knows it any more.
    pub(crate) fn showing_once(mut self, name: &str, secret: &str) -> Self {
        let replayed = self.headers.contains_key("idempotent-replayed");
        if self.status.is_success() && !replayed && self.body.last() == Some(&b'}') {
            let object = &self.body[..self.body.len() - 1];
            self.body = [object, format!(",\"{name}\":\"{secret}\"}}").as_bytes()].concat().into();
        }
        self
    }

    /// The answer to a problem, with the headers that tell a client what to do next.
    pub(crate) fn problem(problem: &Problem, request_id: &str) -> Self {
        let (status, body) = render(problem, request_id);
        let reply = Self { status, body, headers: HeaderMap::new(), stream: None };
        match problem {
            Problem::Core(Error::Unauthenticated(_)) | Problem::NotAdmin => {
                reply.with(header::WWW_AUTHENTICATE, "Bearer realm=\"rental\"")
            }
            Problem::Core(Error::IdempotencyInUse | Error::Unavailable(_)) | Problem::TaskFailing(_) => {
                reply.with(header::RETRY_AFTER, "1")
            }
            Problem::MethodNotAllowed { allow } => reply.with(header::ALLOW, allow),
            Problem::TooManyRequests { retry_after } => reply.with(header::RETRY_AFTER, &retry_after.to_string()),
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
    let mut values = headers.get_all(name).iter().peekable();
    values.peek()?;
    let tag = etag(revision);
    let listed = |value: &HeaderValue| {
        let text = value.to_str().unwrap_or("");
        text.split(',').map(str::trim).any(|item| item == "*" || item.trim_start_matches("W/") == tag)
    };
    Some(values.any(listed))
}

/// Adds what every response carries and turns it into bytes on the wire.
pub(crate) fn finish(reply: Reply, request_id: &str) -> warp::reply::Response {
    let Reply { status, body, mut headers, stream } = reply;
    if status != StatusCode::NOT_MODIFIED {
        headers.entry(header::CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
    }
    headers.insert(
        HeaderName::from_static("request-id"),
        HeaderValue::from_str(request_id).unwrap_or(HeaderValue::from_static("")),
    );
    headers.insert(HeaderName::from_static("service-version"), HeaderValue::from_static(rental_core::API_VERSION));
    let mut response = match stream {
        None => warp::Reply::into_response(Response::new(body)),
        Some(stream) => {
            let held = stream.held.clone();
            let mut response = warp::Reply::into_response(warp::reply::stream(stream));
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

    #[test]
    fn the_catalogue_has_every_class_of_field_and_key_error() {
        let known = |code: &str| CATALOGUE.iter().any(|row| row.2 == code);
        for problem in [KeyProblem::Missing, KeyProblem::Invalid, KeyProblem::Revoked, KeyProblem::Expired] {
            assert!(known(key_code(problem)));
        }
        for code in [
            FieldCode::Invalid,
            FieldCode::Missing,
            FieldCode::Unknown,
            FieldCode::Duplicate,
            FieldCode::ResourceMissing,
        ] {
            assert!(known(code.as_str()));
        }
    }
}
