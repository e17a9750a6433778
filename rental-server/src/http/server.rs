//! The accept loop: bounded connections, time-outs for heads, and a drain that drops no accepted request.
//!
//! warp is the filter layer under it; its own server has no header time-out, no connection limit and no drain deadline.

use crate::http::{
    call::Call,
    closing::ClosesGently,
    reply::Held,
    serve::{self, Service},
    traffic::Traffic,
};
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::{
    future::Future,
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
};
use tower_service::Service as _;

/// Time for a request's head, counted from the end of the request before: also the longest that a connection idles.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Most header fields of a request.
const MAX_HEADERS: usize = 64;
/// Most bytes of a request's head.
const MAX_HEAD: usize = 32 * 1024;
/// While draining, how long connections in use are told to close before idle ones are closed.
const GRACE: Duration = Duration::from_millis(250);
/// This part of the connections may be closed gently at the same time; more are closed at once.
const CLOSING_PART: usize = 4;
/// The longest a drain lasts.
const DRAIN_DEADLINE: Duration = Duration::from_secs(30);

/// What all connections share.
struct Shared<S> {
    service: Arc<S>,
    /// One permit for each open connection.
    places: Arc<Semaphore>,
    /// One permit for each connection that is closed gently.
    closing: Arc<Semaphore>,
    /// Becomes true when idle connections are to be closed.
    drained: watch::Receiver<bool>,
}

impl<S> Clone for Shared<S> {
    fn clone(&self) -> Self {
        Self {
            service: Arc::clone(&self.service),
            places: Arc::clone(&self.places),
            closing: Arc::clone(&self.closing),
            drained: self.drained.clone(),
        }
    }
}

/// Serves until `stop` resolves, then drains.
pub(crate) async fn serve<S: Service>(
    listener: TcpListener,
    service: Arc<S>,
    max_connections: usize,
    stop: impl Future<Output = ()>,
) {
    let (drain, drained) = watch::channel(false);
    let (places, closing) = [max_connections, (max_connections / CLOSING_PART).max(1)].map(Semaphore::new).into();
    let shared = Shared { service, places: Arc::new(places), closing: Arc::new(closing), drained };
    let mut stop = pin!(stop);
    // At the limit nobody is accepted: the kernel keeps newcomers waiting in its backlog.
    while let Some(Ok(permit)) = until(stop.as_mut(), Arc::clone(&shared.places).acquire_owned()).await {
        let Some(accepted) = until(stop.as_mut(), listener.accept()).await else { break };
        match accepted {
            Ok((stream, _)) => {
                tokio::spawn(connection(stream, shared.clone(), permit));
            }
            // Out of file descriptors, or a connection that is gone already: neither is worth a busy loop.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    drain_all(listener, shared, max_connections, drain).await;
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
async fn drain_all<S: Service>(
    listener: TcpListener,
    shared: Shared<S>,
    max_connections: usize,
    drain: watch::Sender<bool>,
) {
    shared.service.draining().store(true, Ordering::SeqCst);
    let accept_rest = async {
        while let Ok(permit) = Arc::clone(&shared.places).acquire_owned().await {
            let Ok((stream, _)) = listener.accept().await else { return };
            tokio::spawn(connection(stream, shared.clone(), permit));
        }
    };
    let _ = tokio::time::timeout(GRACE, accept_rest).await;
    // Whoever the kernel has accepted meanwhile is taken along: closing the listener would reset them.
    if let Ok(listener) = listener.into_std() {
        while let Ok((stream, _)) = listener.accept() {
            let Ok(permit) = Arc::clone(&shared.places).try_acquire_owned() else { break };
            let Ok(stream) = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream)) else { continue };
            tokio::spawn(connection(stream, shared.clone(), permit));
        }
    }
    let _ = drain.send(true);
    let all = u32::try_from(max_connections).unwrap_or(u32::MAX);
    if tokio::time::timeout(DRAIN_DEADLINE, shared.places.acquire_many(all)).await.is_err() {
        tracing::warn!("some connections did not end within the drain deadline");
    }
}

async fn connection<S: Service>(
    stream: TcpStream,
    Shared { service, mut drained, closing, .. }: Shared<S>,
    permit: OwnedSemaphorePermit,
) {
    let _ = stream.set_nodelay(true);
    service.connected(true);
    let traffic = Arc::new(Traffic::new(permit));
    let (seen, served) = (Arc::clone(&traffic), Arc::clone(&service));
    let answers = service_fn(move |mut request: Request<Incoming>| {
        // warp's filters would copy the headers, and reject a request without a query: they get the head by capture.
        let call = Arc::new(Call::new(&mut request, seen.begin()));
        let answer = warp::service(serve::filter(Arc::clone(&served), Arc::clone(&call))).call(request);
        async move {
            let answer = answer.await;
            // A streamed response is on its way for as long as its body lives.
            if let Some(held) = answer.as_ref().ok().and_then(|answer| answer.extensions().get::<Held>()) {
                // Nobody else sets it.
                let _ = held.0.set(call);
            }
            answer
        }
    });
    let mut builder = http1::Builder::new();
    // Not hyper's time-out for heads: it sets a timer anew for each request, which every request would pay for.
    builder.header_read_timeout(None).max_headers(MAX_HEADERS).max_buf_size(MAX_HEAD);
    // A client that has sent its request may close its sending half and still wait for the response (RFC 9112, 9.6).
    builder.half_close(true);
    let stream = ClosesGently::new(stream, Arc::clone(&traffic), closing);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), answers));
    let outcome = tokio::select! {
        outcome = serving.as_mut() => outcome,
        () = traffic.ceased(HEAD_TIMEOUT) => {
            tracing::debug!("a connection sent no request in time");
            Ok(())
        }
        // A connection that was just accepted has its request still on the way: it gets the same grace.
        () = async { drop(drained.wait_for(|drained| *drained).await); tokio::time::sleep(GRACE).await } => {
            serving.as_mut().graceful_shutdown();
            tokio::select! {
                outcome = serving => outcome,
                // hyper would wait for the rest of a head, which may never come.
                () = traffic.nothing_in_progress() => {
                    tracing::debug!("a connection had no complete request at shutdown");
                    Ok(())
                }
            }
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection ended early");
    }
    service.connected(false);
}
