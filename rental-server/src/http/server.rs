//! The accept loop: limited connections, time-outs, and a graceful shutdown that drops no accepted request.
//!
//! It calls a warp filter. warp's own server has no time-out for heads, no connection limit and no shutdown deadline.

use crate::{
    http::{
        client_address::Peer,
        connection,
        places::{ConnectionLimits, Places},
        serve::Service,
        serving::{GRACE, Shared},
        tls::Tls,
        traffic::Traffic,
    },
    limits::FairShare,
};
use std::{
    future::Future,
    net::IpAddr,
    pin::{Pin, pin},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
};

/// One of this many connections may wait for its client while it is closed; the others are closed at once.
const CLOSING_PART: usize = 4;
/// How long no connection is accepted after one could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Time between two log lines about connections that could not be accepted.
const BETWEEN_LINES: Duration = Duration::from_secs(10);
/// The longest shutdown.
const DRAIN_DEADLINE: Duration = Duration::from_secs(30);

/// What accepts connections.
struct Door<S> {
    places: Arc<Places>,
    limits: ConnectionLimits,
    shared: Shared<S>,
}

/// Serves until `stop` resolves, then shuts down gracefully.
pub(crate) async fn serve<S: Service>(
    listener: TcpListener,
    service: Arc<S>,
    limits: ConnectionLimits,
    tls: Option<&Tls>,
    stop: impl Future<Output = ()>,
) {
    let (drain, drained) = watch::channel(false);
    // A proxy alone can have as many requests in flight as there may be connections.
    let requests = FairShare::new(limits.all.saturating_mul(2));
    let closing = Arc::new(Semaphore::new((limits.all / CLOSING_PART).max(1)));
    let tls = tls.map(|tls| tls.acceptor(true));
    let shared = Shared { service, tls, requests, closing, drained };
    let door = Door { places: Places::new(limits.clone()), limits, shared };
    let (mut stop, mut logged) = (pin!(stop), None::<Instant>);
    loop {
        let Some(accepted) = until(stop.as_mut(), listener.accept()).await else { break };
        match accepted {
            // At the limit the server accepts no other one: new connections wait in the kernel's backlog.
            Ok((stream, address)) => {
                let mut admitted = pin!(door.admit(stream, address.ip()));
                if until(stop.as_mut(), admitted.as_mut()).await.is_none() {
                    let _ = tokio::time::timeout(GRACE, admitted).await;
                    break;
                }
            }
            Err(error) => {
                if logged.is_none_or(|logged| logged.elapsed() >= BETWEEN_LINES) {
                    tracing::warn!(%error, "cannot accept a connection");
                    logged = Some(Instant::now());
                }
                // Usually no file descriptors are left. The error stays until one is free: without a pause this would be a busy loop.
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drain_all(listener, door, drain).await;
}

async fn until<T>(stop: Pin<&mut impl Future<Output = ()>>, other: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = stop => None,
        value = other => Some(value),
    }
}

impl<S: Service> Door<S> {
    /// Serves a connection in a task of its own, once there is a place for it. One of an address that has too many is
    /// closed.
    async fn admit(&self, stream: TcpStream, address: IpAddr) {
        let Some(place) = self.places.take(address).await else {
            self.shared.service.refused();
            tracing::debug!(%address, "a connection was refused: its address has too many");
            return;
        };
        let (peer, holder) = (Peer::new(address, &self.limits.proxies), place.holder());
        let (secure, in_flight) = (self.shared.tls.is_some(), self.shared.service.in_flight());
        let traffic = Arc::new(Traffic::new(Box::new(place), peer, secure, in_flight));
        tokio::spawn(connection::serve(stream, traffic, holder, self.shared.clone()));
    }
}

/// First every response says `Connection: close`, so that clients stop using their connections, and connections in the
/// backlog are still served. Then idle connections are closed.
async fn drain_all<S: Service>(listener: TcpListener, door: Door<S>, drain: watch::Sender<bool>) {
    door.shared.service.draining().store(true, Ordering::SeqCst);
    let accept_rest = async {
        while let Ok((stream, address)) = listener.accept().await {
            door.admit(stream, address.ip()).await;
        }
    };
    let _ = tokio::time::timeout(GRACE, accept_rest).await;
    // Closing the listener would reset connections that the kernel accepted in the last moment: serve them too.
    if let Ok(listener) = listener.into_std() {
        while let Ok((stream, address)) = listener.accept() {
            let Ok(stream) = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream)) else { continue };
            if tokio::time::timeout(GRACE, door.admit(stream, address.ip())).await.is_err() {
                break;
            }
        }
    }
    let _ = drain.send(true);
    if tokio::time::timeout(DRAIN_DEADLINE, door.places.all_free()).await.is_err() {
        tracing::warn!("some connections did not end within the drain deadline");
    }
}
