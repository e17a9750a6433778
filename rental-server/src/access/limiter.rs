//! Rate limit per key: the generic cell rate algorithm, as one number for each key. And the pace of refusals.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Clients that are turned away per second without a pause; twice as many at once.
const REFUSALS_AT_ONCE: u32 = 1000;
/// How long the others wait for their refusal, on average: from half of it to one and a half, so that those who were refused
/// together do not come back together. A client that ignores refusals sends its next request that much later.
const REFUSAL_PAUSE: Duration = Duration::from_millis(100);

/// Requests per second for each key, with a burst of twice that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    per_second: u32,
}

/// When the next request would be due if all came evenly: nanoseconds since the server started.
#[derive(Debug, Default)]
pub(crate) struct Bucket(AtomicU64);

/// How the rate limit decided about a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct RateLimitStatus {
    pub(crate) allowed: bool,
    /// Requests that would still be allowed at once.
    pub(crate) remaining: u64,
    /// Whole seconds, rounded up: after them a refused request is allowed.
    pub(crate) wait_secs: u64,
}

/// Keeps a flood of refused requests from taking the processors from others.
#[derive(Debug, Default)]
pub(crate) struct Pace(Bucket);

impl Pace {
    /// Waits when many clients were turned away lately. `now`: nanoseconds since the server started.
    pub(crate) async fn wait(&self, now: u64) {
        if !Limit::new(REFUSALS_AT_ONCE).take(&self.0, now).allowed {
            // The low digits of the time are as good as random.
            let pause = REFUSAL_PAUSE.as_nanos() as u64;
            tokio::time::sleep(Duration::from_nanos(pause / 2 + now % pause)).await;
        }
    }
}

const SECOND: u64 = 1_000_000_000;

impl Limit {
    pub(crate) fn new(per_second: u32) -> Self {
        Self { per_second: per_second.max(1) }
    }

    /// Requests per second.
    pub(crate) fn per_second(self) -> u32 {
        self.per_second
    }

    /// Most requests at once.
    pub(crate) fn burst(self) -> u64 {
        u64::from(self.per_second) * 2
    }

    /// Takes one request from `bucket` at `now` (nanoseconds since the server started), if there is one.
    pub(crate) fn take(self, bucket: &Bucket, now: u64) -> RateLimitStatus {
        let interval = SECOND / u64::from(self.per_second);
        let tolerance = interval * self.burst();
        let mut due = bucket.0.load(Ordering::Relaxed);
        loop {
            let next = due.max(now) + interval;
            let ahead = next - now;
            if ahead > tolerance {
                return RateLimitStatus {
                    allowed: false,
                    remaining: 0,
                    wait_secs: (ahead - tolerance).div_ceil(SECOND).max(1),
                };
            }
            match bucket.0.compare_exchange_weak(due, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    return RateLimitStatus {
                        allowed: true,
                        remaining: (tolerance - ahead) / interval,
                        wait_secs: ahead.div_ceil(SECOND),
                    };
                }
                Err(other) => due = other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use proptest::prelude::*;

    #[test]
    fn a_burst_of_twice_the_rate_and_then_one_each_interval() {
        let (limit, bucket) = (Limit::new(10), Bucket::default());
        let at = |millis: u64| limit.take(&bucket, millis * 1_000_000);
        assert!((0..20).all(|_| at(0).allowed));
        assert_eq!(at(0), RateLimitStatus { allowed: false, remaining: 0, wait_secs: 1 });
        assert!(!at(99).allowed);
        assert!(at(100).allowed);
        assert!(!at(100).allowed);
    }

    #[tokio::test]
    async fn refusals_are_sent_at_once_until_there_are_many() {
        let pace = Pace::default();
        let is_at_once = |now| pace.wait(now).now_or_never().is_some();
        assert!((0..2 * REFUSALS_AT_ONCE).all(|_| is_at_once(0)));
        assert!(!is_at_once(0));
        assert!(is_at_once(SECOND));
    }

    proptest! {
        #[test]
        fn never_more_than_the_burst_and_the_rate(rate in 1u32..1000, gaps in proptest::collection::vec(0u64..50_000_000, 1..200)) {
            let (limit, bucket) = (Limit::new(rate), Bucket::default());
            let (mut now, mut allowed) = (0, 0);
            for gap in gaps {
                now += gap;
                allowed += u64::from(limit.take(&bucket, now).allowed);
                prop_assert!(allowed <= limit.burst() + now * u64::from(rate) / SECOND + 1);
            }
        }

        #[test]
        fn who_waits_as_told_is_let_in(rate in 1u32..1000, tries in 1usize..3000) {
            let (limit, bucket) = (Limit::new(rate), Bucket::default());
            let last = (0..tries).map(|_| limit.take(&bucket, 0)).last().unwrap();
            prop_assert!(limit.take(&bucket, last.wait_secs * SECOND).allowed);
        }
    }
}
