//! Requests that every adapter must treat alike. Signed now, since the adapters read the wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

use rental_webhook_verify::{Receiver, Rejection, VerifyError};

use crate::support::{BODY, SECRET, header};

/// Not the default name: the brand is configurable.
pub(crate) const NAME: &str = "Acme-Signature";
pub(crate) const LIMIT: usize = 1024;

pub(crate) struct Delivery {
    pub(crate) rule: &'static str,
    pub(crate) headers: Vec<(&'static str, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    pub(crate) expected: Result<(), Rejection>,
}

#[cfg(any(feature = "actix", feature = "axum", feature = "tower", feature = "warp"))]
impl Delivery {
    pub(crate) fn status(&self) -> u16 {
        self.expected.map_or_else(Rejection::status, |()| 200)
    }

    /// The handlers of the tests answer with the body they were given.
    pub(crate) fn answer(&self) -> Vec<u8> {
        self.expected.map_or_else(|rejection| rejection.response_text().into(), |()| self.body.clone())
    }
}

pub(crate) fn receiver() -> Receiver {
    Receiver::new("whsec_being_rolled").also(SECRET).header(NAME).max_body_bytes(LIMIT)
}

pub(crate) fn all() -> Vec<Delivery> {
    let good = header(SECRET, now(), BODY).into_bytes();
    let named = |value: &[u8]| vec![(NAME, value.to_vec())];
    let signed = |body: &[u8]| named(header(SECRET, now(), body).as_bytes());
    let case = |rule, headers, body: &[u8], expected| Delivery { rule, headers, body: body.to_vec(), expected };
    let refused = |error| Err(Rejection::Refused(error));
    let longest = [b'x'; LIMIT];
    let too_long = [b'x'; LIMIT + 1];
    vec![
        case("a genuine delivery passes", named(&good), BODY, Ok(())),
        case("the name's case does not matter", vec![("ACME-signature", good.clone())], BODY, Ok(())),
        case("an empty body passes", signed(b""), b"", Ok(())),
        case("bytes that are not UTF-8 pass", signed(b"\xff\x00"), b"\xff\x00", Ok(())),
        case("a body of the limit passes", signed(&longest), &longest, Ok(())),
        case("one byte more is refused", signed(&too_long), &too_long, Err(Rejection::BodyTooLarge)),
        case("no header", vec![], BODY, Err(Rejection::MissingHeader)),
        case("no header, whatever the size", vec![], &too_long, Err(Rejection::MissingHeader)),
        case("another name", vec![("Service-Signature", good.clone())], BODY, Err(Rejection::MissingHeader)),
        case("twice", [named(&good), named(&good)].concat(), BODY, Err(Rejection::RepeatedHeader)),
        case("not text", named(b"t=1,v1=\xff"), BODY, Err(Rejection::HeaderNotText)),
        case("malformed", named(b"t=1,v1=abc"), BODY, refused(VerifyError::InvalidSignature)),
        case("another body", named(&good), b"{}", refused(VerifyError::SignatureMismatch)),
        case("stale", named(header(SECRET, now() - 400, BODY).as_bytes()), BODY, refused(VerifyError::TimestampTooOld)),
    ]
}

#[allow(clippy::disallowed_methods, reason = "the adapters read the wall clock, so their sender must too")]
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}
