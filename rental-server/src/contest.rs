//! Tells whether others were active lately.
//!
//! Each change from one that acts to another one is counted. One that sees more changes than before is not alone, so no
//! list of those that are active is needed.

use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    time::{Duration, Instant},
};

/// How long one counts as active after it acted.
const ACTIVE: Duration = Duration::from_secs(1);

/// All that compete.
#[derive(Debug)]
pub(crate) struct Contest {
    begun: Instant,
    /// The address of the one that acted last, and how often another one followed.
    last: AtomicUsize,
    changes: AtomicU64,
}

/// One of them.
#[derive(Debug, Default)]
pub(crate) struct Contender {
    /// The number of changes when it last looked, and when it last saw that they were more: milliseconds since the start.
    changes: AtomicU64,
    contested: AtomicU64,
}

impl Contest {
    /// `begun`: the time from which it counts. For [`ACTIVE`] from then on, all are contested.
    pub(crate) fn new(begun: Instant) -> Self {
        Self { begun, last: AtomicUsize::new(0), changes: AtomicU64::new(0) }
    }

    /// Notes that this one acts.
    pub(crate) fn acts(&self, contender: &Contender) {
        let address = std::ptr::from_ref(contender).addr();
        if self.last.load(Relaxed) != address {
            self.last.store(address, Relaxed);
            self.changes.fetch_add(1, Relaxed);
        }
    }

    /// Whether another one acted lately.
    pub(crate) fn is_contested(&self, contender: &Contender) -> bool {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let changes = self.changes.load(Relaxed);
        if contender.changes.swap(changes, Relaxed) != changes {
            contender.contested.store(now, Relaxed);
            return true;
        }
        Duration::from_millis(now.saturating_sub(contender.contested.load(Relaxed))) < ACTIVE
    }
}

#[cfg(test)]
impl Contender {
    /// As if its last contest had been long ago.
    pub(crate) fn forget_contests(&self) {
        self.contested.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_acts_is_contested_while_another_one_acts_too() {
        let contest = Contest::new(Instant::now() - 2 * ACTIVE);
        let [one, other] = [Contender::default(), Contender::default()];
        // Its own first act is a change.
        contest.acts(&one);
        assert!(contest.is_contested(&one));
        one.forget_contests();
        contest.acts(&one);
        assert!(!contest.is_contested(&one), "nobody else acted");
        contest.acts(&other);
        assert!(contest.is_contested(&one) && contest.is_contested(&other));
        contest.acts(&one);
        assert!(contest.is_contested(&one), "the other one acted a moment ago");
    }
}
