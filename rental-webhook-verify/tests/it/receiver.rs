//! `Receiver` and `Rejection`: what the adapters share.

use std::time::{SystemTime, UNIX_EPOCH};

use rental_webhook_verify::{DEFAULT_HEADER, DEFAULT_MAX_BODY_BYTES, Receiver, Rejection, VerifyError};

use crate::support::{BODY, SECRET, T, header};

#[test]
fn the_receiver_reads_the_system_clock() {
    #[allow(clippy::disallowed_methods, reason = "the receiver reads the wall clock, so its sender must too")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let receiver = Receiver::new(SECRET);
    assert_eq!(receiver.verify(&header(SECRET, now, BODY), BODY), Ok(()));
    assert_eq!(receiver.verify(&header(SECRET, T, BODY), BODY), Err(VerifyError::TimestampTooOld));
    let patient = receiver.tolerance_secs(u64::MAX);
    assert_eq!(patient.verify(&header(SECRET, T, BODY), BODY), Ok(()));
}

#[test]
fn adding_a_secret_leaves_a_clone_as_it_was() {
    let old = Receiver::new("whsec_old").tolerance_secs(u64::MAX);
    let both = old.clone().also(SECRET);
    assert_eq!(both.verify(&header(SECRET, T, BODY), BODY), Ok(()));
    assert_eq!(both.verify(&header(b"whsec_old", T, BODY), BODY), Ok(()));
    assert_eq!(old.verify(&header(SECRET, T, BODY), BODY), Err(VerifyError::SignatureMismatch));
}

#[test]
fn debug_output_of_a_receiver_shows_no_secret() {
    let shown = format!("{:?}", Receiver::new(SECRET).also("whsec_2"));
    assert!(shown.starts_with("Receiver { secrets: 2,"), "{shown}");
    assert!(!shown.contains("whsec"), "{shown}");
}

#[test]
fn defaults_are_those_of_the_specification() {
    assert_eq!(DEFAULT_HEADER, "Service-Signature");
    assert_eq!(DEFAULT_MAX_BODY_BYTES, 1_048_576);
}

#[test]
fn the_answer_does_not_say_how_the_receiver_is_configured() {
    let mismatch = Rejection::Refused(VerifyError::SignatureMismatch);
    let spaced = Rejection::Refused(VerifyError::SecretHasWhitespace);
    assert_eq!(spaced.status(), mismatch.status());
    assert_eq!(spaced.response_text(), mismatch.response_text());
    assert!(spaced.to_string().contains("white space"), "the log does say it");
    assert!(!Rejection::Refused(VerifyError::EmptySecret).response_text().contains("secret"));
}

#[test]
fn each_rejection_has_the_status_of_who_must_act() {
    let statuses = [
        (Rejection::MissingHeader, 400),
        (Rejection::RepeatedHeader, 400),
        (Rejection::HeaderNotText, 400),
        (Rejection::BodyUnreadable, 400),
        (Rejection::BodyTooLarge, 413),
        (Rejection::Refused(VerifyError::EmptySecret), 500),
        (Rejection::Refused(VerifyError::HeaderTooLong), 400),
        (Rejection::Refused(VerifyError::MissingTimestamp), 400),
        (Rejection::Refused(VerifyError::DuplicateTimestamp), 400),
        (Rejection::Refused(VerifyError::InvalidTimestamp), 400),
        (Rejection::Refused(VerifyError::MissingSignature), 400),
        (Rejection::Refused(VerifyError::TooManySignatures), 400),
        (Rejection::Refused(VerifyError::InvalidSignature), 400),
        (Rejection::Refused(VerifyError::SignatureMismatch), 401),
        (Rejection::Refused(VerifyError::TimestampTooOld), 401),
        (Rejection::Refused(VerifyError::TimestampTooNew), 401),
    ];
    for (rejection, status) in statuses {
        assert_eq!(rejection.status(), status, "{rejection:?}");
    }
}
