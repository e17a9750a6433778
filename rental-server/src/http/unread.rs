//! The rest of a request's body over HTTP/2, when the response was sent before it was read.
//!
//! A stream whose body is dropped ends with RST_STREAM(NO_ERROR) (RFC 9113, 8.1). But clients such as curl then lose the response
//! that came before. So the server reads and drops the rest, for as long as it reads from a connection that it closes. The stream
//! counts as one of its connection for that time.

use crate::http::closing::{LONGEST, MOST_BYTES};
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::{runtime::Handle, time::timeout};

/// A body whose rest is read after it was dropped. Taken by the drop.
pub(super) struct ReadToItsEnd(Option<Incoming>);

impl ReadToItsEnd {
    pub(super) fn new(body: Incoming) -> Self {
        Self(Some(body))
    }
}

impl Body for ReadToItsEnd {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        match &mut self.0 {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or_else(SizeHint::default, Body::size_hint)
    }
}

impl Drop for ReadToItsEnd {
    fn drop(&mut self) {
        let Some(body) = self.0.take().filter(|body| !body.is_end_stream()) else { return };
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(timeout(LONGEST, read(body)));
        }
    }
}

/// Reads a body to its end, or as much of it as is read of a connection that is closed.
async fn read(mut body: Incoming) {
    let mut left = MOST_BYTES;
    while let Some(Ok(frame)) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
