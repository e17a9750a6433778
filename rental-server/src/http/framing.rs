//! Refuses requests that a proxy in front may read in another way: what is one request there must be one request here, for the
//! same host (RFC 9110, 7.2; RFC 9112, 6.1 and 7.1.2).

use crate::http::{call::Call, problem::Problem};
use bytes::Buf;
use hyper::body::{Body, Frame, SizeHint};
use std::{
    net::Ipv6Addr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use warp::http::{HeaderValue, Version, header};

/// Checks the host and the transfer coding of a head. hyper has checked that the last coding is `chunked`, and the lengths.
pub(super) fn check(call: &Call) -> Result<(), Problem> {
    let ((version, target), headers) = (call.version_and_target(), call.headers());
    let host = |rule| Err(Problem::BadHeader { name: "Host", rule });
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(_), Some(_)) => return host("must be sent exactly once"),
        // In HTTP/2 a part of the path names it.
        (None, _) if version == Version::HTTP_11 => return host("must be sent exactly once"),
        (Some(one), None) if !is_host(one.as_bytes()) => {
            return host("must be a name or an address, with a port after a colon if needed");
        }
        (Some(one), None) if target.authority().is_some_and(|named| !names(one, named.as_str())) => {
            return host("must be the host of the path, or be left out");
        }
        _ => {}
    }
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(_), Some(_)) => Err(Problem::BadHeader { name: "Transfer-Encoding", rule: "must be sent once" }),
        (Some(coding), None) if coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked") => Ok(()),
        (Some(_), None) => Err(Problem::TransferCoding),
    }
}

fn names(host: &HeaderValue, authority: &str) -> bool {
    host.as_bytes().eq_ignore_ascii_case(authority.as_bytes())
}

/// Whether this is a host with or without a port (RFC 3986, 3.2.2 and 3.2.3): a name, an address, or an address of IPv6 in
/// brackets.
fn is_host(text: &[u8]) -> bool {
    let (host_is_valid, rest) = match text.strip_prefix(b"[") {
        Some(inner) => {
            let Some(end) = inner.iter().position(|byte| *byte == b']') else { return false };
            let (address, rest) = inner.split_at(end);
            (
                std::str::from_utf8(address).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok()),
                rest.get(1..).unwrap_or_default(),
            )
        }
        None => {
            let (name, rest) = text.split_at(text.iter().position(|byte| *byte == b':').unwrap_or(text.len()));
            (name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(byte)), rest)
        }
    };
    let port_is_valid = rest.strip_prefix(b":").map_or(rest.is_empty(), |port| port.iter().all(u8::is_ascii_digit));
    host_is_valid && port_is_valid
}

/// A body that tells its call when it has a trailer.
///
/// hyper takes bare line feeds in a trailer, so it may end elsewhere than a proxy says. Nothing behind it is served.
pub(super) struct Watched<B> {
    body: B,
    call: Arc<Call>,
}

impl<B> Watched<B> {
    pub(super) fn new(body: B, call: Arc<Call>) -> Self {
        Self { body, call }
    }
}

impl<B: Body<Data: Buf> + Unpin> Body for Watched<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame
            && frame.is_trailers()
        {
            self.call.has_trailer();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
