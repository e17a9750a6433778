//! The responses while the store is upgraded: the process is alive and not ready.

use crate::{
    edge,
    http::{
        closing::ClosesGently,
        problem::{Problem, render},
        reply::{Reply, finish},
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
pub(crate) async fn serve<P: Serialize + Send + Sync + 'static>(listener: &TcpListener, progress: watch::Receiver<P>) {
    let (connections, closing) = (Arc::new(Semaphore::new(CONNECTIONS)), Arc::new(Semaphore::new(CLOSING)));
    while let Ok(permit) = Arc::clone(&connections).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let traffic = Arc::new(Traffic::new(permit));
                let stream = ClosesGently::new(stream, Arc::clone(&traffic), Arc::clone(&closing));
                drop(tokio::spawn(connection(stream, traffic, progress.clone())));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn connection<P: Serialize + Send + Sync + 'static>(
    stream: ClosesGently,
    traffic: Arc<Traffic>,
    progress: watch::Receiver<P>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        // Bodies are never read: their connections are closed gently.
        if request.body().is_end_stream() {
            traffic.all_was_read();
        }
        let response = respond(request.uri().path(), &*progress.borrow());
        async move { Ok::<_, Infallible>(response) }
    });
    let mut builder = http1::Builder::new();
    // Clients must connect again after the upgrade, when the server itself accepts.
    builder.keep_alive(false).header_read_timeout(None).half_close(true);
    // A slow or idle connection is closed: nothing is lost.
    let _ = tokio::time::timeout(LONGEST, builder.serve_connection(TokioIo::new(stream), service)).await;
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
