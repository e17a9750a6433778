//! One call, from the head of a request to the bytes of its answer.
//!
//! A single warp filter collects the call; it never rejects, so no rejection can decide a status or fall through to
//! another route. Order of checks: `docs/decisions.md`, "Errors".

use crate::{
    app::App,
    edge::{self, Moment},
    http::{
        handlers,
        reply::{self, Problem, Reply},
    },
    routes::Found,
};
use bytes::{Buf, Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use rental_core::error::Error;
use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Instant,
};
use warp::{
    Filter,
    http::{HeaderMap, HeaderValue, Method, Response, Uri, header},
};

/// The head of a request, and when it was read.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) at: Instant,
}

/// Everything a handler may ask of a request but its body.
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) head: Arc<Head>,
    pub(crate) request_id: String,
    pub(crate) moment: Moment,
    /// Whether the body is being read: who is late then is the client.
    pub(crate) reading: AtomicBool,
    /// Whether the body was read to its end.
    pub(crate) read: AtomicBool,
}

impl Call {
    /// The raw query, without its `?`.
    pub(crate) fn query(&self) -> &str {
        self.head.uri.query().unwrap_or("")
    }

    /// The path, as it was sent.
    pub(crate) fn path(&self) -> &str {
        self.head.uri.path()
    }

    /// Whether a body is still on the way: the connection ends with the answer then, and says so (RFC 9112, 9.6).
    fn has_unread_body(&self) -> bool {
        let headers = self.headers();
        let announced = headers.get(header::CONTENT_LENGTH).is_some_and(|length| length != "0");
        (announced || headers.contains_key(header::TRANSFER_ENCODING)) && !self.read.load(Ordering::Relaxed)
    }

    /// All headers.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// A header that may come at most once; `Err` when it comes more often or is not text.
    pub(crate) fn single(&self, name: &header::HeaderName) -> Result<Option<&str>, ()> {
        let mut values = self.head.headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
            (Some(_), Some(_)) => Err(()),
        }
    }
}

/// The filter that serves everything.
pub(crate) fn filter(app: Arc<App>) -> impl Filter<Extract = (Response<Bytes>,), Error = warp::Rejection> + Clone {
    warp::method().and(warp::ext::get::<Arc<Head>>()).and(warp::body::stream()).then(move |method, head, body| {
        let app = Arc::clone(&app);
        async move {
            let (reading, read) = (AtomicBool::new(false), AtomicBool::new(false));
            let call = Call { method, head, request_id: edge::request_id(), moment: Moment::new(), reading, read };
            serve(&app, call, body).await
        }
    })
}

async fn serve<B: BodyStream>(app: &App, call: Call, body: B) -> Response<Bytes> {
    let mut body = pin!(body);
    let (row, outcome) = match app.routes.find(&call.method, call.path()) {
        Ok(found) => (Some(found.row), guarded(app, &found, &call, body.as_mut()).await),
        Err(problem) => (None, Err(problem)),
    };
    let answer = outcome.unwrap_or_else(|problem| {
        log_problem(&problem, &call);
        Reply::problem(&problem, &call.request_id)
    });
    if call.has_unread_body() {
        skip_arrived(app, &call, body).await;
    }
    let mut response = reply::finish(answer, &call.request_id);
    if app.draining.load(Ordering::Relaxed) || call.has_unread_body() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let (status, took) = (response.status().as_u16(), call.head.at.elapsed());
    app.metrics.record(row, status, took);
    tracing::debug!(request_id = call.request_id, method = %call.method, path = call.path(), status, micros = took.as_micros() as u64, "served");
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
    let (request_id, method, path) = (&call.request_id, &call.method, call.path());
    match problem {
        Problem::Core(Error::Internal(detail)) => {
            tracing::error!(request_id, %method, path, detail, "a request failed")
        }
        Problem::Core(Error::Unavailable(detail)) => {
            tracing::warn!(request_id, %method, path, detail, "a request was turned away")
        }
        other => tracing::debug!(request_id, %method, path, problem = ?other, "a request was refused"),
    }
}

/// A request's body as warp hands it out.
pub(crate) trait BodyStream: Stream<Item = Result<Self::Chunk, warp::Error>> + Send {
    type Chunk: Buf + Send;
}

impl<S, C> BodyStream for S
where
    S: Stream<Item = Result<C, warp::Error>> + Send,
    C: Buf + Send,
{
    type Chunk = C;
}

/// Reads a JSON body of at most `limit` bytes, whatever its framing.
pub(crate) async fn read_body<B: BodyStream>(call: &Call, body: B, limit: usize) -> Result<Bytes, Problem> {
    let too_large = Problem::TooLarge { limit };
    let announced =
        call.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > limit) {
        return Err(too_large);
    }
    if call
        .headers()
        .get(header::CONTENT_ENCODING)
        .is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
    {
        return Err(Problem::UnsupportedMediaType(
            "Compressed bodies are not taken. Send the JSON without `Content-Encoding`.",
        ));
    }
    call.reading.store(true, Ordering::Relaxed);
    let mut body = pin!(body);
    let mut bytes = BytesMut::with_capacity(announced.unwrap_or(0));
    while let Some(chunk) = body.next().await {
        let mut chunk = chunk.map_err(|_| Problem::BodyBroken)?;
        if bytes.len() + chunk.remaining() > limit {
            return Err(too_large);
        }
        while chunk.has_remaining() {
            let part = chunk.chunk();
            bytes.extend_from_slice(part);
            let read = part.len();
            chunk.advance(read);
        }
    }
    call.reading.store(false, Ordering::Relaxed);
    call.read.store(true, Ordering::Relaxed);
    if !bytes.is_empty() && !is_json(call) {
        return Err(Problem::UnsupportedMediaType(
            "The body must be JSON. Send the header `Content-Type: application/json`.",
        ));
    }
    Ok(bytes.freeze())
}

/// `application/json` or `application/SOMETHING+json`, in UTF-8. A body without any type is taken for JSON.
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
