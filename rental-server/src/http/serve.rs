//! From the head of a request to the bytes of its answer.
//!
//! `server.rs` makes the [`Call`] of the head. A single warp filter adds the body as a stream; it never rejects, so no
//! rejection can decide a status or fall through to another route. Order of checks: `docs/decisions.md`, "Errors".

use crate::{
    damaged_rows::DamagedRows,
    http::{
        call::{Body, Call},
        framing,
        paths::{Paths, Place},
        problem_log::log_problem,
        reply::{self, Handled, Problem, Reply},
        run_to_end::RunToEnd,
    },
    panics::catch_panic,
};
use bytes::{Buf, Bytes};
use futures_util::{Stream, StreamExt};
use prometheus_client::metrics::gauge::Gauge;
use rental_core::error::Error;
use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};
use warp::{
    Filter,
    http::{HeaderName, HeaderValue, Method, header},
};

/// Tells browsers for a year to use this host with TLS only (RFC 6797).
const ONLY_TLS: &str = "max-age=31536000";

/// The reference, from `/`. A proxy can serve both below another path.
const REFERENCE: &str = "docs";

/// What serves the requests that the accept loop takes in.
pub(crate) trait Service: Send + Sync + 'static {
    /// The methods and paths that it serves.
    fn paths(&self) -> &Paths;

    /// Handles one request. Not boxed: a read is answered from memory, and an allocation would be a part of its cost.
    fn handle<'r>(
        &'r self,
        place: &'r Place,
        call: &'r Call,
        body: Body<'r>,
    ) -> impl Future<Output = Handled> + Send + 'r;

    /// Whether the endpoint may take longer than the request time-out: it limits by itself how long it waits.
    fn takes_its_time(&self, place: &Place) -> bool;

    /// Most bytes of a body.
    fn max_body(&self) -> usize;

    /// The longest time for one request.
    fn request_timeout(&self) -> Duration;

    /// Set when the process was asked to stop.
    fn draining(&self) -> &AtomicBool;

    /// Counts and records a request: its endpoint, if it has one, its status, and how long it took.
    fn served(&self, call: &Call, place: Option<&Place>, status: u16, took: Duration);

    /// Counts a request that was turned away because others are in flight.
    fn crowded(&self);

    /// Counts the requests in flight.
    fn in_flight(&self) -> Gauge;

    /// The damaged rows that requests and background work have found.
    fn damaged(&self) -> &Arc<DamagedRows>;

    /// Counts a connection that was opened.
    fn opened(&self);

    /// Counts a connection that was closed.
    fn closed(&self);

    /// Counts a connection that was refused because its address has too many.
    fn refused(&self);
}

/// The filter that serves one request with this head.
pub(super) fn filter<S: Service>(
    service: Arc<S>,
    call: Arc<Call>,
) -> impl Filter<Extract = (warp::reply::Response,), Error = warp::Rejection> + Clone {
    warp::body::stream().then(move |body| {
        let (service, call) = (Arc::clone(&service), Arc::clone(&call));
        async move { serve(&service, &call, body).await }
    })
}

/// A request's body as warp hands it out.
trait Parts: Stream<Item = Result<Self::Part, warp::Error>> + Send + 'static {
    type Part: Buf + Send;
}

impl<P: Stream<Item = Result<B, warp::Error>> + Send + 'static, B: Buf + Send> Parts for P {
    type Part = B;
}

/// The same as bytes.
fn bytes(parts: impl Parts) -> impl Stream<Item = Result<Bytes, Problem>> + Send {
    // The parts are `Bytes` already, so nothing is copied.
    parts.map(|part| part.map(|mut part| part.copy_to_bytes(part.remaining())).map_err(|_| Problem::BodyBroken))
}

async fn serve<S: Service>(service: &Arc<S>, call: &Arc<Call>, parts: impl Parts) -> warp::reply::Response {
    let found = framing::check(call).map(|()| service.paths().find(&call.method, call.path()));
    let (place, outcome) = match found {
        Ok(Ok(place)) => {
            let outcome = in_time(service, &place, call, parts).await;
            (Some(place), outcome)
        }
        // Where its body ends is not certain: nothing behind the head is read.
        Err(problem) => (None, Err(problem)),
        Ok(Err(problem)) => {
            skip_arrived(call, pin!(bytes(parts)), service.max_body()).await;
            let place = opened_page(call, service.paths());
            (None, place.map_or(Err(problem), |place| Ok(Reply::page_is_at(&place))))
        }
    };
    let response = respond(&**service, call, outcome);
    let (status, took) = (response.status().as_u16(), call.at.elapsed());
    service.served(call, place.as_ref(), status, took);
    tracing::debug!(request_id = call.request_id.as_str(), client_request_id = call.client_request_id(), trace_id = call.trace_id(), client = %call.client_address(), method = %call.method, path = &*call.shown_path(), status, micros = took.as_micros() as u64, "served");
    response
}

/// Where the page is that somebody opens by another path: the bare address of the server in a browser, or the path of a page with
/// a slash at its end.
fn opened_page(call: &Call, paths: &Paths) -> Option<String> {
    if !matches!(call.method, Method::GET | Method::HEAD) {
        return None;
    }
    if call.path() == "/" {
        return call.takes_pages().then(|| REFERENCE.to_owned());
    }
    let page = call.path().strip_suffix('/')?;
    if page.strip_prefix('/')?.split('/').next() != Some(REFERENCE) {
        return None;
    }
    paths.find(&Method::GET, page).ok()?;
    // A path behind a proxy can begin with another one, so the place is as seen from the path of the request.
    Some(format!("../{}", page.rsplit('/').next()?))
}

/// The response of warp, with the headers about the connection. A problem is logged.
pub(super) fn respond<S: Service>(service: &S, call: &Call, outcome: Handled) -> warp::reply::Response {
    let reply = outcome.unwrap_or_else(|problem| {
        log_problem(&problem, call, service.damaged());
        Reply::problem(&problem, call.request_id.as_str())
    });
    call.response_is_made();
    let mut response = reply::finish(reply, call.request_id.as_str());
    if service.draining().load(Ordering::Relaxed) || call.has_unread_body() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    add_headers_of_all(&mut response, call.client_request_id(), call.is_secure());
    response
}

/// Adds what every response has: the client's id of the request, if it sent one, and over TLS that clients should stay with TLS.
pub(super) fn add_headers_of_all(
    response: &mut warp::reply::Response,
    client_request_id: Option<&str>,
    is_secure: bool,
) {
    if let Some(id) = client_request_id.and_then(|id| HeaderValue::from_str(id).ok()) {
        response.headers_mut().insert(HeaderName::from_static("x-request-id"), id);
    }
    if is_secure {
        response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(ONLY_TLS));
    }
}

/// Handles a request within the request time-out. A request that may change something runs to its end even when its
/// time is over or its client has gone ([`RunToEnd`]).
async fn in_time<S: Service>(service: &Arc<S>, place: &Place, call: &Arc<Call>, parts: impl Parts) -> Handled {
    if call.method.is_safe() {
        return until_late(&**service, place, call, pin!(handle(&**service, place, call, parts))).await;
    }
    let (theirs, their_call, their_place) = (Arc::clone(service), Arc::clone(call), place.clone());
    let work = Box::pin(async move { handle(&*theirs, &their_place, &their_call, parts).await });
    until_late(&**service, place, call, RunToEnd::new(work, Arc::clone(call), Arc::clone(service.damaged()))).await
}

/// Lets the endpoint handle the request; a panic becomes a 500.
async fn handle<S: Service>(service: &S, place: &Place, call: &Call, parts: impl Parts) -> Handled {
    let mut body = pin!(bytes(parts));
    let outcome = catch_panic(pin!(service.handle(place, call, body.as_mut()))).await;
    if call.has_unread_body() {
        skip_arrived(call, body, service.max_body()).await;
    }
    outcome.unwrap_or_else(|_| Err(Error::Internal("a handler panicked".into()).into()))
}

/// `handling` is pinned by the caller: moved in here, the future of a request would hold it twice.
async fn until_late<S: Service>(
    service: &S,
    place: &Place,
    call: &Call,
    mut handling: impl Future<Output = Handled> + Unpin,
) -> Handled {
    // Most requests are answered at once, from memory: only those that wait need a timer.
    let at_once = std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut handling).poll(context))).await;
    if let Poll::Ready(outcome) = at_once {
        return outcome;
    }
    if service.takes_its_time(place) {
        return handling.await;
    }
    let deadline = call.at + service.request_timeout();
    tokio::time::timeout_at(deadline.into(), handling).await.unwrap_or_else(|_| {
        Err(if call.is_reading() {
            Problem::BodyTimeout
        } else {
            Error::Unavailable("the request took longer than the request time-out".into()).into()
        })
    })
}

/// Takes what has arrived of a body that nobody wants: if that is all of it, the connection can be used again.
async fn skip_arrived(call: &Call, mut body: Body<'_>, most: usize) {
    // Reading would invite a client to send that waits to be asked (RFC 9110, 10.1.1).
    if call.headers().contains_key(header::EXPECT) {
        return;
    }
    let mut skipped = 0;
    while skipped <= most {
        match std::future::poll_fn(|context| Poll::Ready(body.as_mut().poll_next(context))).await {
            Poll::Ready(Some(Ok(part))) => skipped += part.len(),
            Poll::Ready(None) => return call.body_was_read(),
            Poll::Ready(Some(Err(_))) | Poll::Pending => return,
        }
    }
}
