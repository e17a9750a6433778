//! The accept loop: bounded connections, time-outs for heads, and a drain that drops no accepted request.
//!
//! warp is the filter layer under it; its own server has no header time-out, no connection limit and no drain deadline.

use crate::{
    app::App,
    http::{call::Head, reply::Held, serve},
};
use hyper::{
    Request,
    body::{Body, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
};
use tower_service::Service;

/// Time for a request's head, counted from the end of the request before: also the longest that a connection idles.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a connection is looked at for that.
const TICK: Duration = Duration::from_secs(10);
/// Most header fields of a request.
const MAX_HEADERS: usize = 64;
/// Most bytes of a request's head.
const MAX_HEAD: usize = 32 * 1024;
/// While draining, how long connections in use are told to close before idle ones are closed.
const GRACE: Duration = Duration::from_millis(250);
/// The longest a drain lasts.
const DRAIN_DEADLINE: Duration = Duration::from_secs(30);

/// Serves until `stop` resolves, then drains.
pub(crate) async fn serve(
    listener: TcpListener,
    app: Arc<App>,
    max_connections: usize,
    stop: impl Future<Output = ()>,
) {
    let connections = Arc::new(Semaphore::new(max_connections));
    let (drain, drained) = watch::channel(false);
    let mut stop = pin!(stop);
    // At the limit nobody is accepted: the kernel keeps newcomers waiting in its backlog.
    while let Some(Ok(permit)) = until(stop.as_mut(), Arc::clone(&connections).acquire_owned()).await {
        let Some(accepted) = until(stop.as_mut(), listener.accept()).await else { break };
        match accepted {
            Ok((stream, _)) => {
                tokio::spawn(connection(stream, Arc::clone(&app), drained.clone(), permit));
            }
            // Out of file descriptors, or a connection that is gone already: neither is worth a busy loop.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    drain_all(listener, &app, &connections, max_connections, (drain, drained)).await;
}

async fn until<T>(stop: std::pin::Pin<&mut impl Future<Output = ()>>, other: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = stop => None,
        value = other => Some(value),
    }
}

/// First every answer says `Connection: close`, so that clients in the middle of a series go elsewhere by themselves;
/// whoever is already in the backlog is still served. Only then are idle connections closed.
async fn drain_all(
    listener: TcpListener,
    app: &Arc<App>,
    connections: &Arc<Semaphore>,
    max_connections: usize,
    (drain, drained): (watch::Sender<bool>, watch::Receiver<bool>),
) {
    app.draining.store(true, Ordering::SeqCst);
    let accept_rest = async {
        while let Ok(permit) = Arc::clone(connections).acquire_owned().await {
            let Ok((stream, _)) = listener.accept().await else { return };
            tokio::spawn(connection(stream, Arc::clone(app), drained.clone(), permit));
        }
    };
    let _ = tokio::time::timeout(GRACE, accept_rest).await;
    // Whoever the kernel has accepted meanwhile is taken along: closing the listener would reset them.
    if let Ok(listener) = listener.into_std() {
        while let Ok((stream, _)) = listener.accept() {
            let Ok(permit) = Arc::clone(connections).try_acquire_owned() else { break };
            let Ok(stream) = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream)) else { continue };
            tokio::spawn(connection(stream, Arc::clone(app), drained.clone(), permit));
        }
    }
    let _ = drain.send(true);
    let all = u32::try_from(max_connections).unwrap_or(u32::MAX);
    if tokio::time::timeout(DRAIN_DEADLINE, connections.acquire_many(all)).await.is_err() {
        tracing::warn!("some connections did not end within the drain deadline");
    }
}

/// The requests of one connection, counted so that silence shows without a clock.
#[derive(Default)]
struct Traffic {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// A request until its answer is made.
struct InFlight(Arc<Traffic>);

impl Traffic {
    fn begin(self: &Arc<Self>) -> InFlight {
        self.begun.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }

    /// Resolves when nothing was in flight and nothing began for the whole of [`HEAD_TIMEOUT`], give or take a tick.
    async fn ceased(&self) {
        let (mut seen, mut quiet) = (u64::MAX, 0);
        while quiet < HEAD_TIMEOUT.as_secs() / TICK.as_secs() {
            tokio::time::sleep(TICK).await;
            let (begun, ended) = (self.begun.load(Ordering::Relaxed), self.ended.load(Ordering::Relaxed));
            quiet = if begun == ended && (begun == seen || begun == 0) { quiet + 1 } else { 0 };
            seen = begun;
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

async fn connection(
    stream: TcpStream,
    app: Arc<App>,
    mut drained: watch::Receiver<bool>,
    permit: tokio::sync::OwnedSemaphorePermit,
) {
    let _ = stream.set_nodelay(true);
    app.metrics.connections.inc();
    app.metrics.connections_total.inc();
    let traffic = Arc::new(Traffic::default());
    let (seen, served) = (Arc::clone(&traffic), Arc::clone(&app));
    let service = service_fn(move |mut request: Request<Incoming>| {
        // warp's filters would copy the headers, and reject a request without a query: they get the head by capture.
        let headers = std::mem::take(request.headers_mut());
        let has_body = !request.body().is_end_stream();
        let head = Head { uri: request.uri().clone(), headers, at: Instant::now(), has_body };
        let answer = warp::service(serve::filter(Arc::clone(&served), Arc::new(head))).call(request);
        let request = seen.begin();
        async move {
            let answer = answer.await;
            // A streamed answer is on its way for as long as its body lives.
            match answer.as_ref().ok().and_then(|answer| answer.extensions().get::<Held>()) {
                Some(held) => drop(held.0.set(Box::new(request))),
                None => drop(request),
            }
            answer
        }
    });
    let mut builder = http1::Builder::new();
    // Not hyper's time-out for heads: it sets a timer anew for each request, which every request would pay for.
    builder.header_read_timeout(None).max_headers(MAX_HEADERS).max_buf_size(MAX_HEAD);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let outcome = tokio::select! {
        outcome = serving.as_mut() => outcome,
        () = traffic.ceased() => {
            tracing::debug!("a connection sent no request in time");
            Ok(())
        }
        // A connection that was just accepted has its request still on the way: it gets the same grace.
        () = async { drop(drained.wait_for(|drained| *drained).await); tokio::time::sleep(GRACE).await } => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection ended early");
    }
    app.metrics.connections.dec();
    drop(permit);
}
