//! From the head of a request to the bytes of its answer.
//!
//! A single warp filter collects the call; it never rejects, so no rejection can decide a status or fall through to
//! another route. Order of checks: `docs/decisions.md`, "Errors".

use crate::{
    app::App,
    http::{
        call::{BodyStream, Call},
        handlers::{self, Handled},
        reply::{self, Problem, Reply},
        run_to_end::RunToEnd,
    },
    routes::Place,
};
use bytes::Buf;
use rental_core::error::Error;
use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::{Arc, atomic::Ordering},
    task::Poll,
};
use warp::{
    Filter,
    http::{HeaderValue, header},
};

/// The filter that serves one request with this head.
pub(crate) fn filter(
    app: Arc<App>,
    call: Arc<Call>,
) -> impl Filter<Extract = (warp::reply::Response,), Error = warp::Rejection> + Clone {
    warp::body::stream().then(move |body| {
        let (app, call) = (Arc::clone(&app), Arc::clone(&call));
        async move { serve(&app, &call, body).await }
    })
}

async fn serve<B: BodyStream + 'static>(app: &Arc<App>, call: &Arc<Call>, body: B) -> warp::reply::Response {
    let (row, outcome) = match app.routes.find(&call.method, call.path()) {
        Ok(place) => (Some(place.row), in_time(app, place, call, body).await),
        Err(problem) => {
            skip_arrived(app, call, pin!(body)).await;
            (None, Err(problem))
        }
    };
    let reply = outcome.unwrap_or_else(|problem| {
        log_problem(&problem, call);
        Reply::problem(&problem, call.request_id.as_str())
    });
    call.response_is_made();
    let mut response = reply::finish(reply, call.request_id.as_str());
    if app.draining.load(Ordering::Relaxed) || call.has_unread_body() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let (status, took) = (response.status().as_u16(), call.at.elapsed());
    app.metrics.record(row, status, took);
    tracing::debug!(request_id = call.request_id.as_str(), method = %call.method, path = call.path(), status, micros = took.as_micros() as u64, "served");
    response
}

/// Handles a request within the request time-out. A request that may change something runs to its end even when its
/// time is over or its client has gone ([`RunToEnd`]).
async fn in_time<B: BodyStream + 'static>(app: &Arc<App>, place: Place, call: &Arc<Call>, body: B) -> Handled {
    if call.method.is_safe() {
        return until_late(app, &place, call, handle(app, &place, call, body)).await;
    }
    let (their_app, their_call, their_place) = (Arc::clone(app), Arc::clone(call), place.clone());
    let work = Box::pin(async move { handle(&their_app, &their_place, &their_call, body).await });
    until_late(app, &place, call, RunToEnd::new(work, Arc::clone(call))).await
}

/// Lets the handler of a row handle the request; a panic becomes a 500.
async fn handle<B: BodyStream>(app: &App, place: &Place, call: &Call, body: B) -> Handled {
    let mut body = pin!(body);
    let found = app.routes.at(place, call.path());
    let outcome = catch_panic(handlers::handle(app, &found, call, body.as_mut())).await;
    if call.has_unread_body() {
        skip_arrived(app, call, body).await;
    }
    outcome.unwrap_or_else(|()| Err(Error::Internal("a handler panicked".into()).into()))
}

async fn until_late(app: &App, place: &Place, call: &Call, handling: impl Future<Output = Handled>) -> Handled {
    let mut handling = pin!(handling);
    // Most requests are answered at once, from memory: only those that wait need a timer.
    let at_once = std::future::poll_fn(|context| Poll::Ready(handling.as_mut().poll(context))).await;
    if let Poll::Ready(outcome) = at_once {
        return outcome;
    }
    if app.routes.endpoints[place.row].action.takes_its_time() {
        return handling.await;
    }
    let deadline = call.at + app.limits.request_timeout;
    tokio::time::timeout_at(deadline.into(), handling).await.unwrap_or_else(|_| {
        Err(if call.is_reading() {
            Problem::BodyTimeout
        } else {
            Error::Unavailable("the request took longer than the request time-out".into()).into()
        })
    })
}

/// Takes what has arrived of a body that nobody wants: if that is all of it, the connection can be used again.
async fn skip_arrived<B: BodyStream>(app: &App, call: &Call, mut body: Pin<&mut B>) {
    // Reading would invite a client to send that waits to be asked (RFC 9110, 10.1.1).
    if call.headers().contains_key(header::EXPECT) {
        return;
    }
    let mut skipped = 0;
    while skipped <= app.limits.max_body {
        match std::future::poll_fn(|context| Poll::Ready(body.as_mut().poll_next(context))).await {
            Poll::Ready(Some(Ok(chunk))) => skipped += chunk.remaining(),
            Poll::Ready(None) => return call.body_was_read(),
            Poll::Ready(Some(Err(_))) | Poll::Pending => return,
        }
    }
}

async fn catch_panic<T>(future: impl Future<Output = T>) -> Result<T, ()> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
        Err(_) => Poll::Ready(Err(())),
    })
    .await
}

pub(super) fn log_problem(problem: &Problem, call: &Call) {
    let (request_id, method, path) = (call.request_id.as_str(), &call.method, call.path());
    match problem {
        Problem::Core(Error::Internal(detail)) => {
            tracing::error!(request_id, %method, path, detail, "a request failed")
        }
        Problem::Core(Error::Damaged(row)) => {
            tracing::error!(request_id, %method, path, %row, "a request failed: a row of the store is damaged")
        }
        Problem::Core(Error::Unavailable(detail)) => {
            tracing::warn!(request_id, %method, path, detail, "a request was turned away")
        }
        other => tracing::debug!(request_id, %method, path, problem = ?other, "a request was refused"),
    }
}
