//! The end of a connection whose client may still be sending.
//!
//! The server sends a response such as 401 or 413 before it has read the body. If it closed the socket then, the
//! kernel would answer the rest of the body with a reset. A reset can destroy the response before the client has read
//! it, and proxies make a 502 of that. So the connection is closed as RFC 9112, 9.6 says: first the sending half; then
//! the server reads and drops what arrives, for a limited time and number of bytes.

use crate::http::traffic::Traffic;
use std::{
    future::Future,
    io,
    mem::MaybeUninit,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Sleep,
};

/// How long the server reads after a response, at most.
pub(super) const LONGEST: Duration = Duration::from_secs(2);
/// How many bytes it reads and drops, at most.
pub(super) const MOST_BYTES: usize = 32 << 20;
/// Bytes of one read.
const PART: usize = 16 << 10;

/// A stream that is closed without a reset while its client still sends.
pub(super) struct ClosesGently {
    stream: TcpStream,
    traffic: Arc<Traffic>,
    /// Limits how many streams wait for their clients at the same time.
    places: Arc<Semaphore>,
    /// Whether the client has closed its half.
    ended: bool,
    closing: Option<Closing>,
}

/// The time after the sending half was closed.
struct Closing {
    until: Pin<Box<Sleep>>,
    bytes_left: usize,
    _place: OwnedSemaphorePermit,
}

impl ClosesGently {
    pub(super) fn new(stream: TcpStream, traffic: Arc<Traffic>, places: Arc<Semaphore>) -> Self {
        Self { stream, traffic, places, ended: false, closing: None }
    }

    /// Notes what the socket has taken.
    fn noted(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.traffic.sending(written.is_pending());
        if let Poll::Ready(Ok(bytes)) = &written {
            self.traffic.sent(*bytes);
        }
        written
    }

    /// Begins to wait for the client; `None` when the client sends nothing more, or when too many streams wait.
    fn begin(&self) -> Option<Closing> {
        if self.ended || !self.traffic.is_unread() {
            return None;
        }
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        Some(Closing { until: Box::pin(tokio::time::sleep(LONGEST)), bytes_left: MOST_BYTES, _place: place })
    }
}

impl AsyncRead for ClosesGently {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (before, room) = (buffer.filled().len(), buffer.remaining());
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.traffic.received();
        } else if room > 0 {
            self.ended = true;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ClosesGently {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.noted(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.noted(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Closes the sending half, then reads and drops what the client still sends, until it closes its half too.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.closing.is_none() {
            // It ends by itself, within its own bounds.
            this.traffic.sending(true);
            ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
            this.closing = this.begin();
        }
        let Some(closing) = &mut this.closing else { return Poll::Ready(Ok(())) };
        let mut bytes = [MaybeUninit::uninit(); PART];
        while closing.bytes_left > 0 && closing.until.as_mut().poll(context).is_pending() {
            let mut part = ReadBuf::uninit(&mut bytes);
            match ready!(Pin::new(&mut this.stream).poll_read(context, &mut part)) {
                Ok(()) if !part.filled().is_empty() => {
                    closing.bytes_left = closing.bytes_left.saturating_sub(part.filled().len());
                }
                // The client has closed its half, or the connection is broken.
                Ok(()) | Err(_) => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}
