//! Sends a request until it succeeds or a retry is pointless.

use crate::{
    client::retry::{Attempt, pause_after},
    edge,
    failure::{Failure, error_response::ErrorResponse},
};
use std::{
    thread,
    time::{Duration, UNIX_EPOCH},
};

/// Calls `attempt` until it succeeds or [`pause_after`] allows no further retry.
pub(crate) fn retried<T>(mut attempt: impl FnMut() -> Result<T, AttemptError>) -> Result<T, Failure> {
    let mut retries_made = 0;
    loop {
        let (failure, pause) = match attempt() {
            Ok(good) => return Ok(good),
            Err(stop) => stop.pause_after(retries_made),
        };
        match pause {
            Some(pause) => thread::sleep(pause),
            None => return Err(failure),
        }
        retries_made += 1;
    }
}

/// Why an attempt failed.
pub(crate) enum AttemptError {
    Disconnected(Failure),
    TimedOut(Failure),
    Refused(Box<ErrorResponse>),
    Final(Failure),
}

impl AttemptError {
    pub(crate) fn into_failure(self) -> Failure {
        match self {
            Self::Disconnected(failure) | Self::TimedOut(failure) | Self::Final(failure) => failure,
            Self::Refused(response) => Failure::ErrorResponse(response),
        }
    }

    fn pause_after(self, retries_made: usize) -> (Failure, Option<Duration>) {
        match self {
            Self::Disconnected(failure) => (failure, pause_after(retries_made, Attempt::Disconnected)),
            Self::TimedOut(failure) => (failure, pause_after(retries_made, Attempt::TimedOut)),
            Self::Refused(response) => {
                let outcome = Attempt::Refused {
                    status: response.status,
                    code: response.code(),
                    retry_after: response.retry_after,
                };
                let pause = pause_after(retries_made, outcome);
                (Failure::ErrorResponse(response), pause)
            }
            Self::Final(failure) => (failure, None),
        }
    }
}

/// Parses `Retry-After`: seconds, or a date.
pub(super) fn pause_asked_for(text: &str) -> Option<Duration> {
    let until = || {
        let date = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(date.saturating_sub(Duration::from_secs(edge::now().seconds())))
    };
    text.parse().ok().map(Duration::from_secs).or_else(until)
}
