//! Turns a panic of a future into an error, so that it ends this future alone.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
};

/// A future that was caught panicking. The panic hook has logged where and why.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Panicked;

/// Waits for `future`; a panic in it becomes an error. The future is dropped in both cases, and must not be shared.
pub(crate) async fn catch_panic<T>(future: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
        Err(_) => Poll::Ready(Err(Panicked)),
    })
    .await
}
