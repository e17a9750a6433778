//! The HTTP clients for hosts of others: one for receivers of webhooks, one for calendars.
//!
//! They connect only to addresses that the resolver allows, follow no redirect and know no proxy. Two things are bounded for
//! each request, below TLS:
//!
//! - what a host can make this server read: hyper reads interim responses (1xx) without a bound, and rustls reads session
//!   tickets without one, so a host that sends them without end would occupy a processor until the time-out;
//! - how long a host may take to receive the request: hyper keeps a connection until everything is sent, also after the
//!   attempt has ended, so a host that reads nothing would keep a file descriptor and the request for ever.

use super::resolver::Resolver;
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Uri, http::Extensions};
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
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep_until, timeout},
};
use tower_service::Service;

/// Most connections that are kept open to one host without a request: as many as can be in use at once.
pub(crate) const MOST_IDLE: usize = concurrency::MOST as usize;
/// Most connections that are kept open to all hosts. Further ones end with their request.
pub(crate) const MOST_KEPT: usize = 1024;
/// How long a connection is kept open without a request.
const LONGEST_IDLE: Duration = Duration::from_secs(60);
/// How long a connection is silent until the kernel asks whether the other side is still there.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// Longest head of a response. hyper reads as much ahead of who uses it.
const MOST_HEAD: usize = 64 * 1024;
/// How long a host that responds before it has received the request may take to receive the rest.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// A client with a pool of connections.
pub(crate) type Client = Pooled<InTime<HttpsConnector<BoundedTcp>>, Full<Bytes>>;
/// Why a client has no head of a response.
pub(crate) type Failed = hyper_util::client::legacy::Error;
type ConnectError = Box<dyn StdError + Send + Sync>;
type Connecting<C> = Pin<Box<dyn Future<Output = Result<C, ConnectError>> + Send>>;

/// A client that reads at most about `most_body` bytes of the body of a response. It connects within `longest`, look-up of the
/// name and TLS included, and a request must be sent within it. It keeps at most `most_idle` connections to a host without a
/// request; with 0, each request has a new one. `open` counts the connections of all clients.
pub(crate) fn new(
    resolver: Resolver,
    (most_body, most_idle): (usize, usize),
    longest: Duration,
    open: &Arc<AtomicUsize>,
) -> Result<Client, String> {
    let mut tcp = HttpConnector::new_with_resolver(resolver);
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEPALIVE));
    // Beyond the body: its chunks and TLS, the handshake, one head, and what hyper reads ahead.
    let tcp = BoundedTcp { inner: tcp, most_read: 2 * most_body + 4 * MOST_HEAD, longest, open: Arc::clone(open) };
    let tls = HttpsConnectorBuilder::new()
        .try_with_platform_verifier()
        .map_err(|error| format!("cannot read the certificates of this machine: {error}"))?;
    let tls = tls.https_or_http().enable_http1().wrap_connector(tcp);
    Ok(Pooled::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(LONGEST_IDLE)
        .pool_max_idle_per_host(most_idle)
        .http1_title_case_headers(true)
        .http1_max_buf_size(MOST_HEAD)
        .build(InTime { inner: tls, longest }))
}

/// Whether a request failed because the host closed a connection that had served another one: it probably closed it before
/// the request came, and no server has seen it. hyper itself repeats only what it has not begun to send.
pub(crate) fn is_closed_after_use(error: &Failed) -> bool {
    let mut extras = Extensions::new();
    if let Some(connection) = error.connect_info() {
        connection.get_extras(&mut extras);
    }
    extras.get::<Requests>().is_some_and(|Requests(sent)| sent.load(Ordering::Relaxed) > 1) && is_closed(error)
}

/// Whether an error says that the other side has closed the connection.
fn is_closed(error: &(dyn StdError + 'static)) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let says_so = |error: &(dyn StdError + 'static)| {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message)
            || kind.is_some_and(|kind| [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof].contains(&kind))
    };
    let mut source = Some(error);
    while let Some(error) = source {
        if says_so(error) {
            return true;
        }
        source = error.source();
    }
    false
}

/// Requests that a connection was given since it was made, TLS not counted.
#[derive(Clone, Default)]
struct Requests(Arc<AtomicUsize>);

/// Connects within a time.
#[derive(Clone)]
pub(crate) struct InTime<C> {
    inner: C,
    longest: Duration,
}

impl<C> Service<Uri> for InTime<C>
where
    C: Service<Uri, Error = ConnectError>,
    C::Future: Send + 'static,
{
    type Response = C::Response;
    type Error = ConnectError;
    type Future = Connecting<C::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, host: Uri) -> Self::Future {
        let connecting = timeout(self.longest, self.inner.call(host));
        Box::pin(async move { connecting.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))? })
    }
}

/// Connects to hosts, with connections that are [`Bounded`].
#[derive(Clone)]
pub(crate) struct BoundedTcp {
    inner: HttpConnector<Resolver>,
    most_read: usize,
    longest: Duration,
    open: Arc<AtomicUsize>,
}

impl Service<Uri> for BoundedTcp {
    type Response = TokioIo<Bounded<TcpStream>>;
    type Error = ConnectError;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, host: Uri) -> Self::Future {
        let (connecting, open) = (self.inner.call(host), Arc::clone(&self.open));
        let (most_read, longest) = (self.most_read, self.longest);
        Box::pin(
            async move { Ok(TokioIo::new(Bounded::new(connecting.await?.into_inner(), most_read, longest, open))) },
        )
    }
}

/// A connection on which at most `most_read` bytes are read for one request, which must be sent within `longest`. A request
/// begins with the first write after everything before it was sent: a host that receives slowly does not get more.
pub(crate) struct Bounded<S> {
    stream: S,
    most_read: usize,
    read: usize,
    longest: Duration,
    /// Until when the request that is being sent must be sent.
    sent_until: Option<Instant>,
    /// Wakes the connection then. There is one while the other side does not receive.
    timer: Option<Pin<Box<Sleep>>>,
    is_kept: bool,
    requests: Requests,
    open: Arc<AtomicUsize>,
}

impl<S> Bounded<S> {
    fn new(stream: S, most_read: usize, longest: Duration, open: Arc<AtomicUsize>) -> Self {
        let is_kept = open.fetch_add(1, Ordering::Relaxed) < MOST_KEPT;
        Self {
            stream,
            most_read,
            read: 0,
            longest,
            sent_until: None,
            timer: None,
            is_kept,
            requests: Requests::default(),
            open,
        }
    }

    fn before_write(&mut self) {
        if self.sent_until.is_none() {
            self.requests.0.fetch_add(1, Ordering::Relaxed);
            (self.read, self.sent_until) = (0, Some(Instant::now() + self.longest));
        }
    }

    /// The result of a write; an error when the time of the request is over.
    fn in_time<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        let (Poll::Pending, Some(until)) = (&written, self.sent_until) else { return written };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if timer.deadline() != until {
            timer.as_mut().reset(until);
        }
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S> Drop for Bounded<S> {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.read >= self.most_read {
            return Poll::Ready(Err(io::Error::other("the response is larger than its bound")));
        }
        let before = to.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, to);
        let read = to.filled().len() - before;
        self.read += read;
        if read > 0
            && let Some(until) = &mut self.sent_until
        {
            *until = (*until).min(Instant::now() + LONGEST_REST);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.before_write();
        let written = Pin::new(&mut self.stream).poll_write(context, from);
        self.in_time(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.before_write();
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, from);
        self.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // TLS and hyper flush when they have handed over all that they had.
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        ready!(self.in_time(context, flushed))?;
        (self.sent_until, self.timer) = (None, None);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.in_time(context, shut)
    }
}

impl<S: Connection> Connection for Bounded<S> {
    fn connected(&self) -> Connected {
        // Called once, when the connection is ready for its first request.
        self.requests.0.store(0, Ordering::Relaxed);
        let connected = self.stream.connected().extra(self.requests.clone());
        if !self.is_kept {
            connected.poison();
        }
        connected
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    const LONG: Duration = Duration::from_secs(600);

    fn bounded(stream: DuplexStream, most_read: usize, longest: Duration) -> Bounded<DuplexStream> {
        Bounded::new(stream, most_read, longest, Arc::default())
    }

    #[tokio::test]
    async fn a_request_that_is_not_sent_whole_gives_no_more_to_read() {
        let (near, mut far) = duplex(16);
        let mut near = bounded(near, 16, LONG);
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
        let mut near = bounded(near, 24, LONG);
        for _ in 0..3 {
            near.write_all(&[1; 32]).await.unwrap();
            near.flush().await.unwrap();
            far.read_exact(&mut [0; 32]).await.unwrap();
            far.write_all(&[2; 20]).await.unwrap();
            near.read_exact(&mut [0; 20]).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_host_that_does_not_receive_the_request_in_time_is_left() {
        let (near, _far) = duplex(16);
        let mut near = bounded(near, 64, Duration::from_millis(50));
        let failed = near.write_all(&[1; 64]).await.unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
        // One that receives a little from time to time has no more time.
        let (near, mut slow) = duplex(16);
        let mut near = bounded(near, 64, Duration::from_millis(200));
        let drips = async {
            while slow.read_exact(&mut [0; 1]).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::select! {
            failed = near.write_all(&[1; 1 << 16]) => assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::TimedOut),
            () = drips => panic!("the connection has not ended"),
        }
    }

    #[tokio::test]
    async fn a_host_that_responds_first_has_a_moment_to_receive_the_rest() {
        let (near, mut far) = duplex(16);
        let mut near = bounded(near, 64, LONG);
        assert_eq!(near.write(&[1; 64]).await.unwrap(), 16);
        far.write_all(&[2; 8]).await.unwrap();
        near.read_exact(&mut [0; 8]).await.unwrap();
        let failed = timeout(LONG / 2, near.write_all(&[1; 48])).await.expect("long before its own time").unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn connections_above_the_bound_are_not_kept_and_each_is_counted_until_it_ends() {
        let open = Arc::new(AtomicUsize::new(MOST_KEPT - 1));
        let [last, above] = [0, 1].map(|_| Bounded::new(duplex(1).0, 1, LONG, Arc::clone(&open)));
        assert!(last.is_kept && !above.is_kept);
        drop((last, above));
        assert_eq!(open.load(Ordering::Relaxed), MOST_KEPT - 1);
    }
}
