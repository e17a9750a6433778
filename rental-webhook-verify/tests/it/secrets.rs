//! Secrets: several while one is rolled, none of them blank, and none of them ever shown.

use rental_webhook_verify::{Verifier, VerifyError, verify};

use crate::support::{BODY, SECRET, T, header, signature};

const OTHER: &[u8] = b"whsec_another";

#[test]
fn the_wrong_secret_is_refused() {
    assert_eq!(verify(OTHER, &header(SECRET, T, BODY), BODY, T), Err(VerifyError::SignatureMismatch));
}

#[test]
fn the_secret_is_the_whole_text_displayed() {
    let without_prefix = SECRET.strip_prefix(b"whsec_").expect("the prefix");
    assert_eq!(verify(without_prefix, &header(SECRET, T, BODY), BODY, T), Err(VerifyError::SignatureMismatch));
}

#[test]
fn empty_secret_is_refused_even_when_it_signed() {
    assert_eq!(verify(b"", &header(b"", T, BODY), BODY, T), Err(VerifyError::EmptySecret));
}

#[test]
fn blank_secret_is_refused_even_when_it_signed() {
    for blank in [&b" "[..], b"\n", b"\r\n", b" \t "] {
        assert_eq!(verify(blank, &header(blank, T, BODY), BODY, T), Err(VerifyError::EmptySecret));
    }
}

#[test]
fn empty_secret_is_refused_beside_a_good_one() {
    let good = header(SECRET, T, BODY);
    assert_eq!(Verifier::new(&[SECRET, b""]).verify(&good, BODY, T), Err(VerifyError::EmptySecret));
    assert_eq!(Verifier::new(&[b"", SECRET]).verify(&good, BODY, T), Err(VerifyError::EmptySecret));
}

#[test]
fn no_secret_at_all_is_refused() {
    let none: [&[u8]; 0] = [];
    assert_eq!(Verifier::new(&none).verify(&header(SECRET, T, BODY), BODY, T), Err(VerifyError::EmptySecret));
}

#[test]
fn any_of_several_secrets_may_match() {
    let good = header(SECRET, T, BODY);
    assert_eq!(Verifier::new(&[SECRET, OTHER]).verify(&good, BODY, T), Ok(()));
    assert_eq!(Verifier::new(&[OTHER, SECRET]).verify(&good, BODY, T), Ok(()));
    assert_eq!(Verifier::new(&[OTHER, OTHER]).verify(&good, BODY, T), Err(VerifyError::SignatureMismatch));
}

#[test]
fn while_a_secret_is_rolled_either_one_verifies() {
    let t = T.to_string();
    let both = format!("t={t},v1={},v1={}", signature(OTHER, &t, BODY), signature(SECRET, &t, BODY));
    assert_eq!(verify(SECRET, &both, BODY, T), Ok(()));
    assert_eq!(verify(OTHER, &both, BODY, T), Ok(()));
    assert_eq!(Verifier::new(&[OTHER, SECRET]).verify(&both, BODY, T), Ok(()));
}

#[test]
fn secrets_may_be_text_or_owned() {
    let good = header(SECRET, T, BODY);
    let text = String::from_utf8(SECRET.to_vec()).expect("ascii");
    assert_eq!(Verifier::new(&[text.as_str()]).verify(&good, BODY, T), Ok(()));
    assert_eq!(Verifier::new(&[text]).verify(&good, BODY, T), Ok(()));
    assert_eq!(Verifier::new(&[SECRET.to_vec()]).verify(&good, BODY, T), Ok(()));
}

#[test]
fn a_mismatch_points_at_a_secret_with_a_newline() {
    for spaced in [&b"whsec_5f2b8c1e9a7d4036\n"[..], b" whsec_5f2b8c1e9a7d4036"] {
        assert_eq!(verify(spaced, &header(SECRET, T, BODY), BODY, T), Err(VerifyError::SecretHasWhitespace));
    }
}

#[test]
fn a_secret_with_white_space_verifies_what_it_signed() {
    let spaced = b"whsec \n";
    assert_eq!(verify(spaced, &header(spaced, T, BODY), BODY, T), Ok(()));
}

#[test]
fn a_mismatch_does_not_say_what_differed() {
    let good = header(SECRET, T, BODY);
    let wrong_secret = verify(OTHER, &good, BODY, T);
    let wrong_body = verify(SECRET, &good, b"{}", T);
    let wrong_time = verify(SECRET, &good.replace("t=17", "t=18"), BODY, T);
    assert_eq!(wrong_secret, wrong_body);
    assert_eq!(wrong_secret, wrong_time);
}

#[test]
fn debug_output_shows_no_secret() {
    let shown = format!("{:?}", Verifier::new(&[SECRET]));
    assert_eq!(shown, "Verifier { secrets: 1, tolerance_secs: 300 }");
}

#[test]
fn each_error_says_what_to_do_next() {
    let texts = [
        (VerifyError::EmptySecret, "set it to"),
        (VerifyError::HeaderTooLong, "pass only the value"),
        (VerifyError::MissingTimestamp, "pass the value"),
        (VerifyError::DuplicateTimestamp, "pass one header value"),
        (VerifyError::InvalidTimestamp, "pass the header value unchanged"),
        (VerifyError::MissingSignature, "pass the header value unchanged"),
        (VerifyError::TooManySignatures, "more than 16"),
        (VerifyError::InvalidSignature, "pass the header value unchanged"),
        (VerifyError::SignatureMismatch, "pass the raw body, not re-serialised JSON"),
        (VerifyError::SecretHasWhitespace, "trim it"),
        (VerifyError::TimestampTooOld, "check this machine's clock"),
        (VerifyError::TimestampTooNew, "not milliseconds"),
    ];
    for (error, advice) in texts {
        let error: &dyn core::error::Error = &error;
        assert!(error.to_string().contains(advice), "{error}");
    }
}
