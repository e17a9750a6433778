//! The accept loop: limited connections, time-outs, and a graceful shutdown that drops no accepted request.
//!
//! It calls a warp filter. warp's own server has no time-out for heads, no connection limit and no shutdown deadline.

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
    net::{IpAddr, Ipv4Addr},
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
};
use tower_service::Service as _;

/// Time for a request's head, from the end of the previous request. So a connection is idle for at most this time.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Most header fields of a request.
const MAX_HEADERS: usize = 64;
/// Most bytes of a request's head.
const MAX_HEAD: usize = 32 * 1024;
/// During a shutdown, the time from the first `Connection: close` until idle connections are closed.
const GRACE: Duration = Duration::from_millis(250);
/// One of this many connections may wait for its client while it is closed; the others are closed at once.
const CLOSING_PART: usize = 4;
/// The longest shutdown.
const DRAIN_DEADLINE: Duration = Duration::from_secs(30);

/// What all connections share.
struct Shared<S> {
    service: Arc<S>,
    /// One permit for each open connection.
    places: Arc<Semaphore>,
    /// One permit for each connection that waits for its client while it is closed.
    closing: Arc<Semaphore>,
    /// Becomes true when idle connections must close.
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

/// Serves until `stop` resolves, then shuts down gracefully.
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
    // At the limit the server does not accept: new connections wait in the kernel's backlog.
    while let Some(Ok(permit)) = until(stop.as_mut(), Arc::clone(&shared.places).acquire_owned()).await {
        let Some(accepted) = until(stop.as_mut(), listener.accept()).await else { break };
        match accepted {
            Ok((stream, _)) => {
                tokio::spawn(connection(stream, shared.clone(), permit));
            }
            // No file descriptors are left, or the connection is already closed: pause, to avoid a busy loop.
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

/// First every response says `Connection: close`, so that clients stop using their connections, and connections in the
/// backlog are still served. Then idle connections are closed.
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
    // Closing the listener would reset connections that the kernel accepted in the last moment: serve them too.
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
    // The address of a connection that was reset already is unknown; nobody gets a response then.
    let peer = stream.peer_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip());
    service.opened();
    let traffic = Arc::new(Traffic::new(permit));
    let (seen, served) = (Arc::clone(&traffic), Arc::clone(&service));
    let answers = service_fn(move |mut request: Request<Incoming>| {
        // The filter captures the head: warp's own filters copy the headers, and reject a request without a query.
        let call = Arc::new(Call::new(&mut request, seen.begin(), peer));
        let answer = warp::service(serve::filter(Arc::clone(&served), Arc::clone(&call))).call(request);
        async move {
            let answer = answer.await;
            // The request is in flight until its streamed body is dropped.
            if let Some(held) = answer.as_ref().ok().and_then(|answer| answer.extensions().get::<Held>()) {
                // Set only here.
                let _ = held.0.set(call);
            }
            answer
        }
    });
    let mut builder = http1::Builder::new();
    // hyper's time-out for heads resets a timer for each request, a cost for every request; `Traffic` does without.
    builder.header_read_timeout(None).max_headers(MAX_HEADERS).max_buf_size(MAX_HEAD);
    // A client that has sent its request may close its sending half and still wait for the response (RFC 9112, 9.6).
    builder.half_close(true);
    let stream = ClosesGently::new(stream, Arc::clone(&traffic), closing);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), answers));
    let outcome = tokio::select! {
        outcome = serving.as_mut() => outcome,
        () = traffic.idle_for(HEAD_TIMEOUT) => {
            tracing::debug!("a connection sent no request in time");
            Ok(())
        }
        // The request of a connection that was just accepted may not have arrived: wait for it.
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
    service.closed();
}
