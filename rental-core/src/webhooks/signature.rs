//! The signature header of a delivery (spec, Signature verification 1 and 2).

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt::Write;

/// The header `t=<seconds>,v1=<hex>` with the HMAC-SHA256 of `<seconds>.<body>`, and one `v1` for each secret.
///
/// During the rotation of a secret both the old and the new one sign; otherwise there is exactly one `v1`.
#[must_use]
pub fn header<'s>(secrets: impl IntoIterator<Item = &'s [u8]>, seconds: u64, body: &[u8]) -> String {
    let mut text = format!("t={seconds}");
    for secret in secrets {
        // HMAC accepts keys of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { continue };
        mac.update(seconds.to_string().as_bytes());
        mac.update(b".");
        mac.update(body);
        text.push_str(",v1=");
        for byte in mac.finalize().into_bytes() {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of other senders of the same scheme.
    #[test]
    fn the_signature_is_that_of_other_implementations() {
        let check = |secret: &str, seconds, body: &str, hex: &str| {
            assert_eq!(header([secret.as_bytes()], seconds, body.as_bytes()), format!("t={seconds},v1={hex}"));
        };
        check(
            "a-subscription-secret",
            1_800_000_000,
            r#"{"event":"user.created"}"#,
            "d17d66b66fca89390c5b967c45e8928fc732db07a0aabe8167b1e98213081ffe",
        );
        check("secret", 1_636_936_200, "hello !", "1b3d69df55f1e52f05224ba94a5162abeb17ef52cd7f4948c390f810d6a87e98");
        check(
            "whsec_test_secret",
            1_700_000_000,
            r#"{"id":"evt_test_webhook","object":"event"}"#,
            "d95c6b7477fbd7e9f90b1b0ef5f9c7ac25abca5382460e0d988c2b2a5b71b990",
        );
    }

    #[test]
    fn both_secrets_sign_during_a_rotation() {
        let text = header([b"new".as_slice(), b"old"], 7, b"body");
        assert_eq!(text.matches(",v1=").count(), 2);
        assert_eq!(
            text,
            format!("{}{}", header([b"new".as_slice()], 7, b"body"), &header([b"old".as_slice()], 7, b"body")[3..])
        );
    }
}
