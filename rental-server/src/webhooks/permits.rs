//! The permits of attempts in flight, over all endpoints. [`FairShare`] decides who gets one.

use rental_core::webhooks::fair_share::{FairShare, Holder};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// Most attempts in flight at once, over all endpoints. One organization can have half of them.
pub(crate) const MOST_IN_FLIGHT: u32 = 1024;

/// Permits, and the lanes that wait for one.
pub(super) struct Permits {
    share: Mutex<FairShare<oneshot::Sender<Permit>>>,
    /// Signalled when no permit is in use any more.
    idle: Notify,
}

/// Allows one attempt to be in flight. It is given back when it goes out of scope.
pub(super) struct Permit {
    permits: Arc<Permits>,
    holder: Holder,
}

impl Permits {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { share: Mutex::new(FairShare::new(MOST_IN_FLIGHT)), idle: Notify::new() })
    }

    /// A permit, or what will receive one. Dropping the receiver ends the wait.
    pub(super) fn take(self: &Arc<Self>, holder: Holder) -> Result<Permit, oneshot::Receiver<Permit>> {
        let mut share = self.share();
        if share.take(holder) {
            return Ok(Permit { permits: Arc::clone(self), holder });
        }
        let (sender, receiver) = oneshot::channel();
        share.wait(holder, sender);
        Err(receiver)
    }

    /// Waits until no attempt is in flight.
    pub(super) async fn until_idle(&self) {
        loop {
            let idle = self.idle.notified();
            if self.share().in_use() == 0 {
                return;
            }
            idle.await;
        }
    }

    fn share(&self) -> MutexGuard<'_, FairShare<oneshot::Sender<Permit>>> {
        self.share.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(self: &Arc<Self>, holder: Holder) {
        let mut granted = Vec::new();
        let mut share = self.share();
        share.give_back(holder);
        while let Some((holder, lane)) = share.grant() {
            if lane.is_closed() {
                share.give_back(holder);
            } else {
                granted.push((lane, Permit { permits: Arc::clone(self), holder }));
            }
        }
        if share.in_use() == 0 {
            self.idle.notify_waiters();
        }
        // A lane that has just stopped waiting drops its permit, which locks again.
        drop(share);
        for (lane, permit) in granted {
            let _ = lane.send(permit);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.permits.give_back(self.holder);
    }
}
