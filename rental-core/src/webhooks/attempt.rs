//! Decides what follows an attempt. Pure: the state before, the outcome and the time are arguments.

use crate::{
    resources::{
        Object,
        delivery::{Attempt, Delivery, DeliveryStatus},
    },
    value::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::time::UNIX_EPOCH;

/// Number of consecutive failures, across all events, that disable an endpoint (spec, Retries 3).
pub const DISABLE_AFTER: u32 = 20;
/// Most of them that can be attempts that began before the streak: a receiver that goes away under full load still gets its
/// spaced probes.
const MOST_OF_BURST: u32 = DISABLE_AFTER / 2;
/// Milliseconds between the first two probes of a failing endpoint. They double up to the schedule's first delay.
const FIRST_PROBE_MILLIS: i64 = 1000;
/// Most seconds by which `Retry-After` can delay a retry.
const MOST_RETRY_AFTER_SECS: u64 = 24 * 3600;

/// The retry schedule: the delay after each failed attempt, in milliseconds (spec, Retries 2).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Schedule(Vec<i64>);

impl Default for Schedule {
    /// 30 s, 2 m, 10 m, 30 m, 2 h.
    fn default() -> Self {
        Self(vec![30_000, 120_000, 600_000, 1_800_000, 7_200_000])
    }
}

impl Schedule {
    /// A schedule of 1 to 20 delays in milliseconds, each at least 1; `None` for any other list.
    #[must_use]
    pub fn new(delays: Vec<i64>) -> Option<Self> {
        let fine = (1..=20).contains(&delays.len()) && delays.iter().all(|delay| *delay >= 1);
        fine.then_some(Self(delays))
    }

    /// Milliseconds until the next probe of an endpoint, after so many consecutive failures.
    #[must_use]
    pub fn probe_spacing(&self, failures: u32) -> i64 {
        if failures == 0 {
            return 0;
        }
        let doubled = FIRST_PROBE_MILLIS << (failures - 1).min(30);
        doubled.min(self.0[0])
    }
}

/// The outcome of an attempt.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ending {
    /// The endpoint sent a complete response in time.
    Answered {
        /// HTTP status of the response.
        status: u16,
        /// Seconds that the header `Retry-After` asks to wait, see [`retry_after`].
        retry_after: Option<u64>,
    },
    /// There was no valid response.
    Failed(Failure),
}

/// Why there was no valid response.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The attempt timed out.
    TimedOut,
    /// DNS could not resolve the host name.
    NameUnknown,
    /// The address is not public, so deliveries to it are forbidden.
    AddressForbidden,
    /// The URL is not `https`, and the operator allows no other.
    HttpsRequired,
    /// The connection could not be established.
    CannotConnect,
    /// The receiver's certificate has expired or is not valid yet, by the clock of this server.
    CertificateNotValidNow,
    /// The receiver's certificate is of another name, or nobody whom this server trusts has signed it.
    CertificateNotTrusted,
    /// The connection was closed early, or the response was no valid HTTP.
    BadAnswer,
    /// This server has no file descriptor left.
    NoFileDescriptors,
    /// This server has no memory left for a socket.
    NoMemory,
    /// This server has no local port or address left.
    NoLocalPort,
    /// There is no route to the address, or the network is down.
    NoRoute,
    /// DNS gave no answer: neither an address nor that the name does not exist.
    ResolverFailed,
}

impl Failure {
    /// Those of attempts that reached no address. While many hosts fail so, the cause is this server or its network.
    pub const UNREACHED: [Self; 6] = [
        Self::NameUnknown,
        Self::NoFileDescriptors,
        Self::NoMemory,
        Self::NoLocalPort,
        Self::NoRoute,
        Self::ResolverFailed,
    ];

    /// The name in the delivery log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TimedOut => "timed_out",
            Self::NameUnknown => "name_unknown",
            Self::AddressForbidden => "address_forbidden",
            Self::HttpsRequired => "https_required",
            Self::CannotConnect => "cannot_connect",
            Self::CertificateNotValidNow => "certificate_not_valid_now",
            Self::CertificateNotTrusted => "certificate_not_trusted",
            Self::BadAnswer => "bad_answer",
            Self::NoFileDescriptors => "no_file_descriptors",
            Self::NoMemory => "no_memory",
            Self::NoLocalPort => "no_local_port",
            Self::NoRoute => "no_route",
            Self::ResolverFailed => "resolver_failed",
        }
    }
}

impl Ending {
    /// Whether the response has a 2xx status. A redirect is a failure and never followed.
    #[must_use]
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Answered { status: 200..=299, .. })
    }

    /// The failure, if the attempt reached no address.
    #[must_use]
    pub fn unreached(&self) -> Option<Failure> {
        match self {
            Self::Failed(failure) if Failure::UNREACHED.contains(failure) => Some(*failure),
            Self::Failed(_) | Self::Answered { .. } => None,
        }
    }
}

/// What follows an attempt for the delivery.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RetryDecision {
    /// Done.
    Delivered,
    /// The next attempt is due at this time.
    RetryAt(Timestamp),
    /// All attempts failed. An operator can resend the delivery.
    GivenUp,
}

/// What follows an attempt for the delivery and its endpoint.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AfterAttempt {
    /// What follows for the delivery.
    pub next: RetryDecision,
    /// The endpoint's number of consecutive failures after this attempt.
    pub failures: u32,
    /// Whether this failure disables the endpoint.
    pub disables: bool,
}

/// The failures in a row of an endpoint, around one attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Streak {
    /// When the attempt ended, without it.
    pub failures: u32,
    /// When it began.
    pub at_begin: u32,
    /// Whether a failure counts for nothing, because this server's own network fails.
    pub is_outage: bool,
}

impl Streak {
    /// The failures with this one, and whether it counts. Of the attempts that began before the streak, only the first
    /// `MOST_OF_BURST` failures count.
    fn fail(self) -> (u32, bool) {
        let began_before = self.at_begin == 0 || self.at_begin > self.failures;
        let counts = !self.is_outage && (!began_before || self.failures < MOST_OF_BURST);
        (self.failures.saturating_add(u32::from(counts)), counts)
    }
}

/// Decides what follows an attempt. `attempts` is the number before it.
#[must_use]
pub fn after_attempt(
    attempts: u32,
    streak: Streak,
    ending: &Ending,
    now: Timestamp,
    schedule: &Schedule,
) -> AfterAttempt {
    if ending.is_success() {
        return AfterAttempt { next: RetryDecision::Delivered, failures: 0, disables: false };
    }
    let (failures, counts) = streak.fail();
    let delay = usize::try_from(attempts).ok().and_then(|made| schedule.0.get(made)).copied();
    let next = delay.map_or(RetryDecision::GivenUp, |delay| {
        RetryDecision::RetryAt(now.plus_millis(delay.max(asked_delay(ending))))
    });
    AfterAttempt { next, failures, disables: counts && failures == DISABLE_AFTER }
}

/// Most attempts in the log of a delivery.
const LOG: usize = 10;

impl Delivery {
    /// Adds an attempt to the log and sets what follows.
    pub fn record(&mut self, ending: &Ending, after: AfterAttempt, attempt: Attempt, now: Timestamp) {
        self.attempts = self.attempts.saturating_add(1);
        (self.last_response_status, self.last_error) = match ending {
            Ending::Answered { status, .. } => (Some(*status), None),
            Ending::Failed(failure) => (None, Some(failure.as_str().to_owned())),
        };
        let (status, next) = match after.next {
            RetryDecision::Delivered => (DeliveryStatus::Delivered, None),
            RetryDecision::RetryAt(time) => (DeliveryStatus::Pending, Some(time)),
            RetryDecision::GivenUp => (DeliveryStatus::Failed, None),
        };
        self.status = status;
        self.next_attempt_at = next;
        if self.log.len() >= LOG {
            self.log.remove(0);
        }
        self.log.push(attempt);
        self.touch(now);
    }
}

/// Seconds from `now` that a header `Retry-After` asks to wait: a number or a date of HTTP (RFC 9110, 10.2.3). `None` if it is neither.
#[must_use]
pub fn retry_after(header: &str, now: Timestamp) -> Option<u64> {
    let header = header.trim();
    header.parse().ok().or_else(|| {
        let date = httpdate::parse_http_date(header).ok()?.duration_since(UNIX_EPOCH).ok()?.as_secs();
        Some((date * 1000).saturating_sub(now.millis()).div_ceil(1000))
    })
}

/// The delay that `Retry-After` of a 429 or 503 asks for, in milliseconds. It can only make the scheduled delay longer.
fn asked_delay(ending: &Ending) -> i64 {
    match ending {
        Ending::Answered { status: 429 | 503, retry_after: Some(seconds) } => {
            i64::try_from(seconds.min(&MOST_RETRY_AFTER_SECS) * 1000).unwrap_or(0)
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// One attempt at a time: each begins after the failure before it.
    fn probing(failures: u32) -> Streak {
        Streak { failures, at_begin: failures, is_outage: false }
    }

    fn answered(status: u16) -> Ending {
        Ending::Answered { status, retry_after: None }
    }

    #[test]
    fn retries_follow_30_s_2_m_10_m_30_m_2_h_and_then_no_more() {
        for (attempts, delay) in [30, 120, 600, 1800, 7200].into_iter().enumerate() {
            let after = after_attempt(attempts as u32, probing(0), &answered(500), at(1000), &Schedule::default());
            assert_eq!(after.next, RetryDecision::RetryAt(at(1000 + delay * 1000)));
        }
        assert_eq!(
            after_attempt(5, probing(0), &Ending::Failed(Failure::TimedOut), at(0), &Schedule::default()).next,
            RetryDecision::GivenUp
        );
    }

    #[test]
    fn only_a_2xx_is_a_success() {
        for status in [200, 201, 204, 299] {
            assert_eq!(
                after_attempt(0, probing(7), &answered(status), at(0), &Schedule::default()),
                AfterAttempt { next: RetryDecision::Delivered, failures: 0, disables: false }
            );
        }
        for status in [100, 199, 300, 301, 302, 307, 400, 404, 410, 500, 503, 599] {
            assert!(!answered(status).is_success(), "{status}");
        }
    }

    #[test]
    fn twentieth_failure_disables_the_endpoint_exactly_once() {
        let disabling: Vec<u32> = (0..60)
            .filter(|failures| {
                after_attempt(0, probing(*failures), &answered(500), at(0), &Schedule::default()).disables
            })
            .collect();
        assert_eq!(disabling, [19]);
    }

    #[test]
    fn attempts_that_began_before_the_streak_count_at_most_10_of_the_20_failures() {
        let fail = |streak| after_attempt(0, streak, &answered(500), at(0), &Schedule::default());
        let (mut failures, mut disabled) = (0, false);
        for burst in 1..=100 {
            let after = fail(Streak { failures, at_begin: 0, is_outage: false });
            (failures, disabled) = (after.failures, disabled || after.disables);
            assert_eq!(
                (failures, after.next),
                (burst.min(10), RetryDecision::RetryAt(at(30_000))),
                "each still has its retries"
            );
        }
        assert!(!disabled);
        let probes = (0..10).map(|_| {
            let after = fail(probing(failures));
            failures = after.failures;
            after.disables
        });
        assert_eq!(probes.filter(|disables| *disables).count(), 1);
        assert_eq!(failures, 20);
        // It began at the seventh failure of an earlier streak, which a success ended.
        let late = |failures, at_begin| fail(Streak { failures, at_begin, is_outage: false }).failures;
        assert_eq!((late(3, 7), late(10, 15)), (4, 10));
    }

    #[test]
    fn a_failure_in_an_outage_uses_a_retry_and_counts_against_no_endpoint() {
        let ending = Ending::Failed(Failure::NoRoute);
        let fail = |attempts, failures| {
            let streak = Streak { failures, at_begin: failures, is_outage: true };
            after_attempt(attempts, streak, &ending, at(0), &Schedule::default())
        };
        let next = RetryDecision::RetryAt(at(120_000));
        assert_eq!(fail(1, 19), AfterAttempt { next, failures: 19, disables: false });
        assert_eq!(fail(5, 0), AfterAttempt { next: RetryDecision::GivenUp, failures: 0, disables: false });
    }

    #[test]
    fn an_attempt_that_reached_an_address_is_not_unreached() {
        use Failure::*;
        for failure in [TimedOut, CannotConnect, BadAnswer, CertificateNotTrusted, AddressForbidden, HttpsRequired] {
            assert_eq!(Ending::Failed(failure).unreached(), None, "{failure:?}");
        }
        for failure in Failure::UNREACHED {
            assert_eq!(Ending::Failed(failure).unreached(), Some(failure));
        }
        assert_eq!(answered(503).unreached(), None);
    }

    #[test]
    fn retry_after_is_a_number_of_seconds_or_a_date() {
        let now = Timestamp::parse("1994-11-06T08:49:00.500Z").unwrap();
        for (header, seconds) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(97)),
            ("Sunday, 06-Nov-94 08:50:37 GMT", Some(97)),
            ("Sun Nov  6 08:50:37 1994", Some(97)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("Sat, 06 Nov 2094 08:00:00 GMT", Some(3_155_757_060)),
            ("-5", None),
            ("soon", None),
            ("1994-11-06T08:50:37Z", None),
        ] {
            assert_eq!(retry_after(header, now), seconds, "{header}");
        }
    }

    #[test]
    fn retry_after_may_delay_but_not_hasten() {
        let asked = |status, seconds| Ending::Answered { status, retry_after: Some(seconds) };
        let next = |ending: &Ending| after_attempt(0, probing(0), ending, at(0), &Schedule::default()).next;
        assert_eq!(next(&asked(429, 60)), RetryDecision::RetryAt(at(60_000)));
        assert_eq!(next(&asked(503, 1)), RetryDecision::RetryAt(at(30_000)));
        assert_eq!(next(&asked(500, 60)), RetryDecision::RetryAt(at(30_000)));
        assert_eq!(next(&asked(503, u64::MAX)), RetryDecision::RetryAt(at(24 * 3_600_000)));
    }

    #[test]
    fn probes_are_spaced_from_a_second_doubling_to_the_first_delay() {
        let spacing: Vec<i64> = (0..9).map(|failures| Schedule::default().probe_spacing(failures)).collect();
        assert_eq!(spacing, [0, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
        assert_eq!(Schedule::new(vec![100]).unwrap().probe_spacing(40), 100);
    }

    #[test]
    fn a_schedule_has_1_to_20_delays() {
        assert!(Schedule::new(Vec::new()).is_none());
        assert!(Schedule::new(vec![0]).is_none());
        assert!(Schedule::new(vec![1; 21]).is_none());
    }

    proptest! {
        /// Random histories of one delivery to one endpoint, in virtual time.
        #[test]
        fn a_history_ends_delivered_or_after_six_attempts(endings in proptest::collection::vec((0u16..600, prop::option::of(0u64..10_000)), 1..40)) {
            let schedule = Schedule::default();
            let (mut attempts, mut failures, mut now) = (0, 0, at(0));
            for (status, retry_after) in endings {
                let ending = if status < 100 { Ending::Failed(Failure::CannotConnect) } else { Ending::Answered { status, retry_after } };
                let after = after_attempt(attempts, probing(failures), &ending, now, &schedule);
                attempts += 1;
                prop_assert_eq!(after.failures, if ending.is_success() { 0 } else { failures + 1 });
                failures = after.failures;
                match after.next {
                    RetryDecision::Delivered => { prop_assert!(ending.is_success()); break; }
                    RetryDecision::GivenUp => { prop_assert_eq!(attempts, 6); break; }
                    RetryDecision::RetryAt(time) => {
                        prop_assert!(time >= now.plus_millis(30_000));
                        now = time;
                    }
                }
            }
            prop_assert!(attempts <= 6);
        }
    }
}
