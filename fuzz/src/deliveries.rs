//! Histories of one endpoint with several deliveries, in virtual time, against the rules of the specification.

use crate::Pieces;
use rental_core::{
    value::Timestamp,
    webhooks::attempt::{DISABLE_AFTER, Ending, Failure, RetryDecision, Schedule, Streak, after_attempt},
};

/// Milliseconds after each failed attempt (spec, Retries 2).
const DELAYS: [u64; 5] = [30_000, 120_000, 600_000, 1_800_000, 7_200_000];

/// The input is a list of attempts: which delivery, how long after the one before, and how it ended.
pub fn check(data: &[u8]) {
    let mut pieces = Pieces(data);
    let schedule = Schedule::default();
    let (mut attempts, mut done) = ([0u32; 4], [false; 4]);
    let (mut now, mut failures, mut disabled) = (Timestamp::from_millis(0), 0, 0);
    while !pieces.is_empty() {
        let delivery = usize::from(pieces.byte() % 4);
        now = now.plus_millis(i64::from(u32::from_be_bytes(pieces.array())));
        let ending = match pieces.byte() {
            0..20 => Ending::Failed(Failure::TimedOut),
            status => Ending::Answered {
                status: u16::from(status) * 4,
                retry_after: Some(u64::from_be_bytes(pieces.array())),
            },
        };
        if done[delivery] {
            continue;
        }
        let made = attempts[delivery];
        let after =
            after_attempt(made, Streak { failures, at_begin: failures, is_outage: false }, &ending, now, &schedule);
        attempts[delivery] += 1;
        let success = matches!(ending, Ending::Answered { status: 200..=299, .. });
        assert_eq!(after.failures, if success { 0 } else { failures + 1 });
        assert_eq!(
            after.disables,
            !success && failures + 1 == DISABLE_AFTER,
            "disabled at the twentieth, and only then"
        );
        match after.next {
            RetryDecision::Delivered => assert!(success),
            RetryDecision::GivenUp => assert!(!success && made as usize >= DELAYS.len()),
            RetryDecision::RetryAt(time) => {
                assert!(!success && time.millis() >= now.millis() + DELAYS[made as usize]);
            }
        }
        done[delivery] = !matches!(after.next, RetryDecision::RetryAt(_));
        failures = after.failures;
        disabled += u32::from(after.disables);
        assert!(attempts[delivery] <= 6);
    }
    assert!(disabled <= 2, "four deliveries make at most 24 attempts");
}
