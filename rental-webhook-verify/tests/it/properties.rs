//! What holds for every input.

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};
use rental_webhook_verify::{Verifier, VerifyError, verify};

use crate::support::{header, signature};

fn flip(bytes: &mut [u8], bit: usize) {
    let bit = bit % (bytes.len() * 8);
    bytes[bit / 8] ^= 1 << (bit % 8);
}

/// `0x80` keeps a secret from being blank.
fn usable(mut secret: Vec<u8>) -> Vec<u8> {
    secret.push(0x80);
    secret
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_signed_verifies(secret in vec(any::<u8>(), 0..200), body in vec(any::<u8>(), 0..2000), t: u64) {
        let secret = usable(secret);
        prop_assert_eq!(verify(&secret, &header(&secret, t, &body), &body, t), Ok(()));
    }

    #[test]
    fn accepted_exactly_within_the_tolerance(t: u64, now: u64, near in -700i64..700, tolerance in 0u64..1000) {
        for now in [now, t.saturating_add_signed(near)] {
            let verifier = Verifier::new(&["secret"]).tolerance_secs(tolerance);
            let verdict = verifier.verify(&header(b"secret", t, b"{}"), b"{}", now);
            let apart = i128::from(now) - i128::from(t);
            let tolerance = i128::from(tolerance);
            let expected = if apart > tolerance {
                Err(VerifyError::TimestampTooOld)
            } else if apart < -tolerance {
                Err(VerifyError::TimestampTooNew)
            } else {
                Ok(())
            };
            prop_assert_eq!(verdict, expected);
        }
    }

    #[test]
    fn one_flipped_bit_of_the_body_is_refused(mut body in vec(any::<u8>(), 1..300), bit: usize) {
        let header = header(b"secret", 7, &body);
        flip(&mut body, bit);
        prop_assert_eq!(verify(b"secret", &header, &body, 7), Err(VerifyError::SignatureMismatch));
    }

    #[test]
    fn one_flipped_bit_of_the_signature_is_refused(body in vec(any::<u8>(), 0..300), bit in 0usize..256) {
        let mut tag = hex::decode(signature(b"secret", "7", &body)).expect("hex");
        flip(&mut tag, bit);
        let header = format!("t=7,v1={}", hex::encode(tag));
        prop_assert_eq!(verify(b"secret", &header, &body, 7), Err(VerifyError::SignatureMismatch));
    }

    #[test]
    fn one_flipped_bit_of_the_secret_is_refused(secret in vec(any::<u8>(), 1..200), bit: usize) {
        let secret = usable(secret);
        let mut other = secret.clone();
        flip(&mut other, bit % (secret.len() * 8 - 8)); // not the last byte: it keeps the secret from being blank
        let verdict = verify(&other, &header(&secret, 7, b"{}"), b"{}", 7);
        prop_assert!(verdict.is_err());
    }

    #[test]
    fn any_order_of_the_elements_is_the_same_header(at in 0usize..5, good in 0usize..4) {
        let mut elements: Vec<String> = (0..4).map(|n| format!("v1={:064x}", n + 1)).collect();
        elements[good] = format!("v1={}", signature(b"secret", "7", b"{}"));
        elements.insert(at, "t=7".to_owned());
        prop_assert_eq!(verify(b"secret", &elements.join(","), b"{}", 7), Ok(()));
    }

    #[test]
    fn no_text_makes_it_panic_or_accept(header in ".{0,200}", now: u64) {
        let verdict = verify(b"secret", &header, b"{}", now);
        prop_assert!(verdict.is_err());
    }

    /// Closer to the format than arbitrary text, so that the parser's later branches are reached.
    #[test]
    fn no_list_of_elements_makes_it_panic_or_accept(
        header in "((t|v1|v0|)=?([0-9]{0,21}|[0-9a-fA-F]{62,66}|=|é| )?,?){0,20}", now: u64,
    ) {
        let verdict = verify(b"secret", &header, b"{}", now);
        prop_assert!(verdict.is_err());
    }
}
