//! The HTTP clients for hosts of others: one for receivers of webhooks, one for calendars.
//!
//! They connect only to addresses that the resolver allows, follow no redirect and know no proxy. What a host can make this
//! server read for one request is bounded, below TLS: hyper reads interim responses (1xx) without a bound, and rustls reads
//! session tickets without one. A host that sends them without end would occupy a processor until the time-out.

use super::resolver::Resolver;
use bytes::Bytes;
use http_body_util::Full;
use hyper::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{
        Client as Pooled,
        connect::{Connected, Connection, HttpConnector},
    },
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use rental_core::webhooks::concurrency;
use std::{
    error::Error as StdError,
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::timeout,
};
use tower_service::Service;

/// Time for a connection to be established, TLS included.
const LONGEST_CONNECT: Duration = Duration::from_secs(5);
/// Most connections that are kept open to one host without a request: as many as can be in use at once.
const MOST_IDLE: usize = concurrency::MOST as usize;
/// How long a connection is kept open without a request.
const LONGEST_IDLE: Duration = Duration::from_secs(60);
/// How long a connection is silent until the kernel asks whether the other side is still there.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// Longest head of a response. hyper reads as much ahead of who uses it.
const MOST_HEAD: usize = 64 * 1024;

/// A client with a pool of connections.
pub(super) type Client = Pooled<InTime<HttpsConnector<BoundedTcp>>, Full<Bytes>>;
type ConnectError = Box<dyn StdError + Send + Sync>;
type Connecting<C> = Pin<Box<dyn Future<Output = Result<C, ConnectError>> + Send>>;

/// A client that reads at most about `most_body` bytes of the body of a response.
pub(super) fn new(resolver: Resolver, most_body: usize) -> Result<Client, String> {
    let mut tcp = HttpConnector::new_with_resolver(resolver);
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEPALIVE));
    // Beyond the body: its chunks and TLS, the handshake, one head, and what hyper reads ahead.
    let tcp = BoundedTcp { inner: tcp, most_read: 2 * most_body + 4 * MOST_HEAD };
    let tls = HttpsConnectorBuilder::new()
        .try_with_platform_verifier()
        .map_err(|error| format!("cannot read the certificates of this machine: {error}"))?;
    Ok(Pooled::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(LONGEST_IDLE)
        .pool_max_idle_per_host(MOST_IDLE)
        .http1_title_case_headers(true)
        .http1_max_buf_size(MOST_HEAD)
        .build(InTime(tls.https_or_http().enable_http1().wrap_connector(tcp))))
}

/// Connects within [`LONGEST_CONNECT`].
#[derive(Clone)]
pub(super) struct InTime<C>(C);

impl<C> Service<Uri> for InTime<C>
where
    C: Service<Uri, Error = ConnectError>,
    C::Future: Send + 'static,
{
    type Response = C::Response;
    type Error = ConnectError;
    type Future = Connecting<C::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, host: Uri) -> Self::Future {
        let connecting = self.0.call(host);
        Box::pin(async move {
            timeout(LONGEST_CONNECT, connecting).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
        })
    }
}

/// Connects to hosts, of whose connections at most `most_read` bytes are read for one request.
#[derive(Clone)]
pub(super) struct BoundedTcp {
    inner: HttpConnector<Resolver>,
    most_read: usize,
}

impl Service<Uri> for BoundedTcp {
    type Response = TokioIo<Bounded<TcpStream>>;
    type Error = ConnectError;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, host: Uri) -> Self::Future {
        let (connecting, most_read) = (self.inner.call(host), self.most_read);
        Box::pin(async move { Ok(TokioIo::new(Bounded::new(connecting.await?.into_inner(), most_read))) })
    }
}

/// A connection on which at most `most_read` bytes are read for one request. A request begins with the first write after
/// everything before it was sent: a host that reads slowly does not get more.
pub(super) struct Bounded<S> {
    stream: S,
    most_read: usize,
    read: usize,
    all_sent: bool,
}

impl<S> Bounded<S> {
    fn new(stream: S, most_read: usize) -> Self {
        Self { stream, most_read, read: 0, all_sent: true }
    }

    fn before_write(&mut self) {
        if self.all_sent {
            (self.read, self.all_sent) = (0, false);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.read >= self.most_read {
            return Poll::Ready(Err(io::Error::other("the response is larger than its bound")));
        }
        let before = to.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, to);
        self.read += to.filled().len() - before;
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.before_write();
        Pin::new(&mut self.stream).poll_write(context, from)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.before_write();
        Pin::new(&mut self.stream).poll_write_vectored(context, from)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // TLS and hyper flush when they have handed over all that they had.
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.all_sent = true;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: Connection> Connection for Bounded<S> {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    #[tokio::test]
    async fn a_request_that_is_not_sent_whole_gives_no_more_to_read() {
        let (near, mut far) = duplex(16);
        let mut near = Bounded::new(near, 16);
        assert_eq!(near.write(&[1; 32]).await.unwrap(), 16, "the other side reads slowly");
        far.write_all(&[2; 16]).await.unwrap();
        near.read_exact(&mut [0; 16]).await.unwrap();
        far.read_exact(&mut [0; 8]).await.unwrap();
        assert_eq!(near.write(&[1; 16]).await.unwrap(), 8);
        far.write_all(&[2; 16]).await.unwrap();
        assert!(near.read_exact(&mut [0; 16]).await.is_err(), "16 bytes were read");
    }

    #[tokio::test]
    async fn each_request_on_a_connection_has_the_whole_bound() {
        let (near, mut far) = duplex(64);
        let mut near = Bounded::new(near, 24);
        for _ in 0..3 {
            near.write_all(&[1; 32]).await.unwrap();
            near.flush().await.unwrap();
            far.read_exact(&mut [0; 32]).await.unwrap();
            far.write_all(&[2; 20]).await.unwrap();
            near.read_exact(&mut [0; 20]).await.unwrap();
        }
    }
}
