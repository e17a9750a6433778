//! The time: at most 300 seconds apart, looked at last.

use rental_webhook_verify::{DEFAULT_TOLERANCE_SECS, Verifier, VerifyError, verify};

use crate::support::{BODY, SECRET, T, header, signature};

#[track_caller]
fn check(t: u64, now: u64, expected: Result<(), VerifyError>) {
    assert_eq!(verify(SECRET, &header(SECRET, t, BODY), BODY, now), expected, "t={t} now={now}");
}

#[test]
fn tolerance_is_300_seconds() {
    assert_eq!(DEFAULT_TOLERANCE_SECS, 300);
}

#[test]
fn exactly_300_seconds_old_is_accepted_and_301_refused() {
    check(T, T + 300, Ok(()));
    check(T, T + 301, Err(VerifyError::TimestampTooOld));
}

#[test]
fn exactly_300_seconds_early_is_accepted_and_301_refused() {
    check(T, T - 300, Ok(()));
    check(T, T - 301, Err(VerifyError::TimestampTooNew));
}

#[test]
fn extreme_times_are_refused_without_overflow() {
    check(0, u64::MAX, Err(VerifyError::TimestampTooOld));
    check(u64::MAX, 0, Err(VerifyError::TimestampTooNew));
    check(u64::MAX, u64::MAX, Ok(()));
    check(0, 0, Ok(()));
}

#[test]
fn milliseconds_for_now_are_refused() {
    check(T, T * 1000, Err(VerifyError::TimestampTooOld));
}

#[test]
fn another_tolerance_replaces_the_default() {
    let header = header(SECRET, T, BODY);
    let at = |tolerance, now| Verifier::new(&[SECRET]).tolerance_secs(tolerance).verify(&header, BODY, now);
    assert_eq!(at(10, T + 10), Ok(()));
    assert_eq!(at(10, T + 11), Err(VerifyError::TimestampTooOld));
    assert_eq!(at(10, T - 11), Err(VerifyError::TimestampTooNew));
    assert_eq!(at(3600, T + 3600), Ok(()));
}

#[test]
fn tolerance_zero_means_the_same_second_not_any_time() {
    let header = header(SECRET, T, BODY);
    let at = |now| Verifier::new(&[SECRET]).tolerance_secs(0).verify(&header, BODY, now);
    assert_eq!(at(T), Ok(()));
    assert_eq!(at(T + 1), Err(VerifyError::TimestampTooOld));
    assert_eq!(at(T - 1), Err(VerifyError::TimestampTooNew));
}

/// A stranger may not learn the receiver's clock by trying values of `t`.
#[test]
fn a_stale_request_without_a_genuine_signature_is_only_a_mismatch() {
    for t in [0, T - 301, T, T + 301, u64::MAX] {
        let forged = header(b"another secret", t, BODY);
        assert_eq!(verify(SECRET, &forged, BODY, T), Err(VerifyError::SignatureMismatch), "t={t}");
    }
}

#[test]
fn a_fresh_t_put_on_an_old_signature_is_a_mismatch() {
    let replayed = format!("t={T},v1={}", signature(SECRET, &(T - 3600).to_string(), BODY));
    assert_eq!(verify(SECRET, &replayed, BODY, T), Err(VerifyError::SignatureMismatch));
}
