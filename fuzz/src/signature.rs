//! The signature header: what the server signs the receiver's crate accepts, and nothing else that is much like it.

use crate::Pieces;
use rental_core::webhooks::signature::header;
use rental_webhook_verify::verify;

/// The input is a secret, a time, a change to make, and the body.
pub fn check(data: &[u8]) {
    let mut pieces = Pieces(data);
    let secret: [u8; 8] = pieces.array();
    let now = u64::from(u32::from_be_bytes(pieces.array()));
    let (at, to) = (usize::from(u16::from_be_bytes(pieces.array())), pieces.byte());
    let body = pieces.0;
    let signed = header([secret.as_slice()], now, body);
    // A secret of white space alone counts as none.
    if secret.iter().all(u8::is_ascii_whitespace) {
        return;
    }
    assert_eq!(verify(&secret, &signed, body, now), Ok(()));
    assert!(verify(&secret, &signed, body, now + 301).is_err());
    // Any header at all is judged without a panic, and one changed byte is not accepted.
    let mut changed = signed.clone().into_bytes();
    let place = at % changed.len();
    if changed[place] != to {
        changed[place] = to;
        if let Ok(changed) = std::str::from_utf8(&changed) {
            assert!(verify(&secret, changed, body, now).is_err(), "{changed}");
        }
    }
    if let Ok(text) = std::str::from_utf8(body) {
        let _ = verify(&secret, text, body, now);
    }
}
