//! Divides a bounded resource among those that compete for it: writes in progress and memory for bodies among
//! organizations, requests in flight among connections of HTTP/2.
//!
//! A holder may take more while it has less than what is free (dynamic thresholds, Choudhury and Hahne, 1998). One holder
//! alone gets at most half. When `n` holders want all they can get, each gets one part of `n + 1`, and one part stays free
//! for the next one. So a holder that takes little is admitted whatever the others do, and no list of holders is needed.
//! A holder has two counters: to take and to give back is four additions, without a lock.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Notify, time::timeout};

/// How long a holder waits that has its share already. It bounds the time until a request is refused.
const PATIENCE: Duration = Duration::from_millis(100);

/// The resource.
#[derive(Debug)]
pub(crate) struct Shares {
    most: usize,
    taken: AtomicUsize,
}

/// What one holder has of it.
#[derive(Debug, Default)]
pub(crate) struct Share {
    taken: AtomicUsize,
    waiting: AtomicUsize,
    given_back: Notify,
}

/// A part that is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Part {
    shares: Arc<Shares>,
    share: Arc<Share>,
    amount: usize,
}

/// Counts one that waits.
struct Waiting<'s>(&'s Share);

impl Shares {
    /// `most` is what all holders together can have. One holder can have half of it.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: AtomicUsize::new(0) })
    }

    /// Takes an amount now, if the share allows it.
    pub(crate) fn try_take(self: &Arc<Self>, share: &Arc<Share>, amount: usize) -> Option<Part> {
        // Added before it is compared: two that come at once never both get the last part. A refused one takes it back, so
        // another can be refused for a moment although there was just enough.
        let taken = self.taken.fetch_add(amount, Ordering::Relaxed);
        let own = share.taken.fetch_add(amount, Ordering::Relaxed);
        if own.saturating_add(amount) <= self.most.saturating_sub(taken) {
            return Some(Part { shares: Arc::clone(self), share: Arc::clone(share), amount });
        }
        self.give_back(share, amount);
        None
    }

    /// Takes an amount; waits a moment until the share allows it. `None` when it does not.
    pub(crate) async fn take(self: &Arc<Self>, share: &Arc<Share>, amount: usize) -> Option<Part> {
        if let Some(part) = self.try_take(share, amount) {
            return Some(part);
        }
        let waiting = Waiting::new(share);
        let taken = async {
            loop {
                // Counted as waiting before it looks again: what is given back from now on wakes it.
                if let Some(part) = self.try_take(share, amount) {
                    return part;
                }
                share.given_back.notified().await;
            }
        };
        let part = timeout(PATIENCE, taken).await.ok();
        drop(waiting);
        // There may be enough for one more that waits.
        share.wake_one();
        part
    }

    fn give_back(&self, share: &Share, amount: usize) {
        self.taken.fetch_sub(amount, Ordering::Relaxed);
        share.taken.fetch_sub(amount, Ordering::SeqCst);
    }
}

impl Share {
    fn wake_one(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.given_back.notify_one();
        }
    }
}

impl<'s> Waiting<'s> {
    fn new(share: &'s Share) -> Self {
        share.waiting.fetch_add(1, Ordering::SeqCst);
        Self(share)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.shares.give_back(&self.share, self.amount);
        self.share.wake_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(shares: &Arc<Shares>, share: &Arc<Share>) -> Vec<Part> {
        std::iter::from_fn(|| shares.try_take(share, 1)).collect()
    }

    #[test]
    fn one_alone_gets_half_and_a_second_one_half_of_the_rest() {
        let (shares, first, second) = (Shares::new(64), Arc::default(), Arc::default());
        let held = fill(&shares, &first);
        assert_eq!(held.len(), 32);
        assert_eq!(fill(&shares, &second).len(), 16);
        drop(held);
        assert_eq!((shares.taken.load(Ordering::SeqCst), first.taken.load(Ordering::SeqCst)), (0, 0));
    }

    /// All take turns, as if each gave back and took again: the shares become equal, and one part stays free.
    #[test]
    fn many_that_want_all_get_equal_parts_and_leave_one() {
        let shares = Shares::new(60);
        let mut holders: Vec<(Arc<Share>, Vec<Part>)> = (0..5).map(|_| (Arc::default(), Vec::new())).collect();
        for _ in 0..100 {
            for (share, parts) in &mut holders {
                parts.pop();
                parts.extend(shares.try_take(share, 1));
                parts.extend(shares.try_take(share, 1));
            }
        }
        let sizes: Vec<usize> = holders.iter().map(|(_, parts)| parts.len()).collect();
        assert!(sizes.iter().all(|size| (9..=11).contains(size)), "{sizes:?}");
        assert!(shares.try_take(&Arc::default(), 5).is_some(), "{sizes:?}");
    }

    #[test]
    fn more_than_there_is_is_never_taken_and_leaves_no_trace() {
        let (shares, share) = (Shares::new(100), Arc::default());
        assert!(shares.try_take(&share, 101).is_none());
        assert!(shares.try_take(&share, usize::MAX / 2).is_none());
        let held = shares.try_take(&share, 50);
        assert!(held.is_some() && shares.try_take(&share, 1).is_none());
        drop(held);
        assert!(shares.try_take(&share, 100).is_some());
    }

    #[tokio::test]
    async fn one_that_waits_gets_what_is_given_back_and_else_nothing() {
        let (shares, share) = (Shares::new(4), Arc::default());
        let mut held = fill(&shares, &share);
        assert!(shares.take(&share, 1).await.is_none());
        let give_back = async {
            tokio::task::yield_now().await;
            held.clear();
        };
        let (first, second, ()) = tokio::join!(shares.take(&share, 1), shares.take(&share, 1), give_back);
        assert!(first.is_some() && second.is_some());
        assert_eq!(share.waiting.load(Ordering::SeqCst), 0);
    }
}
