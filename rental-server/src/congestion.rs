//! Shares the processors among organizations while requests have to wait for them.
//!
//! A canary, a task that sleeps for [`PERIOD`], tells by how late it runs how long a request waits for a processor. While it is late
//! and more than one organization sends requests, each gets at most so much processor time in a second as the present rate allows,
//! and is charged with what its requests took. The rate falls while the canary is late, and rises while it is not. An organization
//! that is alone is never limited, and one that takes less than the rate never waits.

use prometheus_client::metrics::counter::Counter;
use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::atomic::{
        AtomicU64, AtomicUsize,
        Ordering::{Relaxed, SeqCst},
    },
    time::{Duration, Instant},
};

/// How long the canary sleeps.
const PERIOD: Duration = Duration::from_millis(20);
/// A canary that is later than this finds that requests wait. The clock of the runtime counts in milliseconds.
const LATE: Duration = Duration::from_millis(3);
/// How long it sleeps while nobody could be limited: a server that has nothing to do sleeps.
const REST: Duration = Duration::from_millis(250);
/// How long an organization counts as active after a request, at least.
const ACTIVE: Duration = Duration::from_secs(1);
/// What a request takes beside its handler: the connection, its head, the key. A GET takes about as much in all.
const BESIDE: u64 = 15_000;
/// Processor time that an organization may take at once.
const BURST: u64 = 2_000_000;
/// The rate of an organization that is not limited.
const UNLIMITED: u64 = u64::MAX;
const SECOND: u64 = 1_000_000_000;

/// How much processor time each organization gets.
#[derive(Debug)]
pub(crate) struct Congestion {
    begun: Instant,
    /// Nanoseconds of processor time in one second for each organization, or [`UNLIMITED`].
    rate: AtomicU64,
    /// The most that the rate can be: the time of all processors.
    all: u64,
    /// Counts up while the server runs, once for each time in which organizations are counted.
    epoch: AtomicU64,
    /// The organizations that were active in this epoch and in the one before.
    active: [AtomicUsize; 2],
    waits: Counter,
}

/// What an organization has taken.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// When what it took is over, if it takes no more: nanoseconds since the start.
    due: AtomicU64,
    /// The last epoch in which it was active.
    epoch: AtomicU64,
}

impl Congestion {
    /// `waits` counts the requests that had to wait.
    pub(crate) fn new(waits: Counter) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        Self {
            begun: Instant::now(),
            rate: AtomicU64::new(UNLIMITED),
            all: processors * SECOND,
            epoch: AtomicU64::new(1),
            active: Default::default(),
            waits,
        }
    }

    /// Waits until the organization may take processor time, then counts what `work` takes.
    pub(crate) async fn charged<F: Future + Unpin>(&self, account: &Account, mut work: F) -> F::Output {
        self.note(account);
        if self.rate.load(Relaxed) == UNLIMITED {
            return work.await;
        }
        let mut waited = false;
        while let Some(wait) = self.wait(account, self.now()) {
            if !std::mem::replace(&mut waited, true) {
                self.waits.inc();
            }
            // Boxed: it is rare, and would make the future of a read larger.
            Box::pin(tokio::time::sleep(wait)).await;
        }
        self.charge(account, BESIDE, self.now());
        poll_fn(|context| {
            let begun = self.now();
            let polled = Pin::new(&mut work).poll(context);
            let now = self.now();
            self.charge(account, now - begun, now);
            polled
        })
        .await
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Counts the organization as active.
    fn note(&self, account: &Account) {
        let epoch = self.epoch.load(Relaxed);
        // Read first: an unconditional store would bounce the cache line between cores.
        if account.epoch.load(Relaxed) != epoch && account.epoch.swap(epoch, Relaxed) != epoch {
            self.active[0].fetch_add(1, Relaxed);
        }
    }

    /// How long the organization must wait for more; `None` when it may go on.
    fn wait(&self, account: &Account, now: u64) -> Option<Duration> {
        let ahead = account.due.load(Relaxed).saturating_sub(now.saturating_add(BURST));
        (ahead > 0 && self.rate.load(Relaxed) != UNLIMITED).then(|| Duration::from_nanos(ahead.min(SECOND)))
    }

    /// Takes processor time from what the organization has.
    fn charge(&self, account: &Account, taken: u64, now: u64) {
        let rate = self.rate.load(Relaxed);
        if rate == UNLIMITED {
            return;
        }
        let cost = taken.saturating_mul(SECOND) / rate.max(1);
        // Two that are charged at once may count as one: nothing depends on the exact time.
        let due = account.due.load(Relaxed).max(now).saturating_add(cost);
        account.due.store(due, Relaxed);
    }

    /// Begins the next epoch: an organization that sends no request in it is not active after it.
    fn next_epoch(&self) {
        self.active[1].store(self.active[0].swap(0, SeqCst), SeqCst);
        self.epoch.fetch_add(1, SeqCst);
    }

    /// How many organizations are active.
    fn active(&self) -> u64 {
        self.active.iter().map(|count| count.load(Relaxed)).max().unwrap_or(0) as u64
    }

    /// Sets the rate by how late the canary was.
    fn adapt(&self, late: Duration) {
        let active = self.active();
        let rate = self.rate.load(Relaxed);
        let next = match (active, late > LATE, rate) {
            (0 | 1, _, _) | (_, false, UNLIMITED) => UNLIMITED,
            (_, true, UNLIMITED) => self.all / 2,
            // Never less than a quarter of an equal part.
            (_, true, rate) => (rate / 4 * 3).max(self.all / active / 4),
            (_, false, rate) if rate >= self.all => UNLIMITED,
            (_, false, rate) => rate + rate / 16,
        };
        self.rate.store(next, Relaxed);
    }

    /// The canary. Runs until the server ends.
    pub(crate) async fn watch(&self) {
        let mut counted = Instant::now();
        loop {
            let (begun, period) = (Instant::now(), if self.active() > 1 { PERIOD } else { REST });
            tokio::time::sleep(period).await;
            if counted.elapsed() >= ACTIVE {
                self.next_epoch();
                counted = Instant::now();
            }
            self.adapt(begun.elapsed().saturating_sub(period));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;

    /// A server with two processors on which these organizations are active.
    fn with(accounts: &[&Account]) -> Congestion {
        let congestion = Congestion { all: 2 * SECOND, ..Congestion::new(Counter::default()) };
        accounts.iter().for_each(|account| congestion.note(account));
        congestion
    }

    fn late(congestion: &Congestion, times: usize) {
        (0..times).for_each(|_| congestion.adapt(Duration::from_millis(10)));
    }

    #[test]
    fn one_that_is_alone_is_never_limited() {
        let own = Account::default();
        let congestion = with(&[&own]);
        late(&congestion, 100);
        congestion.charge(&own, 100 * MILLI, 0);
        assert_eq!(congestion.wait(&own, 0), None);
    }

    #[test]
    fn one_that_takes_more_than_the_rate_waits_and_one_that_takes_less_does_not() {
        let (large, small) = (Account::default(), Account::default());
        let congestion = with(&[&large, &small]);
        late(&congestion, 1);
        for milli in 0..100 {
            congestion.charge(&large, 2 * MILLI, milli * MILLI);
            congestion.charge(&small, MILLI / 100, milli * MILLI);
            assert_eq!(congestion.wait(&small, milli * MILLI), None);
        }
        // Twice of what the rate gives: 200 ms of work in 100 ms.
        let wait = congestion.wait(&large, 100 * MILLI).expect("it waits");
        assert!((90..=100).contains(&wait.as_millis()), "{wait:?}");
        assert_eq!(congestion.wait(&large, 300 * MILLI), None);
    }

    #[test]
    fn the_rate_rises_until_nobody_is_limited_once_nothing_waits() {
        let (one, other) = (Account::default(), Account::default());
        let congestion = with(&[&one, &other]);
        late(&congestion, 100);
        let least = congestion.rate.load(Relaxed);
        assert_eq!(least, 2 * SECOND / 2 / 4, "a quarter of an equal part");
        (0..100).for_each(|_| congestion.adapt(Duration::ZERO));
        assert_eq!(congestion.rate.load(Relaxed), UNLIMITED);
    }

    #[test]
    fn an_organization_that_sends_nothing_more_is_not_counted() {
        let (one, other) = (Account::default(), Account::default());
        let congestion = with(&[&one, &other]);
        late(&congestion, 1);
        assert_ne!(congestion.rate.load(Relaxed), UNLIMITED);
        for _ in 0..2 {
            congestion.next_epoch();
            late(&congestion, 1);
            congestion.note(&one);
        }
        late(&congestion, 1);
        assert_eq!(congestion.rate.load(Relaxed), UNLIMITED);
    }

    #[tokio::test]
    async fn work_is_done_and_charged_while_organizations_are_limited() {
        let (one, other) = (Account::default(), Account::default());
        let congestion = with(&[&one, &other]);
        late(&congestion, 1);
        assert_eq!(congestion.charged(&one, std::future::ready(7)).await, 7);
        assert!(one.due.load(Relaxed) > 0);
    }
}
