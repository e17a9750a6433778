//! The rest of a request's body over HTTP/2, when the response was sent before it was read.
//!
//! A stream whose body is dropped ends with RST_STREAM(NO_ERROR) (RFC 9113, 8.1). But clients such as curl then lose the response
//! that came before. So the server reads and drops the rest, for as long as it reads from a connection that it closes.

use crate::http::{
    closing::{LONGEST, MOST_BYTES},
    traffic::Traffic,
};
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// A body whose rest is read after it was dropped.
pub(super) struct ReadToItsEnd {
    /// Taken by the drop.
    body: Option<Incoming>,
    places: Places,
}

/// Limits how much is read at the same time: of all connections, those of HTTP/1 that are closed included, and of this connection.
#[derive(Clone)]
pub(super) struct Places {
    pub(super) of_all: Arc<Semaphore>,
    pub(super) of_connection: Arc<Semaphore>,
    /// The traffic of the connection. A shutdown closes no connection from which a body is read.
    pub(super) traffic: Arc<Traffic>,
}

impl Places {
    fn take(&self) -> Option<[OwnedSemaphorePermit; 2]> {
        let take = |places: &Arc<Semaphore>| Arc::clone(places).try_acquire_owned().ok();
        Some([take(&self.of_connection)?, take(&self.of_all)?])
    }
}

impl ReadToItsEnd {
    pub(super) fn new(body: Incoming, places: Places) -> Self {
        Self { body: Some(body), places }
    }
}

impl Body for ReadToItsEnd {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, Body::size_hint)
    }
}

impl Drop for ReadToItsEnd {
    fn drop(&mut self) {
        let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) else { return };
        if let (Some(places), Ok(runtime)) = (self.places.take(), Handle::try_current()) {
            let rest = self.places.traffic.rest();
            runtime.spawn(async move {
                let _ = timeout(LONGEST, read(body)).await;
                drop((places, rest));
            });
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
