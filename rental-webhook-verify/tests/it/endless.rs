//! A body without an end.

use core::convert::Infallible;
use core::pin::Pin;
use core::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};

use crate::deliveries::LIMIT;

/// Panics when it was read far beyond the limit.
#[derive(Default)]
pub(crate) struct Endless {
    frames: usize,
}

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.frames += 1;
        assert!(self.frames < 10, "still reading at {} times the limit", self.frames);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[0; LIMIT / 2 + 1])))))
    }
}
