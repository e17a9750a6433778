//! Divides a bounded resource among those that compete for it: writes in progress and memory for bodies and responses among
//! organizations, requests in flight among connections of HTTP/2.
//!
//! A holder may take more while it has less than what is free (dynamic thresholds, Choudhury and Hahne, 1998). One holder
//! alone gets at most half. When `n` holders want all they can get, each gets one part of `n + 1`, and one part stays free
//! for the next one. So a holder that takes little is admitted whatever the others do, and no list of holders is needed.
//! To take and to give back needs no lock, as long as nobody waits. Those of one holder wait one behind the other; the first of
//! each holder tries again whenever anything is given back by anyone.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::{
    sync::{Mutex, Notify},
    time::timeout,
};

/// How long a holder waits that has its share already. It bounds the time until a request is refused.
const PATIENCE: Duration = Duration::from_millis(100);

/// The resource.
#[derive(Debug)]
pub(crate) struct Shares {
    most: usize,
    taken: AtomicUsize,
    /// How many wait, of all holders.
    waiting: AtomicUsize,
    given_back: Notify,
}

/// What one holder has of it.
#[derive(Debug, Default)]
pub(crate) struct Share {
    taken: AtomicUsize,
    /// Held by the first of those that wait.
    turn: Mutex<()>,
}

/// A part that is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Part {
    shares: Arc<Shares>,
    share: Arc<Share>,
    amount: usize,
}

/// Counts one that waits.
struct Waiting<'s>(&'s Shares);

impl Shares {
    /// `most` is what all holders together can have. One holder can have half of it.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: AtomicUsize::new(0), waiting: AtomicUsize::new(0), given_back: Notify::new() })
    }

    /// Takes an amount now, if the share allows it.
    pub(crate) fn try_take(self: &Arc<Self>, share: &Arc<Share>, amount: usize) -> Option<Part> {
        let fits = |own: usize, taken: usize| own.saturating_add(amount) <= self.most.saturating_sub(taken);
        if !fits(share.taken.load(SeqCst), self.taken.load(SeqCst)) {
            return None;
        }
        // Added to the share before it is compared: two of one holder that come at once never both get the last part.
        let own = share.taken.fetch_add(amount, SeqCst);
        let all = |taken| fits(own, taken).then(|| taken.saturating_add(amount));
        if self.taken.fetch_update(SeqCst, SeqCst, all).is_ok() {
            return Some(Part { shares: Arc::clone(self), share: Arc::clone(share), amount });
        }
        share.taken.fetch_sub(amount, SeqCst);
        // Meanwhile another of this holder can have been refused because of it.
        self.wake();
        None
    }

    /// Whether the share allows a holder anything.
    pub(crate) fn has_room(&self, share: &Share) -> bool {
        share.taken.load(SeqCst) < self.most.saturating_sub(self.taken.load(SeqCst))
    }

    /// Takes an amount whatever the share allows: what exists already can only be counted.
    pub(crate) fn take_anyway(self: &Arc<Self>, share: &Arc<Share>, amount: usize) -> Part {
        share.taken.fetch_add(amount, SeqCst);
        self.taken.fetch_add(amount, SeqCst);
        Part { shares: Arc::clone(self), share: Arc::clone(share), amount }
    }

    /// Takes an amount; waits a moment until the share allows it. `None` when it does not.
    pub(crate) async fn take(self: &Arc<Self>, share: &Arc<Share>, amount: usize) -> Option<Part> {
        if let Some(part) = self.try_take(share, amount) {
            return Some(part);
        }
        let _waiting = Waiting::new(self);
        let taken = async {
            let _turn = share.turn.lock().await;
            loop {
                // Counted as waiting, and listening, before it looks again: what is given back from now on wakes it.
                let given_back = self.given_back.notified();
                if let Some(part) = self.try_take(share, amount) {
                    return part;
                }
                given_back.await;
            }
        };
        match timeout(PATIENCE, taken).await {
            Ok(part) => Some(part),
            // It may have waited behind one that wants more.
            Err(_) => self.try_take(share, amount),
        }
    }

    /// Lets the first of each holder try again.
    fn wake(&self) {
        if self.waiting.load(SeqCst) > 0 {
            self.given_back.notify_waiters();
        }
    }
}

impl<'s> Waiting<'s> {
    fn new(shares: &'s Shares) -> Self {
        shares.waiting.fetch_add(1, SeqCst);
        Self(shares)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, SeqCst);
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.share.taken.fetch_sub(self.amount, SeqCst);
        self.shares.taken.fetch_sub(self.amount, SeqCst);
        self.shares.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};

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
        assert_eq!((shares.taken.load(SeqCst), first.taken.load(SeqCst)), (0, 0));
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

    #[test]
    fn what_is_taken_anyway_leaves_no_room_until_it_is_given_back() {
        let (shares, first, second) = (Shares::new(100), Arc::default(), Arc::default());
        let held = shares.take_anyway(&first, 70);
        assert!(!shares.has_room(&first) && shares.has_room(&second));
        let more = shares.take_anyway(&second, 900);
        assert!(!shares.has_room(&Share::default()) && shares.try_take(&first, 0).is_none());
        drop((held, more));
        assert!(shares.has_room(&first) && shares.try_take(&second, 50).is_some());
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
        assert_eq!(shares.waiting.load(SeqCst), 0);
    }
    #[tokio::test]
    async fn one_that_holds_nothing_gets_what_another_holder_gives_back() {
        let (shares, late) = (Shares::new(64), Arc::default());
        let mut held: Vec<Part> = (0..64).filter_map(|_| shares.try_take(&Arc::default(), 1)).collect();
        assert_eq!(held.len(), 64);
        let mut waits = Box::pin(shares.take(&late, 1));
        assert!(waits.as_mut().now_or_never().is_none());
        held.pop();
        let part = waits.as_mut().now_or_never().expect("a part is free, so it does not wait");
        assert!(part.is_some());
    }

    #[tokio::test]
    async fn all_of_many_that_wait_get_their_part_as_others_give_back() {
        let shares = Shares::new(8);
        let held: Vec<Part> = (0..8).filter_map(|_| shares.try_take(&Arc::default(), 1)).collect();
        let holders: Vec<Arc<Share>> = (0..50).map(|_| Arc::default()).collect();
        // It polls only those that were woken.
        let mut waiting: FuturesUnordered<_> = (0..200).map(|n| shares.take(&holders[n % 50], 1)).collect();
        let mut served = 0;
        assert!(waiting.next().now_or_never().is_none());
        drop(held);
        for _ in 0..100 {
            while let Some(Some(part)) = waiting.next().now_or_never() {
                served += usize::from(part.is_some());
            }
            tokio::task::yield_now().await;
        }
        assert_eq!(served, 200, "the others wait although parts are free");
        assert_eq!((shares.taken.load(SeqCst), shares.waiting.load(SeqCst)), (0, 0));
    }

    #[tokio::test]
    async fn one_that_waited_behind_another_tries_once_more_at_the_end() {
        let (shares, share) = (Shares::new(4), Arc::<Share>::default());
        let held = fill(&shares, &share);
        let before = share.turn.lock().await;
        let give_back = async {
            tokio::task::yield_now().await;
            drop(held);
        };
        let (part, ()) = tokio::join!(shares.take(&share, 1), give_back);
        assert!(part.is_some());
        drop(before);
    }
}
