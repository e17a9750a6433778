//! The responses while the store is upgraded: the process is alive and not ready.

use crate::{
    edge,
    http::{
        call::client_request_id,
        client_address::Peer,
        closing::ClosesGently,
        places::{ConnectionLimits, Places},
        problem::{Problem, render},
        reply::{Reply, finish},
        serve::add_headers_of_all,
        tls::Tls,
        traffic::Traffic,
    },
};
use hyper::{
    Request,
    body::{Body, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use rental_core::operations::Edge;
use serde::Serialize;
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::{Semaphore, watch},
};
use warp::http::{StatusCode, header};

/// Most connections at once.
const CONNECTIONS: usize = 256;
/// Most connections that are closed gently at the same time.
const CLOSING: usize = CONNECTIONS / 4;
/// The longest that a connection lasts. It serves one request.
const LONGEST: Duration = Duration::from_secs(10);

/// Serves until it is dropped. `/readyz` shows the last value of `progress`.
pub(crate) async fn serve<P: Serialize + Send + Sync + 'static>(
    listener: &TcpListener,
    tls: Option<&Tls>,
    progress: watch::Receiver<P>,
) {
    let limits = ConnectionLimits { all: CONNECTIONS, per_address: CONNECTIONS, proxies: Arc::default() };
    let (proxies, places) = (Arc::clone(&limits.proxies), Places::new(limits));
    let (acceptor, closing) = (tls.map(|tls| tls.acceptor(false)), Arc::new(Semaphore::new(CLOSING)));
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                let Some(place) = places.take(address.ip()).await else { continue };
                let peer = Peer::new(address.ip(), &proxies);
                let traffic = Arc::new(Traffic::new(Box::new(place), peer, acceptor.is_some(), Default::default()));
                let stream = ClosesGently::new(stream, Arc::clone(&traffic), Arc::clone(&closing));
                let (acceptor, progress) = (acceptor.clone(), progress.clone());
                tokio::spawn(async move {
                    // A slow or idle connection is closed: nothing is lost.
                    let _ = tokio::time::timeout(LONGEST, async {
                        let is_secure = acceptor.is_some();
                        match acceptor {
                            None => connection(stream, traffic, is_secure, progress).await,
                            Some(acceptor) => match acceptor.accept(stream).await {
                                Ok(stream) => connection(stream, traffic, is_secure, progress).await,
                                Err(error) => tracing::debug!(%error, "a TLS handshake failed"),
                            },
                        }
                    })
                    .await;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn connection<P: Serialize + Send + Sync + 'static>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    traffic: Arc<Traffic>,
    is_secure: bool,
    progress: watch::Receiver<P>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        // Bodies are never read: their connections are closed gently.
        if request.body().is_end_stream() {
            traffic.all_was_read();
        }
        let mut response = respond(request.uri().path(), &*progress.borrow());
        add_headers_of_all(&mut response, client_request_id(request.headers()), is_secure);
        async move { Ok::<_, Infallible>(response) }
    });
    let mut builder = http1::Builder::new();
    // Clients must connect again after the upgrade, when the server itself accepts.
    builder.keep_alive(false).header_read_timeout(None).half_close(true);
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

fn respond(path: &str, progress: &impl Serialize) -> warp::reply::Response {
    let request_id = edge::Clock.new_id().to_string();
    let reply = match path {
        "/healthz" => Reply::json("{\"status\":\"ok\"}".into()),
        "/readyz" => {
            let body = serde_json::to_vec(progress).unwrap_or_default();
            Reply { status: StatusCode::SERVICE_UNAVAILABLE, ..Reply::json(body.into()) }
        }
        _ => {
            let (status, body) = render(&Problem::StoreUpgrading, &request_id);
            Reply { status, ..Reply::json(body) }
        }
    };
    let reply = if reply.status == StatusCode::OK { reply } else { reply.with(header::RETRY_AFTER, "5") };
    finish(reply.with(header::CACHE_CONTROL, "no-store"), &request_id)
}
