//! Threads of their own for the connections to receivers and calendars of others.
//!
//! What a stranger sends is parsed there. hyper reads interim responses (1xx) without a bound, and without a pause while more of
//! them arrive, so a stranger can occupy the thread that reads. The threads that serve requests are others, and the system
//! divides the processors among them.

use std::{
    future::Future,
    io,
    pin::{Pin, pin},
    task::{Context, Poll},
};
use tokio::runtime::{Builder, Handle, Runtime};

/// The threads. Dropping them ends the connections. There is a runtime until then.
pub(super) struct Apart(Option<Runtime>);

impl Apart {
    pub(super) fn new() -> io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = Builder::new_multi_thread()
            .worker_threads((cores / 2).max(1))
            .thread_name("outgoing")
            .enable_all()
            .build()?;
        Ok(Self(Some(runtime)))
    }

    /// Runs a future here, so that what it spawns runs on these threads: the connections of the client.
    pub(super) async fn run<F: Future>(&self, future: F) -> F::Output {
        let Some(runtime) = &self.0 else { return future.await };
        Entered { handle: runtime.handle(), future: pin!(future) }.await
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        // Waiting for threads would block the one that drops this.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

struct Entered<'r, F> {
    handle: &'r Handle,
    future: Pin<&'r mut F>,
}

impl<F: Future> Future for Entered<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let _entered = self.handle.enter();
        self.future.as_mut().poll(context)
    }
}
