//! One request, sent until a response is good or another attempt would not help.

use crate::{
    client::retry::{Try, pause_after},
    edge,
    failure::{Failure, refusal::Refusal},
};
use std::{
    thread,
    time::{Duration, UNIX_EPOCH},
};

/// Makes attempts until one is good, or another one would not help.
pub(crate) fn retried<T>(mut attempt: impl FnMut() -> Result<T, Stop>) -> Result<T, Failure> {
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

/// Why a try has no good answer.
pub(crate) enum Stop {
    Disconnected(Failure),
    TimedOut(Failure),
    Refused(Box<Refusal>),
    Final(Failure),
}

impl Stop {
    pub(crate) fn into_failure(self) -> Failure {
        match self {
            Self::Disconnected(failure) | Self::TimedOut(failure) | Self::Final(failure) => failure,
            Self::Refused(refusal) => Failure::Refused(refusal),
        }
    }

    fn pause_after(self, retries_made: usize) -> (Failure, Option<Duration>) {
        match self {
            Self::Disconnected(failure) => (failure, pause_after(retries_made, Try::Disconnected)),
            Self::TimedOut(failure) => (failure, pause_after(retries_made, Try::TimedOut)),
            Self::Refused(refusal) => {
                let outcome =
                    Try::Refused { status: refusal.status, code: refusal.code(), retry_after: refusal.retry_after };
                let pause = pause_after(retries_made, outcome);
                (Failure::Refused(refusal), pause)
            }
            Self::Final(failure) => (failure, None),
        }
    }
}

/// What `Retry-After` asks for: whole seconds, or until a date.
pub(super) fn pause_asked_for(text: &str) -> Option<Duration> {
    let until = || {
        let date = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(date.saturating_sub(Duration::from_secs(edge::now().seconds())))
    };
    text.parse().ok().map(Duration::from_secs).or_else(until)
}
