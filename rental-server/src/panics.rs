//! Turns a panic of a future into an error, so that it ends this future alone.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::Poll,
};

/// A future that was caught panicking. The panic hook has logged where and why.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Panicked;

/// Waits for `future`; a panic in it becomes an error. The caller pins the future: moved in here, it
/// would be held twice. It must not be polled again.
pub(crate) async fn catch_panic<T>(mut future: impl Future<Output = T> + Unpin) -> Result<T, Panicked> {
    std::future::poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| Pin::new(&mut future).poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
        Err(_) => Poll::Ready(Err(Panicked)),
    })
    .await
}
