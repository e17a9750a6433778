//! Decides whether a request is retried. No I/O: [`crate::client::attempt`] acts on the decision.
//!
//! A retry is safe: a GET changes nothing, and every other request carries an idempotency key, so the server runs it once.
//! A request that timed out is not retried: the user has waited long enough.

use std::time::Duration;

/// Pauses before the first and the second retry. There is no third.
const PAUSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];
/// Maximum pause. If `Retry-After` is longer, the request is not retried, and the error tells the user how long to wait.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How an attempt failed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Attempt<'a> {
    /// The connection failed, or broke before the response was complete.
    Disconnected,
    /// The attempt timed out.
    TimedOut,
    /// The server sent an error response.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The error code.
        code: &'a str,
        /// Pause requested by `Retry-After`.
        retry_after: Option<Duration>,
    },
}

/// Returns the pause before the next retry; `None` if there is no further retry.
pub(crate) fn pause_after(retries_made: usize, outcome: Attempt<'_>) -> Option<Duration> {
    let pause = PAUSES.get(retries_made).copied()?;
    match outcome {
        Attempt::Disconnected => Some(pause),
        // Temporary statuses (docs/api.md, Errors). Proxies in front of the server send 502 and 504.
        Attempt::Refused { status: 408 | 429 | 500 | 502 | 503 | 504, retry_after, .. }
        | Attempt::Refused { status: 409, code: "idempotency_key_in_use", retry_after } => {
            Some(retry_after.unwrap_or(pause)).filter(|pause| *pause <= LONGEST_PAUSE)
        }
        Attempt::TimedOut | Attempt::Refused { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, code: &str, retry_after: Option<u64>) -> Attempt<'_> {
        Attempt::Refused { status, code, retry_after: retry_after.map(Duration::from_secs) }
    }

    #[test]
    fn there_are_at_most_two_retries() {
        for outcome in [Attempt::Disconnected, refused(503, "service_unavailable", Some(1))] {
            assert!(pause_after(0, outcome).is_some());
            assert!(pause_after(1, outcome).is_some());
            assert_eq!(pause_after(2, outcome), None);
        }
    }

    #[test]
    fn the_statuses_of_the_reference_are_tried_again() {
        for status in 400..600 {
            let expected = [408, 429, 500, 502, 503, 504].contains(&status).then_some(PAUSES[0]);
            assert_eq!(pause_after(0, refused(status, "", None)), expected, "{status}");
        }
    }

    #[test]
    fn retry_after_is_waited_for_or_there_is_no_retry() {
        assert_eq!(pause_after(0, refused(503, "", Some(2))), Some(Duration::from_secs(2)));
        assert_eq!(pause_after(1, refused(429, "rate_limited", Some(10))), Some(LONGEST_PAUSE));
        assert_eq!(pause_after(1, refused(503, "", None)), Some(PAUSES[1]));
        for outcome in [refused(429, "rate_limited", Some(11)), refused(409, "idempotency_key_in_use", Some(3600))] {
            assert_eq!(pause_after(0, outcome), None, "{outcome:?}");
        }
    }

    #[test]
    fn what_will_not_change_is_not_tried_again() {
        for outcome in [refused(409, "vehicle_unavailable", None), refused(501, "", Some(1)), Attempt::TimedOut] {
            assert_eq!(pause_after(0, outcome), None, "{outcome:?}");
        }
    }
}
