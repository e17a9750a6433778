//! From the head of a request to the bytes of its answer.
//!
//! A single warp filter collects the call; it never rejects, so no rejection can decide a status or fall through to
//! another route. Order of checks: `docs/decisions.md`, "Errors".

use crate::{
    app::App,
    edge::{Moment, RequestId},
    http::{
        call::{Acting, BodyStream, Call, Head},
        handlers,
        reply::{self, Problem, Reply},
    },
    routes::Found,
};
use bytes::Buf;
use rental_core::{error::Error, rows::damage_in_words};
use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
};
use warp::{
    Filter,
    http::{HeaderValue, header},
};

/// The filter that serves one request with this head.
pub(crate) fn filter(
    app: Arc<App>,
    head: Arc<Head>,
) -> impl Filter<Extract = (warp::reply::Response,), Error = warp::Rejection> + Clone {
    warp::method().and(warp::body::stream()).then(move |method, body| {
        let (app, head) = (Arc::clone(&app), Arc::clone(&head));
        async move {
            let (reading, read) = (AtomicBool::new(false), AtomicBool::new(false));
            let (request_id, moment, acting) = (RequestId::new(), Moment::new(), Acting::default());
            let call = Call { method, head, request_id, moment, reading, read, acting };
            serve(&app, call, body).await
        }
    })
}

async fn serve<B: BodyStream>(app: &App, call: Call, body: B) -> warp::reply::Response {
    let mut body = pin!(body);
    let (row, outcome) = match app.routes.find(&call.method, call.path()) {
        Ok(found) => (Some(found.row), guarded(app, &found, &call, body.as_mut()).await),
        Err(problem) => (None, Err(problem)),
    };
    let answer = outcome.unwrap_or_else(|problem| {
        log_problem(&problem, &call);
        Reply::problem(&problem, call.request_id.as_str())
    });
    if call.has_unread_body() {
        skip_arrived(app, &call, body).await;
    }
    let mut response = reply::finish(answer, call.request_id.as_str());
    if app.draining.load(Ordering::Relaxed) || call.has_unread_body() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let (status, took) = (response.status().as_u16(), call.head.at.elapsed());
    app.metrics.record(row, status, took);
    tracing::debug!(request_id = call.request_id.as_str(), method = %call.method, path = call.path(), status, micros = took.as_micros() as u64, "served");
    response
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
            Poll::Ready(None) => return call.read.store(true, Ordering::Relaxed),
            Poll::Ready(Some(Err(_))) | Poll::Pending => return,
        }
    }
}

/// Within the request time-out, and with a panic turned into a 500.
async fn guarded<B: BodyStream>(app: &App, found: &Found<'_, '_>, call: &Call, body: B) -> Result<Reply, Problem> {
    let mut handling = pin!(catch_panic(handlers::handle(app, found, call, body)));
    // Most requests are answered at once, from memory: only those that wait need a timer.
    let at_once = std::future::poll_fn(|context| Poll::Ready(handling.as_mut().poll(context))).await;
    let outcome = match at_once {
        Poll::Ready(outcome) => Ok(outcome),
        Poll::Pending if found.endpoint.action.takes_its_time() => Ok(handling.await),
        Poll::Pending => tokio::time::timeout_at((call.head.at + app.limits.request_timeout).into(), handling).await,
    };
    match outcome {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(())) => Err(Problem::Core(Error::Internal("a handler panicked".into()))),
        Err(_) if call.reading.load(Ordering::Relaxed) => Err(Problem::BodyTimeout),
        Err(_) => Err(Problem::Core(Error::Unavailable("the request took longer than the request time-out".into()))),
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

fn log_problem(problem: &Problem, call: &Call) {
    let (request_id, method, path) = (call.request_id.as_str(), &call.method, call.path());
    match problem {
        Problem::Core(Error::Internal(detail)) => {
            tracing::error!(request_id, %method, path, detail, "a request failed")
        }
        Problem::Core(Error::Damaged(row)) => {
            let row = damage_in_words(row);
            tracing::error!(request_id, %method, path, row, "a request failed: a row of the store is damaged")
        }
        Problem::Core(Error::Unavailable(detail)) => {
            tracing::warn!(request_id, %method, path, detail, "a request was turned away")
        }
        other => tracing::debug!(request_id, %method, path, problem = ?other, "a request was refused"),
    }
}
