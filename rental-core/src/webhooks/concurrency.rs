//! How many attempts may be in flight for one endpoint: more while its receiver keeps up, fewer after a failure.
//!
//! The limit begins at [`FIRST`]. Each quick success at the limit raises it by 1, which doubles it with every round of
//! responses, up to [`MOST`]. A failure halves it, to [`FIRST`] or less. From half of what failed on, it rises by 1 with each
//! round only. While an endpoint has failures in a row, its lane sends one probe at a time, whatever the limit is.
//!
//! A slow success does not raise the limit: a receiver that answers one request after the other would only get slower.

use std::time::Duration;

/// The limit of a new endpoint, and the highest after a failure.
pub const FIRST: u32 = 10;
/// The highest limit. A receiver that responds after 100 ms gets more than 500 deliveries per second with it.
pub const MOST: u32 = 100;
/// A success is quick if it took at most this part of the time-out.
const QUICK: u32 = 10;

/// The limit of one endpoint, and what it is derived from.
#[derive(Clone, Debug)]
pub struct Concurrency {
    limit: u32,
    /// Below it the limit rises with each success, from it on with each round.
    threshold: u32,
    /// Successes at the present limit.
    successes: u32,
    /// The number of the last attempt that began.
    begun: u64,
    /// The number of the last attempt that began before the limit was halved. All up to it count as one failure.
    halved_at: u64,
}

impl Default for Concurrency {
    fn default() -> Self {
        Self { limit: FIRST, threshold: MOST, successes: 0, begun: 0, halved_at: 0 }
    }
}

impl Concurrency {
    /// Most attempts in flight now.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Numbers a new attempt.
    pub fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }

    /// The number of the last attempt that began.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.begun
    }

    /// An attempt succeeded. `in_flight` counts it. Fewer attempts in flight than the limit say nothing about the receiver.
    pub fn succeeded(&mut self, took: Duration, time_out: Duration, in_flight: u32) {
        if took > time_out / QUICK || in_flight < self.limit || self.limit >= MOST {
            return;
        }
        self.successes += 1;
        if self.limit < self.threshold || self.successes >= self.limit {
            self.limit += 1;
            self.successes = 0;
        }
    }

    /// The attempt with this number failed.
    pub fn failed(&mut self, number: u64) {
        if number > self.halved_at {
            self.halved_at = self.begun;
            self.threshold = (self.limit / 2).max(1);
            (self.limit, self.successes) = (self.threshold.min(FIRST), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME_OUT: Duration = Duration::from_secs(10);

    /// Rounds of as many attempts as allowed, all successful; gives the limits.
    fn rounds(concurrency: &mut Concurrency, count: usize, took: Duration) -> Vec<u32> {
        let round = |_| {
            let limit = concurrency.limit();
            for _ in 0..limit {
                concurrency.begin();
                concurrency.succeeded(took, TIME_OUT, concurrency.limit());
            }
            concurrency.limit()
        };
        (0..count).map(round).collect()
    }

    #[test]
    fn quick_successes_double_the_limit_up_to_100() {
        let mut one = Concurrency::default();
        assert_eq!(rounds(&mut one, 5, Duration::from_millis(100)), [20, 40, 80, 100, 100]);
    }

    #[test]
    fn slow_or_single_successes_do_not_raise_it() {
        let mut one = Concurrency::default();
        assert_eq!(rounds(&mut one, 3, Duration::from_millis(1001)), [10, 10, 10]);
        (0..100).for_each(|_| one.succeeded(Duration::ZERO, TIME_OUT, 9));
        assert_eq!(one.limit(), 10);
    }

    #[test]
    fn the_failures_of_one_burst_halve_it_once_and_it_rises_slowly_from_there() {
        let mut one = Concurrency::default();
        rounds(&mut one, 4, Duration::ZERO);
        let burst: Vec<u64> = (0..100).map(|_| one.begin()).collect();
        burst.iter().for_each(|number| one.failed(*number));
        assert_eq!(one.limit(), 10);
        assert_eq!(rounds(&mut one, 5, Duration::ZERO), [20, 40, 50, 51, 52]);
        let next = one.begin();
        one.failed(next);
        assert_eq!((one.limit(), one.threshold), (10, 26));
    }

    #[test]
    fn it_falls_to_1_for_a_receiver_that_takes_one_at_a_time() {
        let mut one = Concurrency::default();
        for _ in 0..10 {
            let next = one.begin();
            one.failed(next);
        }
        assert_eq!(one.limit(), 1);
        assert_eq!(rounds(&mut one, 2, Duration::ZERO), [2, 3]);
    }
}
