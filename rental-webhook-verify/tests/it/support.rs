//! A sender: signs as the service does. Checked itself by the vectors, which other programs computed.

use hmac::{Hmac, KeyInit, Mac};
use rental_webhook_verify::VerifyError;
use sha2::Sha256;

pub(crate) const SECRET: &[u8] = b"whsec_5f2b8c1e9a7d4036";
pub(crate) const BODY: &[u8] = br#"{"id":"evt_1","type":"rental.created","created":1700000000,"data":{}}"#;
pub(crate) const T: u64 = 1_700_000_000;

/// The hex signature of `<timestamp>.<body>`.
pub(crate) fn signature(secret: &[u8], timestamp: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes any key");
    mac.update(&[timestamp.as_bytes(), b".", body].concat());
    hex::encode(mac.finalize().into_bytes())
}

/// The header that the service sends.
pub(crate) fn header(secret: &[u8], timestamp: u64, body: &[u8]) -> String {
    format!("t={timestamp},v1={}", signature(secret, &timestamp.to_string(), body))
}

/// The good signature of [`BODY`] at [`T`].
pub(crate) fn good() -> String {
    signature(SECRET, &T.to_string(), BODY)
}

/// Verifies [`BODY`] with [`SECRET`] at [`T`] under this header.
#[track_caller]
pub(crate) fn check(header: &str, expected: Result<(), VerifyError>) {
    assert_eq!(rental_webhook_verify::verify(SECRET, header, BODY, T), expected, "{header}");
}
