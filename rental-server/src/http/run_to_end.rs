//! A request that may change something runs to its end, whatever its client does.
//!
//! A commit and what follows it (the relay is told of new events, a sender reads its endpoint again, remembered keys
//! are forgotten) are steps of one handler. hyper drops the handler's future when the connection fails, and the request
//! time-out drops it as well. (A client that only closes its sending half drops nothing: `half_close` in `server.rs`.)
//! So the future of such a request is kept in a box: dropped before its end, the box moves into a task of its own. This
//! covers every step of every handler at one place.
//!
//! A handler that still waits for its body has changed nothing: it is dropped. Safe methods are not wrapped at all.

use crate::{
    damaged_rows::DamagedRows,
    http::{call::Call, problem_log::log_problem, reply::Handled},
};
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// A handler that continues in a task of its own when it is dropped before its end.
pub(super) struct RunToEnd<F: Future<Output = Handled> + Send + 'static> {
    /// Nothing when it has ended.
    work: Option<Pin<Box<F>>>,
    call: Arc<Call>,
    damaged: Arc<DamagedRows>,
}

impl<F: Future<Output = Handled> + Send + 'static> RunToEnd<F> {
    pub(super) fn new(work: Pin<Box<F>>, call: Arc<Call>, damaged: Arc<DamagedRows>) -> Self {
        Self { work: Some(work), call, damaged }
    }
}

impl<F: Future<Output = Handled> + Send + 'static> Future for RunToEnd<F> {
    type Output = Handled;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Handled> {
        let Some(work) = &mut self.work else { return Poll::Pending };
        let outcome = ready!(work.as_mut().poll(context));
        self.work = None;
        Poll::Ready(outcome)
    }
}

impl<F: Future<Output = Handled> + Send + 'static> Drop for RunToEnd<F> {
    fn drop(&mut self) {
        let Some(work) = self.work.take().filter(|_| !self.call.is_reading()) else { return };
        let (call, damaged) = (Arc::clone(&self.call), Arc::clone(&self.damaged));
        // Outside of the runtime, when the process ends, nothing can continue.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            if let Err(problem) = work.await {
                log_problem(&problem, &call, &damaged);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{client_address::Peer, reply::Reply, traffic::Traffic};
    use std::net::{IpAddr, Ipv4Addr};
    use tokio::sync::oneshot;

    fn call() -> Arc<Call> {
        let peer = Peer::new(IpAddr::V4(Ipv4Addr::LOCALHOST), &Arc::default());
        let traffic = Arc::new(Traffic::new(Box::new(()), peer, false, Default::default()));
        Arc::new(Call::new(&mut warp::http::Request::new(String::new()), traffic.begin()))
    }

    /// A handler that commits, and then does what follows a commit.
    #[tokio::test]
    async fn what_follows_a_commit_happens_after_the_client_has_gone_or_the_time_is_over() {
        let (commit, committed) = oneshot::channel::<()>();
        let (follow, mut followed) = oneshot::channel();
        let work = Box::pin(async move {
            committed.await.expect("the commit ends");
            follow.send(()).expect("the test waits");
            Ok(Reply::json("{}".into()))
        });
        let mut request = RunToEnd::new(work, call(), Arc::default());
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert!(Pin::new(&mut request).poll(&mut context).is_pending());
        drop(request);
        commit.send(()).expect("the handler still waits for its commit");
        assert!(followed.try_recv().is_err(), "it goes on in a task of its own");
        followed.await.expect("what follows the commit happens");
    }
}
