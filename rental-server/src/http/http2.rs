//! HTTP/2, over TLS only: many requests on one connection, all of them bounded.
//!
//! What a client still sends after an early response is read and dropped; see [`ReadToItsEnd`]. A shutdown sends GOAWAY, and the
//! requests in flight are finished.

use crate::{
    http::{
        reply::{Problem, Unsent},
        serve::{Service, respond},
        serving::{MAX_HEAD, Shared, answer, to_its_end},
        traffic::Traffic,
        unread::ReadToItsEnd,
    },
    limits::{Holder, Part},
};
use bytes::Bytes;
use hyper::{
    Request,
    body::{Body, Frame, Incoming, SizeHint},
    server::conn::http2,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::{
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncWrite};

/// Most requests of a connection at the same time.
const STREAMS: u32 = 50;
/// Bytes of bodies that a client may send before they are read: of one request, and of all of a connection.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;
/// Bytes of a response that wait for the client, beside the part that is being sent.
const SEND_BUFFER: usize = 64 << 10;
/// How often a silent client is asked whether it is still there, and how long it may take to answer.
const PING: Duration = Duration::from_secs(20);

/// Serves a connection until it ends.
pub(super) async fn serve<S, I>(stream: I, traffic: Arc<Traffic>, holder: Holder, shared: Shared<S>)
where
    S: Service,
    I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let Shared { service, requests, drained, .. } = shared;
    let seen = Arc::clone(&traffic);
    let answers = service_fn(move |request: Request<Incoming>| {
        let part = requests.try_take(holder, 1);
        let request = request.map(ReadToItsEnd::new);
        let (call, response) = answer(&service, &seen, request);
        // In a box that is freed when the head of the response is ready: a body can wait for its client for long.
        let (service, response) = (Arc::clone(&service), Box::pin(response));
        async move {
            if part.is_some() {
                return response.await.map(|response| response.map(|body| Counted { body, part: part.map(Arc::new) }));
            }
            // Dropped before it has begun.
            drop(response);
            service.crowded();
            let response = respond(&*service, &call, Err(Problem::Crowded));
            service.served(&call, None, response.status().as_u16(), call.at.elapsed());
            Ok(response.map(|body| Counted { body, part: None }))
        }
    });
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(MAX_HEAD as u32)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    let serving = pin!(builder.serve_connection(TokioIo::new(stream), answers));
    to_its_end(serving, |serving| serving.graceful_shutdown(), (&traffic, false), drained).await;
}

/// The body of a response that counts as in flight until the last of its bytes was sent. The connection takes a body whole
/// and keeps it as long as the client does not read.
struct Counted<B> {
    body: B,
    part: Option<Arc<Part>>,
}

impl<B: Body<Data = Bytes> + Unpin> Body for Counted<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let Some(part) = &self.part else { return Poll::Ready(frame) };
        Poll::Ready(
            frame.map(|frame| frame.map(|frame| frame.map_data(|bytes| Unsent::bytes(bytes, Arc::clone(part))))),
        )
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
