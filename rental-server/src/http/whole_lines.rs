//! Refuses heads of HTTP/1.1 whose lines end in a bare line feed.
//!
//! hyper takes them, as RFC 9112, 2.2 allows. A proxy in front may not, and then proxy and server disagree where a request
//! ends. hyper has no switch for it, and it answers a NUL in a head with 400: so a bare line feed of a head becomes one.
//!
//! A head that a client sends before the response to a request with a body is not looked at.

use crate::http::traffic::Traffic;
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream whose heads have whole line endings.
pub(super) struct WholeLines<I> {
    io: I,
    traffic: Arc<Traffic>,
    lines: Lines,
}

/// Bytes of a line that tell whether a body follows: `transfer-encoding:`.
const START: usize = 18;

/// How far a head was read.
#[derive(Debug, Default, Eq, PartialEq)]
struct Lines {
    /// Whether the head has ended: a body follows.
    ended: bool,
    /// Bytes of the present line so far.
    length: usize,
    /// The beginning of a line that comes in parts.
    start: [u8; START],
    /// Whether the last byte was a carriage return.
    returned: bool,
    /// Whether the head has a line.
    begun: bool,
    /// Whether a body follows the head.
    has_body: bool,
}

impl Lines {
    /// Looks at the next bytes, and makes a NUL of a bare line feed in a head.
    fn check(&mut self, bytes: &mut [u8]) {
        let mut line = 0;
        for at in 0..bytes.len() {
            if self.ended {
                return;
            }
            if bytes[at] != b'\n' {
                continue;
            }
            let returned = if at == 0 { self.returned } else { bytes[at - 1] == b'\r' };
            if !returned {
                bytes[at] = 0;
                // hyper refuses it, and reads no other head.
                self.ended = true;
                return;
            }
            self.line_ends(&bytes[line..=at]);
            line = at + 1;
        }
        if let Some(last) = bytes.last() {
            self.returned = *last == b'\r';
            self.part(&bytes[line..]);
        }
    }

    /// Adds a part of the present line.
    fn part(&mut self, part: &[u8]) {
        if let Some(free) = self.start.get_mut(self.length..) {
            let count = part.len().min(free.len());
            free[..count].copy_from_slice(&part[..count]);
        }
        self.length += part.len();
    }

    /// `line` is the last part of a line, with its line feed.
    fn line_ends(&mut self, line: &[u8]) {
        let whole = self.length == 0;
        if !whole {
            self.part(line);
        }
        let length = std::mem::take(&mut self.length).max(line.len());
        if length > 2 {
            self.begun = true;
            let start = if whole { line } else { &self.start[..length.min(START)] };
            self.has_body |= begins(start, b"content-length:") || begins(start, b"transfer-encoding:");
        } else if self.begun {
            // Without a body, the next head follows at once.
            *self = Self { ended: self.has_body, ..Self::default() };
        }
    }
}

fn begins(line: &[u8], name: &[u8]) -> bool {
    line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
}

impl<I> WholeLines<I> {
    pub(super) fn new(io: I, traffic: Arc<Traffic>) -> Self {
        Self { io, traffic, lines: Lines::default() }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for WholeLines<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.lines.ended && !this.traffic.is_unread() {
            this.lines = Lines::default();
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.io).poll_read(context, buffer))?;
        this.lines.check(&mut buffer.filled_mut()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for WholeLines<I> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that bare line feeds become NULs, however the bytes are cut.
    #[track_caller]
    fn check(given: &str, expected: &str) {
        for cut in 0..=given.len() {
            let (mut bytes, mut lines) = (given.as_bytes().to_vec(), Lines::default());
            let (first, second) = bytes.split_at_mut(cut);
            lines.check(first);
            lines.check(second);
            assert_eq!(String::from_utf8_lossy(&bytes), expected, "cut at {cut}");
        }
    }

    #[test]
    fn whole_lines_stay_as_they_are() {
        check("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        check("\r\nGET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n", "\r\nGET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n");
        let body = "POST / HTTP/1.1\r\nCONTENT-LENGTH: 3\r\n\r\na\nb";
        check(body, body);
        let body = "POST / HTTP/1.1\r\nTransfer-encoding: chunked\r\n\r\n3\r\na\nb\r\n0\r\n\r\n";
        check(body, body);
    }

    #[test]
    fn a_bare_line_feed_of_a_head_becomes_what_hyper_refuses() {
        check("GET / HTTP/1.1\nHost: x\r\n\r\n", "GET / HTTP/1.1\0Host: x\r\n\r\n");
        check("GET / HTTP/1.1\r\nHost: x\n\r\n", "GET / HTTP/1.1\r\nHost: x\0\r\n");
        check("GET / HTTP/1.1\r\nHost: x\r\n\n", "GET / HTTP/1.1\r\nHost: x\r\n\0");
        // A second head behind one without a body.
        check(
            "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\0\r\n",
        );
    }
}
