//! Failed authentications: counted, logged, and refused when an address has too many of them.
//!
//! The table has a fixed size, so no number of addresses makes it grow. Only failures are noted: a request with a valid key
//! or token costs nothing here and is never refused, so clients that share an address do not lock each other out.

use super::limiter::{Bucket, Limit};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use rental_core::error::KeyProblem;
use std::{
    hash::{BuildHasher, RandomState},
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// Failures of an address are counted for this long, from its first one.
const WINDOW: Duration = Duration::from_secs(60);
/// Time between two log lines about an address.
const BETWEEN_LINES: Duration = Duration::from_secs(10);
/// Log lines per second about all addresses; twice as many at once.
const LINES_PER_SECOND: u32 = 10;
/// Addresses that share a place in the table. When it is full, the one that failed longest ago is forgotten.
const WAYS: usize = 8;
/// Places in the table.
const SETS: usize = 512;

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

/// A line for the log: failures of an address since its last line.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Line {
    address: Address,
    failures: u32,
    reason: &'static str,
}

/// A client's address; of an IPv6 address only the network, because a client usually has all 2^64 addresses of it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Address(IpAddr);

impl Address {
    fn of(address: IpAddr) -> Self {
        Self(match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        })
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            IpAddr::V4(address) => write!(f, "{address}"),
            IpAddr::V6(network) => write!(f, "{network}/64"),
        }
    }
}

/// What is known of an address.
#[derive(Clone, Copy, Debug)]
struct Seen {
    address: Address,
    /// When its window began.
    began: Duration,
    /// Failures in its window that count towards the limit.
    counted: u32,
    last: Duration,
    /// When the log had a line about it.
    logged: Option<Duration>,
    /// Failures since that line.
    unlogged: u32,
    reason: &'static str,
}

/// The failures of all addresses. Times are those since the start of the server.
pub(crate) struct Failures {
    /// Failures of one address in a window that are answered with 401. Further ones get 429.
    limit: u32,
    hasher: RandomState,
    table: Mutex<Table>,
    counters: Family<Kind, Counter>,
    refused: Counter,
}

struct Table {
    seen: Vec<Option<Seen>>,
    lines: Bucket,
    /// Failures of addresses that were forgotten before the log had them.
    forgotten: u32,
}

impl Failures {
    pub(crate) fn new(limit: u32) -> Self {
        let counters = Family::<Kind, Counter>::default();
        // A counter that appears with its first failure has no rate.
        for surface in [Surface::Api, Surface::Admin, Surface::Calendar].map(Surface::as_str) {
            for why in [
                KeyProblem::Missing,
                KeyProblem::Malformed,
                KeyProblem::Invalid,
                KeyProblem::Revoked,
                KeyProblem::Expired,
            ] {
                drop(counters.get_or_create(&Kind { surface, reason: reason(why) }));
            }
        }
        let table = Table { seen: vec![None; SETS * WAYS], lines: Bucket::default(), forgotten: 0 };
        Self { limit, hasher: RandomState::new(), table: Mutex::new(table), counters, refused: Counter::default() }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "authentication_failures",
            "Failed authentications by surface and reason",
            self.counters.clone(),
        );
        registry.register(
            "authentication_refusals",
            "Failed authentications that were answered with 429, because their address had too many",
            self.refused.clone(),
        );
    }

    /// Notes a failure at `now`. Returns the seconds until the window of its address ends, if it has had too many.
    pub(crate) fn note(&self, address: IpAddr, surface: Surface, why: KeyProblem, now: Duration) -> Option<u64> {
        let reason = reason(why);
        let surface = surface.as_str();
        self.counters.get_or_create(&Kind { surface, reason }).inc();
        let (line, wait) = self.record(Address::of(address), why, now);
        if let Some(Line { address, failures, reason }) = line {
            tracing::warn!(%address, failures, reason, surface, "authentication failed");
        }
        if wait.is_some() {
            self.refused.inc();
        }
        wait
    }

    fn record(&self, address: Address, why: KeyProblem, now: Duration) -> (Option<Line>, Option<u64>) {
        let set = usize::try_from(self.hasher.hash_one(address) % SETS as u64).unwrap_or(0);
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let Table { seen, lines, forgotten } = &mut *table;
        let places = &mut seen[set * WAYS..(set + 1) * WAYS];
        let at = places.iter().position(|seen| seen.is_some_and(|seen| seen.address == address));
        // An empty place is the oldest of all.
        let oldest = (0..WAYS).min_by_key(|at| places[*at].map(|seen| seen.last)).unwrap_or(0);
        let place = &mut places[at.unwrap_or(oldest)];
        let fresh = Seen { address, began: now, counted: 0, last: now, logged: None, unlogged: 0, reason: reason(why) };
        if at.is_none() {
            *forgotten = forgotten.saturating_add(place.map_or(0, |seen| seen.unlogged));
        }
        let mut seen = place.filter(|_| at.is_some()).unwrap_or(fresh);
        if now.saturating_sub(seen.began) >= WINDOW {
            (seen.began, seen.counted) = (now, 0);
        }
        // A request without a key guesses none.
        let guesses = !matches!(why, KeyProblem::Missing | KeyProblem::Malformed);
        seen.counted = seen.counted.saturating_add(u32::from(guesses));
        (seen.last, seen.reason, seen.unlogged) = (now, reason(why), seen.unlogged.saturating_add(1));
        let line = seen.line(lines, now);
        let over = guesses && seen.counted > self.limit;
        let wait = over.then(|| (seen.began + WINDOW).saturating_sub(now).as_millis().div_ceil(1000).max(1));
        *place = Some(seen);
        (line, wait.and_then(|wait| u64::try_from(wait).ok()))
    }

    /// Logs the failures that were not logged when they happened.
    pub(crate) fn report(&self, now: Duration) {
        let (lines, forgotten) = self.unlogged(now);
        for Line { address, failures, reason } in lines {
            tracing::warn!(%address, failures, reason, "authentication failed");
        }
        if forgotten > 0 {
            tracing::warn!(failures = forgotten, "authentication failed, from more addresses than the table remembers");
        }
    }

    fn unlogged(&self, now: Duration) -> (Vec<Line>, u32) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let Table { seen, lines, forgotten } = &mut *table;
        let due = seen.iter_mut().flatten().filter(|seen| seen.unlogged > 0);
        (due.filter_map(|seen| seen.line(lines, now)).collect(), std::mem::take(forgotten))
    }
}

impl Seen {
    /// The line for the log, if it is time for one.
    fn line(&mut self, lines: &Bucket, now: Duration) -> Option<Line> {
        let due = self.logged.is_none_or(|logged| now.saturating_sub(logged) >= BETWEEN_LINES);
        let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        if !due || !Limit::new(LINES_PER_SECOND).take(lines, nanos).allowed {
            return None;
        }
        self.logged = Some(now);
        Some(Line { address: self.address, failures: std::mem::take(&mut self.unlogged), reason: self.reason })
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

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn v4(number: u32) -> Address {
        Address(IpAddr::V4(number.into()))
    }

    /// The failures in the line, and the seconds to wait.
    fn record(failures: &Failures, address: Address, now: u64) -> (Option<u32>, Option<u64>) {
        let (line, wait) = failures.record(address, KeyProblem::Invalid, secs(now));
        (line.map(|line| line.failures), wait)
    }

    #[test]
    fn an_address_is_refused_above_its_limit_until_its_window_ends_and_others_are_not() {
        let failures = Failures::new(3);
        let waits: Vec<_> = (0..5).map(|now| record(&failures, v4(1), now).1).collect();
        assert_eq!(waits, [None, None, None, Some(57), Some(56)]);
        assert_eq!(record(&failures, v4(2), 5).1, None);
        assert_eq!(record(&failures, v4(1), 59).1, Some(1));
        assert_eq!(record(&failures, v4(1), 60).1, None);
    }

    #[test]
    fn requests_without_a_key_are_never_refused_and_do_not_count() {
        let failures = Failures::new(1);
        for _ in 0..100 {
            assert_eq!(failures.record(v4(1), KeyProblem::Missing, secs(0)).1, None);
        }
        assert_eq!([0, 0].map(|now| record(&failures, v4(1), now).1), [None, Some(60)]);
    }

    #[test]
    fn an_address_has_one_line_in_ten_seconds_with_all_its_failures() {
        let failures = Failures::new(1000);
        let lines: Vec<_> = [0, 0, 0, 9, 10, 11].map(|now| record(&failures, v4(1), now).0).into();
        assert_eq!(lines, [Some(1), None, None, None, Some(4), None]);
        assert_eq!(failures.unlogged(secs(19)).0, []);
        let line = Line { address: v4(1), failures: 1, reason: "invalid" };
        assert_eq!(failures.unlogged(secs(20)).0, [line]);
        assert_eq!(failures.unlogged(secs(40)).0, []);
    }

    #[test]
    fn many_addresses_fit_into_the_same_memory_and_few_lines_and_no_failure_is_lost() {
        let failures = Failures::new(1);
        let mut lines: Vec<u32> = (0..100_000).filter_map(|number| record(&failures, v4(number), 0).0).collect();
        assert_eq!(failures.table.lock().unwrap().seen.len(), SETS * WAYS);
        let mut forgotten = 0;
        for now in 1..1000 {
            let (found, more) = failures.unlogged(secs(now));
            assert!(found.len() <= 2 * LINES_PER_SECOND as usize, "{}", found.len());
            lines.extend(found.into_iter().map(|line| line.failures));
            forgotten += more;
        }
        assert_eq!(lines.iter().sum::<u32>() + forgotten, 100_000);
        assert!(lines.len() > 4000, "{}", lines.len());
    }

    #[test]
    fn an_ipv6_client_is_its_network_and_a_mapped_address_is_not_special() {
        let of = |text: &str| Address::of(text.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
        assert_eq!(of("203.0.113.7"), "203.0.113.7");
    }
}
