//! One connection from its first byte to its end: plain HTTP/1.1, or TLS with HTTP/1.1 or HTTP/2.

use crate::{
    http::{
        closing::ClosesGently,
        http2,
        serve::Service,
        serving::{MAX_HEAD, Shared, answer, must_close, to_its_end},
        tls::HTTP2,
        traffic::Traffic,
    },
    limits::Holder,
};
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsAcceptor;

/// Time for the handshake of TLS.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Most header fields of a request.
const MAX_HEADERS: usize = 64;

/// Counts a connection as open, also when its task is aborted.
struct Counted<S: Service>(Arc<S>);

impl<S: Service> Counted<S> {
    fn new(service: &Arc<S>) -> Self {
        service.opened();
        Self(Arc::clone(service))
    }
}

impl<S: Service> Drop for Counted<S> {
    fn drop(&mut self) {
        self.0.closed();
    }
}

/// Serves a connection until it ends. Its requests of HTTP/2 count for `holder`.
pub(super) async fn serve<S: Service>(stream: TcpStream, traffic: Arc<Traffic>, holder: Holder, shared: Shared<S>) {
    let _ = stream.set_nodelay(true);
    let _counted = Counted::new(&shared.service);
    let stream = ClosesGently::new(stream, Arc::clone(&traffic), Arc::clone(&shared.closing));
    match shared.tls.clone() {
        None => http1(stream, traffic, shared).await,
        // In a box, so that the task of a plain connection stays small.
        Some(acceptor) => Box::pin(encrypted(stream, acceptor, traffic, holder, shared)).await,
    }
}

async fn encrypted<S: Service>(
    stream: ClosesGently,
    acceptor: TlsAcceptor,
    traffic: Arc<Traffic>,
    holder: Holder,
    mut shared: Shared<S>,
) {
    let handshake = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream));
    let stream = tokio::select! {
        stream = handshake => stream,
        () = must_close(&mut shared.drained) => return,
    };
    match stream {
        Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(HTTP2) => {
            http2::serve(stream, traffic, holder, shared).await;
        }
        Ok(Ok(stream)) => http1(stream, traffic, shared).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake was not completed in time"),
    }
}

async fn http1<S: Service, I: AsyncRead + AsyncWrite + Send + Unpin>(
    stream: I,
    traffic: Arc<Traffic>,
    shared: Shared<S>,
) {
    let (seen, served) = (Arc::clone(&traffic), Arc::clone(&shared.service));
    let answers = service_fn(move |request: Request<Incoming>| answer(&served, &seen, request).1);
    let mut builder = http1::Builder::new();
    // hyper's time-out for heads is one for idle connections, too, and sets a timer for each request: `Traffic` does without.
    builder.header_read_timeout(None).max_headers(MAX_HEADERS).max_buf_size(MAX_HEAD);
    // A client that has sent its request may close its sending half and still wait for the response (RFC 9112, 9.6).
    builder.half_close(true);
    let serving = pin!(builder.serve_connection(TokioIo::new(stream), answers));
    to_its_end(serving, |serving| serving.graceful_shutdown(), (&traffic, true), shared.drained).await;
}
