//! What a connection does whatever its protocol: it answers requests until it ends, is idle for too long, or the server
//! shuts down.

use crate::{
    http::{
        call::Call,
        reply::Held,
        serve::{self, Service},
        traffic::Traffic,
    },
    limits::FairShare,
};
use futures_util::FutureExt;
use hyper::{Request, body::Body};
use std::{convert::Infallible, future::Future, pin::Pin, sync::Arc, time::Duration};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tower_service::Service as _;

/// Time for the end of a connection that was idle for too long.
const FAREWELL: Duration = Duration::from_secs(1);
/// Most bytes of a request's head.
pub(super) const MAX_HEAD: usize = 32 * 1024;
/// During a shutdown, the time from the first `Connection: close` until idle connections are closed.
pub(super) const GRACE: Duration = Duration::from_millis(250);

/// What all connections share.
pub(super) struct Shared<S> {
    pub(super) service: Arc<S>,
    pub(super) tls: Option<TlsAcceptor>,
    /// Requests of HTTP/2 in flight: a connection can have many, and an address many connections.
    pub(super) requests: Arc<FairShare>,
    /// One permit for each connection that waits for its client while it is closed.
    pub(super) closing: Arc<Semaphore>,
    /// Becomes true when idle connections must close.
    pub(super) drained: watch::Receiver<bool>,
}

impl<S> Clone for Shared<S> {
    fn clone(&self) -> Self {
        Self {
            service: Arc::clone(&self.service),
            tls: self.tls.clone(),
            requests: Arc::clone(&self.requests),
            closing: Arc::clone(&self.closing),
            drained: self.drained.clone(),
        }
    }
}

/// The response to a request, and the call that it is made of.
pub(super) fn answer<S: Service, B>(
    service: &Arc<S>,
    traffic: &Arc<Traffic>,
    mut request: Request<B>,
) -> (Arc<Call>, impl Future<Output = Result<warp::reply::Response, Infallible>> + use<S, B>)
where
    B: Body<Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + Sync + 'static,
{
    // The filter captures the head: warp's own filters copy the headers, and reject a request without a query.
    let call = Arc::new(Call::new(&mut request, traffic.begin()));
    let response = warp::service(serve::filter(Arc::clone(service), Arc::clone(&call))).call(request);
    let held = Arc::clone(&call);
    // Mapped, not awaited in a block, which would hold the future twice.
    let response = response.map(move |response| {
        // The request is in flight until its streamed body is dropped.
        if let Some(holder) = response.as_ref().ok().and_then(|response| response.extensions().get::<Held>()) {
            // Set only here.
            let _ = holder.0.set(held);
        }
        response
    });
    (call, response)
}

/// Drives a connection until it ends, has been idle for too long, or the server shuts down.
pub(super) async fn to_its_end<C: Future<Output = hyper::Result<()>>>(
    mut serving: Pin<&mut C>,
    shut_down: impl Fn(Pin<&mut C>),
    (traffic, is_http1): (&Traffic, bool),
    mut drained: watch::Receiver<bool>,
) {
    let (ended, patience) = tokio::select! {
        outcome = serving.as_mut() => (Some(outcome), Duration::ZERO),
        () = traffic.is_idle_or_stuck(is_http1) => {
            tracing::debug!("a connection sent no request in time, or did not take its response");
            (None, FAREWELL)
        }
        () = must_close(&mut drained) => (None, Duration::MAX),
    };
    let outcome = match ended {
        Some(outcome) => outcome,
        None => {
            // HTTP/2 says GOAWAY, so that the client knows which requests were not served.
            shut_down(serving.as_mut());
            tokio::select! {
                outcome = serving => outcome,
                // hyper would wait for the rest of a head, which may never come.
                () = traffic.nothing_in_progress() => {
                    tracing::debug!("a connection had no complete request when it was closed");
                    Ok(())
                }
                // The client does not read.
                () = tokio::time::sleep(patience) => Ok(()),
            }
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Resolves at a shutdown. The request of a connection that was just accepted may not have arrived: it is waited for.
pub(super) async fn must_close(drained: &mut watch::Receiver<bool>) {
    drop(drained.wait_for(|drained| *drained).await);
    tokio::time::sleep(GRACE).await;
}
