//! How long a transfer may wait for its client.

use std::time::Duration;

/// How long a client may read nothing of a long response.
const STALL: Duration = Duration::from_secs(60);
/// Bytes per second of a long response that a client takes at least.
const LEAST_READ: u32 = 64 << 10;
/// Bytes per second of an uploaded file that a client sends at least.
const LEAST_SENT: u32 = 16 << 10;

/// Time that the server may still wait for the client of one transfer. Waiting uses it up, and what the client sends or takes
/// gives it back, up to the whole of it. So a transfer below the least rate ends, however steadily it goes on.
pub(crate) struct Patience {
    left: Duration,
    whole: Duration,
    /// Bytes per second.
    least_rate: u32,
}

impl Patience {
    /// With a client that reads a long response.
    pub(crate) fn with_reader() -> Self {
        Self::new(STALL, LEAST_READ)
    }

    /// With a client that uploads a file, and may send nothing for `stall`.
    pub(crate) fn with_sender(stall: Duration) -> Self {
        Self::new(stall, LEAST_SENT)
    }

    fn new(whole: Duration, least_rate: u32) -> Self {
        Self { left: whole, whole, least_rate }
    }

    pub(crate) fn left(&self) -> Duration {
        self.left
    }

    /// The client has sent or taken `bytes`, after the server waited for them.
    pub(crate) fn moved(&mut self, bytes: usize, waited: Duration) {
        let earned = Duration::from_secs_f64(bytes as f64 / f64::from(self.least_rate));
        self.left = self.left.saturating_sub(waited).saturating_add(earned).min(self.whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_below_the_least_rate_ends_and_one_above_it_goes_on() {
        // The second in which the client is waited for longer than there is patience.
        let end = |rate: usize| {
            let mut patience = Patience::new(Duration::from_secs(60), 1000);
            (0..100_000).find(|_| {
                let ends = patience.left() < Duration::from_secs(1);
                patience.moved(rate, Duration::from_secs(1));
                ends
            })
        };
        assert_eq!([end(0), end(500), end(1000)], [Some(60), Some(119), None]);
    }
}
