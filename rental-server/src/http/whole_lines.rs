//! Follows the requests of HTTP/1.1 on a connection, and refuses those that a proxy in front may read in another way.
//!
//! hyper takes heads whose lines end in a bare line feed, as RFC 9112, 2.2 allows, and heads with several lengths of the body.
//! A proxy in front may not, and then proxy and server disagree where a request ends. hyper has no switch for it, and it
//! answers a NUL in a head with 400: so the line feed of such a line becomes one. A chunked body that proxies read in several
//! ways ends in an error.

use crate::http::chunks::{Chunks, Follows};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream whose requests begin and end where everybody reads it.
pub(super) struct WholeLines<I> {
    io: I,
    requests: Requests,
}

/// What the next byte of the connection belongs to.
#[derive(Debug)]
enum Requests {
    Head(Lines),
    /// The rest of a body whose length the head says.
    Sized(u64),
    Chunked(Chunks),
    /// A head that hyper refuses: it reads no other request.
    Refused,
    /// A body that is no further read.
    Broken,
}

/// Longest line that tells how long the body is: a name and a length. hyper reads longer ones, with spaces or zeros before the
/// length, and this module keeps no more of a line.
const START: usize = 64;

/// How far a head was read.
#[derive(Debug)]
struct Lines {
    /// Bytes of the present line so far.
    length: usize,
    /// The beginning of a line that comes in parts.
    start: [u8; START],
    /// Whether the last byte was a carriage return.
    returned: bool,
    /// Whether the head has a line.
    begun: bool,
    body: Option<Length>,
}

/// How long the body is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Length {
    Sized(u64),
    Chunked,
}

impl Requests {
    const NEXT: Self = Self::Head(Lines { length: 0, start: [0; START], returned: false, begun: false, body: None });

    /// Looks at the next bytes, and makes a NUL of the line feed that ends a refused line. Returns how many of them can be read.
    fn check(&mut self, bytes: &mut [u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &mut bytes[at..];
            match self {
                Self::Head(lines) => {
                    let (count, next) = lines.check(rest);
                    at += count;
                    if let Some(next) = next {
                        *self = next;
                    }
                }
                Self::Sized(left) => {
                    let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(rest.len());
                    *left -= taken as u64;
                    at += taken;
                    if *left == 0 {
                        *self = Self::NEXT;
                    }
                }
                Self::Chunked(chunks) => match chunks.follow(rest) {
                    Follows::Body => return bytes.len(),
                    Follows::Ended(count) => {
                        at += count;
                        *self = Self::NEXT;
                    }
                    Follows::Broken(count) => {
                        *self = Self::Broken;
                        return at + count;
                    }
                },
                Self::Refused => return bytes.len(),
                Self::Broken => return at,
            }
        }
        at
    }
}

impl Lines {
    /// Returns how many bytes belong to the head, and what follows it once it has ended.
    fn check(&mut self, bytes: &mut [u8]) -> (usize, Option<Requests>) {
        let mut line = 0;
        for at in 0..bytes.len() {
            if bytes[at] != b'\n' {
                continue;
            }
            let returned = if at == 0 { self.returned } else { bytes[at - 1] == b'\r' };
            let ended = if returned { self.line_ends(&bytes[line..=at]) } else { Err(Unclear) };
            match ended {
                Ok(None) => line = at + 1,
                Ok(Some(next)) => return (at + 1, Some(next)),
                Err(Unclear) => {
                    bytes[at] = 0;
                    return (at + 1, Some(Requests::Refused));
                }
            }
        }
        if let Some(last) = bytes.last() {
            self.returned = *last == b'\r';
            self.part(&bytes[line..]);
        }
        (bytes.len(), None)
    }

    /// Adds a part of the present line.
    fn part(&mut self, part: &[u8]) {
        if let Some(free) = self.start.get_mut(self.length..) {
            let count = part.len().min(free.len());
            free[..count].copy_from_slice(&part[..count]);
        }
        self.length += part.len();
    }

    /// `line` is the last part of a line, with its line feed. Returns what follows the head if it ends here.
    fn line_ends(&mut self, line: &[u8]) -> Result<Option<Requests>, Unclear> {
        let whole = self.length == 0;
        if !whole {
            self.part(line);
        }
        let length = std::mem::take(&mut self.length).max(line.len());
        if length > 2 {
            self.begun = true;
            let start = if whole { line } else { &self.start[..] };
            self.body = longer(self.body, &start[..length.min(START)], length > START)?;
        } else if self.begun {
            return Ok(Some(match self.body {
                None | Some(Length::Sized(0)) => Requests::NEXT,
                Some(Length::Sized(length)) => Requests::Sized(length),
                Some(Length::Chunked) => Requests::Chunked(Chunks::new()),
            }));
        }
        Ok(None)
    }
}

/// The length of the body cannot be told.
struct Unclear;

/// The length of the body after this line of the head, of which only the beginning is known when it `is_cut`. hyper takes the
/// same length twice, and one beside a transfer coding.
fn longer(known: Option<Length>, line: &[u8], is_cut: bool) -> Result<Option<Length>, Unclear> {
    let [coding, length] = [&b"transfer-encoding:"[..], b"content-length:"].map(|name| value(line, name));
    if is_cut && coding.or(length).is_some() {
        return Err(Unclear);
    }
    if coding.is_some() {
        let is_second_length = matches!(known, Some(Length::Sized(_)));
        return if is_second_length { Err(Unclear) } else { Ok(Some(Length::Chunked)) };
    }
    match (length, known) {
        (None, _) => Ok(known),
        (Some(_), Some(_)) => Err(Unclear),
        (Some(length), None) => {
            let length = length.trim_ascii();
            let is_number = length.iter().all(u8::is_ascii_digit);
            let length = std::str::from_utf8(length).ok().filter(|_| is_number).and_then(|length| length.parse().ok());
            length.map(|length| Some(Length::Sized(length))).ok_or(Unclear)
        }
    }
}

/// The value of the field with this name.
fn value<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then_some(value)
}

impl<I> WholeLines<I> {
    pub(super) const fn new(io: I) -> Self {
        Self { io, requests: Requests::NEXT }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for WholeLines<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        if !matches!(this.requests, Requests::Broken) {
            ready!(Pin::new(&mut this.io).poll_read(context, buffer))?;
            let count = this.requests.check(&mut buffer.filled_mut()[before..]);
            buffer.set_filled(before + count);
        }
        // What came before the broken byte is read first.
        if matches!(this.requests, Requests::Broken) && buffer.filled().len() == before {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "the framing of a body is broken")));
        }
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

    /// Checks what can be read of a connection, however the bytes are cut.
    #[track_caller]
    fn check(given: &str, expected: &str) {
        for cut in 0..=given.len() {
            let (mut bytes, mut requests) = (given.as_bytes().to_vec(), Requests::NEXT);
            let (first, second) = bytes.split_at_mut(cut);
            let count = requests.check(first);
            let count = count + if count == cut { requests.check(second) } else { 0 };
            bytes.truncate(count);
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

    #[test]
    fn a_head_behind_a_body_is_looked_at() {
        let next = "GET / HTTP/1.1\n\r\n";
        for request in [
            "POST / HTTP/1.1\r\nContent-Length:\t 3 \r\n\r\na\nb",
            "POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na\nb\r\n0\r\nX: y\r\n\r\n",
        ] {
            check(&format!("{request}{next}"), &format!("{request}GET / HTTP/1.1\0\r\n"));
        }
    }

    #[test]
    fn a_head_with_two_lengths_or_one_that_is_no_number_becomes_what_hyper_refuses() {
        for (first, last) in [
            ("Content-Length: 3\r\n", "content-length: 3\r"),
            ("Content-Length: 3\r\n", "Transfer-Encoding: chunked\r"),
            ("Transfer-Encoding: chunked\r\n", "Content-Length: 3\r"),
            ("", "Content-Length: +3\r"),
            ("", "Content-Length: 3, 3\r"),
            ("", "Content-Length:\r"),
            ("", "Content-Length: 18446744073709551616\r"),
        ] {
            let head = format!("POST / HTTP/1.1\r\n{first}{last}");
            check(&format!("{head}\n\r\nabc"), &format!("{head}\0\r\nabc"));
        }
    }

    #[test]
    fn a_length_in_a_line_that_is_longer_than_what_is_kept_of_it_becomes_what_hyper_refuses() {
        for (name, value) in [("Content-Length:", "3"), ("Transfer-Encoding:", "chunked")] {
            for pad in ["0", " "].into_iter().filter(|pad| *pad == " " || value == "3") {
                let line =
                    |bytes: usize| format!("{name}{}{value}\r", pad.repeat(bytes - 2 - name.len() - value.len()));
                for bytes in [START + 1, START + 2, 2 * START] {
                    let head = format!("POST / HTTP/1.1\r\n{}", line(bytes));
                    check(&format!("{head}\n\r\nabc"), &format!("{head}\0\r\nabc"));
                }
                let body = if value == "3" { "a\nb" } else { "3\r\na\nb\r\n0\r\n\r\n" };
                let taken = format!("POST / HTTP/1.1\r\n{}\n\r\n{body}", line(START));
                check(&format!("{taken}GET / HTTP/1.1\n\r\n"), &format!("{taken}GET / HTTP/1.1\0\r\n"));
            }
        }
        let other = format!("GET / HTTP/1.1\r\nContent-Lengths: {}\r\n\r\n", "1".repeat(START));
        check(&other, &other);
    }

    #[test]
    fn nothing_is_read_from_the_broken_byte_of_a_body_on() {
        let head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        check(&format!("{head}0\r\nX: y\n\r\nGET"), &format!("{head}0\r\nX: y"));
        check(&format!("{head}0x1"), &format!("{head}0"));
    }
}
