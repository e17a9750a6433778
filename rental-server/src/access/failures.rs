//! Failed authentications: counted, and logged at a limited rate. Keys have 256 random bits, so nobody has to be kept from guessing.

use super::limiter::{Bucket, Limit};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use rental_core::error::KeyProblem;
use std::{
    net::IpAddr,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Log lines per second; twice as many at once.
const LINES_PER_SECOND: u32 = 1;

/// Which API a request was for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Surface {
    /// `/v1`, with API keys.
    Api,
    /// `/admin/v1`, with the admin token and tokens of operators.
    Admin,
    /// Calendar feeds of vehicles, with the token in their path.
    Calendar,
}

impl Surface {
    fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Admin => "admin",
            Self::Calendar => "calendar",
        }
    }
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Kind {
    surface: &'static str,
    reason: &'static str,
}

/// The failures of all addresses.
pub(crate) struct Failures {
    counters: Family<Kind, Counter>,
    lines: Bucket,
    /// Failures since the last log line.
    unlogged: AtomicU64,
}

impl Default for Failures {
    fn default() -> Self {
        use KeyProblem::{Expired, Invalid, Malformed, Missing, Revoked};
        let counters = Family::<Kind, Counter>::default();
        // A counter that appears with its first failure has no rate.
        for surface in [Surface::Api, Surface::Admin, Surface::Calendar].map(Surface::as_str) {
            for reason in [Missing, Malformed, Invalid, Revoked, Expired].map(reason) {
                drop(counters.get_or_create(&Kind { surface, reason }));
            }
        }
        Self { counters, lines: Bucket::default(), unlogged: AtomicU64::new(0) }
    }
}

impl Failures {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "authentication_failures",
            "Failed authentications by surface and reason",
            self.counters.clone(),
        );
    }

    /// Notes a failure of a client at `now`, the time since the start of the server.
    pub(crate) fn note(&self, address: IpAddr, surface: Surface, why: KeyProblem, now: Duration) {
        let (surface, reason) = (surface.as_str(), reason(why));
        self.counters.get_or_create(&Kind { surface, reason }).inc();
        if let Some(failures) = self.line(now) {
            tracing::warn!(%address, surface, reason, failures, "authentication failed");
        }
    }

    /// The failures since the last log line, if it is time for one.
    fn line(&self, now: Duration) -> Option<u64> {
        self.unlogged.fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let is_due = Limit::new(LINES_PER_SECOND).take(&self.lines, nanos).allowed;
        is_due.then(|| self.unlogged.swap(0, Ordering::Relaxed))
    }
}

fn reason(why: KeyProblem) -> &'static str {
    match why {
        KeyProblem::Missing => "missing",
        KeyProblem::Malformed => "malformed",
        KeyProblem::Invalid => "invalid",
        KeyProblem::Revoked => "revoked",
        KeyProblem::Expired => "expired",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_one_line_with_the_failures_since_the_last_one() {
        let failures = Failures::default();
        let lines: Vec<_> = [0, 0, 0, 0, 999, 1000, 1001].map(|now| failures.line(Duration::from_millis(now))).into();
        assert_eq!(lines, [Some(1), Some(1), None, None, None, Some(4), None]);
    }
}
