//! The header: `t=<digits>,v1=<64 lower-case hex>[,v1=...]`.

use rental_webhook_verify::{MAX_HEADER_LEN, MAX_SIGNATURES, VerifyError};

use crate::support::{BODY, SECRET, T, check, good, signature};

const WRONG: &str = "0000000000000000000000000000000000000000000000000000000000000000";

#[test]
fn one_good_signature_is_accepted() {
    check(&format!("t={T},v1={}", good()), Ok(()));
}

#[test]
fn the_order_of_t_and_v1_does_not_matter() {
    check(&format!("v1={},t={T}", good()), Ok(()));
}

#[test]
fn any_of_several_signatures_may_match() {
    check(&format!("t={T},v1={WRONG},v1={}", good()), Ok(()));
    check(&format!("t={T},v1={},v1={WRONG}", good()), Ok(()));
    check(&format!("t={T},v1={WRONG},v1={WRONG}"), Err(VerifyError::SignatureMismatch));
}

#[test]
fn unknown_schemes_are_ignored() {
    check(&format!("t={T},v0={WRONG},v1={},foo=bar,v2=,x", good()), Ok(()));
    check(&format!("t={T},v1={},", good()), Ok(()));
}

#[test]
fn unknown_schemes_do_not_stand_in_for_v1() {
    for scheme in ["v0", "v2", "V1", "v11", "v", "foo"] {
        check(&format!("t={T},{scheme}={}", good()), Err(VerifyError::MissingSignature));
    }
}

#[test]
fn each_digit_is_0_to_9_or_a_to_f_and_nothing_else() {
    let good = good();
    for at in 0..good.len() {
        for byte in 0..128 {
            let mut text = good.clone().into_bytes();
            text[at] = byte;
            let text = String::from_utf8(text).expect("ASCII");
            let expected = match byte {
                _ if text == good => Ok(()),
                b'0'..=b'9' | b'a'..=b'f' => Err(VerifyError::SignatureMismatch),
                _ => Err(VerifyError::InvalidSignature),
            };
            check(&format!("t={T},v1={text}"), expected);
        }
    }
}

#[test]
fn empty_header_is_refused() {
    check("", Err(VerifyError::MissingTimestamp));
    check(",", Err(VerifyError::MissingTimestamp));
    check("=", Err(VerifyError::MissingTimestamp));
}

#[test]
fn missing_t_is_refused() {
    check(&format!("v1={}", good()), Err(VerifyError::MissingTimestamp));
    check(&format!("T={T},v1={}", good()), Err(VerifyError::MissingTimestamp));
}

#[test]
fn duplicate_t_is_refused_even_when_equal() {
    check(&format!("t={T},t={T},v1={}", good()), Err(VerifyError::DuplicateTimestamp));
    check(&format!("t={T},v1={},t=1", good()), Err(VerifyError::DuplicateTimestamp));
    check(&format!("t=1,v1={},t={T}", good()), Err(VerifyError::DuplicateTimestamp));
}

#[test]
fn missing_v1_is_refused() {
    check(&format!("t={T}"), Err(VerifyError::MissingSignature));
}

#[test]
fn t_other_than_digits_is_refused_even_when_it_was_signed() {
    for t in
        ["", "+1700000000", "-1700000000", "1700000000.0", "1.7e9", "0x65", " 1700000000", "1700000000 ", "1_7", "=1"]
    {
        let v1 = signature(SECRET, t, BODY);
        check(&format!("t={t},v1={v1}"), Err(VerifyError::InvalidTimestamp));
    }
    check(&format!("t,v1={}", good()), Err(VerifyError::InvalidTimestamp));
}

#[test]
fn digits_of_other_scripts_are_not_digits() {
    let t = "١٧٠٠٠٠٠٠٠٠";
    check(&format!("t={t},v1={}", signature(SECRET, t, BODY)), Err(VerifyError::InvalidTimestamp));
}

#[test]
fn t_beyond_64_bits_is_refused() {
    for t in ["18446744073709551616", "99999999999999999999999999"] {
        check(&format!("t={t},v1={}", signature(SECRET, t, BODY)), Err(VerifyError::InvalidTimestamp));
    }
}

#[test]
fn t_is_signed_exactly_as_written() {
    let t = format!("000{T}");
    check(&format!("t={t},v1={}", signature(SECRET, &t, BODY)), Ok(()));
    check(&format!("t={t},v1={}", good()), Err(VerifyError::SignatureMismatch));
}

#[test]
fn upper_case_hex_is_refused() {
    check(&format!("t={T},v1={}", good().to_uppercase()), Err(VerifyError::InvalidSignature));
    check(&format!("t={T},v1={}A", &good()[..63]), Err(VerifyError::InvalidSignature));
}

#[test]
fn signatures_of_another_length_are_refused() {
    let good = good();
    for v1 in ["", "=", &good[..2], &good[..62], &good[..63], &format!("{good}0"), &format!("{good}00")] {
        check(&format!("t={T},v1={v1}"), Err(VerifyError::InvalidSignature));
    }
    check(&format!("t={T},v1"), Err(VerifyError::InvalidSignature));
}

#[test]
fn signatures_other_than_hex_are_refused() {
    let good = good();
    for v1 in [format!("{}g", &good[..63]), format!("{good}="), format!(" {good}"), format!("{}é", &good[..62])] {
        check(&format!("t={T},v1={v1}"), Err(VerifyError::InvalidSignature));
    }
}

#[test]
fn a_malformed_signature_is_refused_beside_a_good_one() {
    check(&format!("t={T},v1={},v1=x", good()), Err(VerifyError::InvalidSignature));
    check(&format!("t={T},v1=x,v1={}", good()), Err(VerifyError::InvalidSignature));
}

#[test]
fn a_space_after_the_comma_makes_another_scheme() {
    check(&format!("t={T}, v1={}", good()), Err(VerifyError::MissingSignature));
    check(&format!(" t={T},v1={}", good()), Err(VerifyError::MissingTimestamp));
}

#[test]
fn sixteen_signatures_are_accepted_and_seventeen_refused() {
    let wrong = format!("v1={WRONG},");
    let header = |count: usize| format!("t={T},{}v1={}", wrong.repeat(count - 1), good());
    check(&header(MAX_SIGNATURES), Ok(()));
    check(&header(MAX_SIGNATURES + 1), Err(VerifyError::TooManySignatures));
}

#[test]
fn the_longest_header_is_accepted_and_one_byte_more_refused() {
    let start = format!("t={T},v1={},x=", good());
    let header = |len: usize| format!("{start}{}", "y".repeat(len - start.len()));
    check(&header(MAX_HEADER_LEN), Ok(()));
    check(&header(MAX_HEADER_LEN + 1), Err(VerifyError::HeaderTooLong));
}

#[test]
fn every_signature_allowed_fits_in_the_header_allowed() {
    assert!("t=18446744073709551615".len() + MAX_SIGNATURES * (",v1=".len() + 64) <= MAX_HEADER_LEN);
}
