#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "std")]
extern crate std;

mod error;
mod header;
#[cfg(feature = "std")]
mod receiver;
mod verifier;

#[cfg(feature = "actix")]
#[cfg_attr(docsrs, doc(cfg(feature = "actix")))]
pub mod actix;
#[cfg(feature = "axum")]
#[cfg_attr(docsrs, doc(cfg(feature = "axum")))]
pub mod axum;
#[cfg(any(feature = "tower", feature = "axum"))]
mod body;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "tower")]
#[cfg_attr(docsrs, doc(cfg(feature = "tower")))]
pub mod tower;
#[cfg(feature = "warp")]
#[cfg_attr(docsrs, doc(cfg(feature = "warp")))]
pub mod warp;

pub use error::VerifyError;
pub use header::{MAX_HEADER_LEN, MAX_SIGNATURES};
#[cfg(feature = "std")]
#[cfg_attr(docsrs, doc(cfg(feature = "std")))]
pub use receiver::{DEFAULT_HEADER, DEFAULT_MAX_BODY_BYTES, Receiver, Rejection};
pub use verifier::{DEFAULT_TOLERANCE_SECS, Verifier};

/// Checks one delivery against one secret: `Ok` means that its sender knew `secret` and that it is not a replay.
///
/// - `secret`: the webhook's secret exactly as it was displayed, its `whsec_` prefix included. Empty is refused.
/// - `signature_header`: the value of `Service-Signature`, `t=<unix_seconds>,v1=<hmac_sha256_hex>`; at most
///   [`MAX_HEADER_LEN`] bytes and [`MAX_SIGNATURES`] signatures, any of which may match.
/// - `raw_body`: the bytes as they arrived. JSON that was parsed and printed again has another signature.
/// - `now_unix_seconds`: the receiver's clock. It may differ from `t` by [`DEFAULT_TOLERANCE_SECS`] in either
///   direction (spec, Signature verification 4).
///
/// For several secrets or another tolerance see [`Verifier`].
///
/// # Errors
///
/// See [`VerifyError`]. The order of the checks is part of the contract: first the shape of the header, which the
/// sender of the request knows anyway; then every signature; the time last. So only a request with a genuine
/// signature ever learns that it is late or early: one without learns nothing about the receiver's clock.
///
/// # Examples
///
/// ```
/// use rental_webhook_verify::{VerifyError, verify};
///
/// let header = "t=1700000000,v1=d95c6b7477fbd7e9f90b1b0ef5f9c7ac25abca5382460e0d988c2b2a5b71b990";
/// let body = br#"{"id":"evt_test_webhook","object":"event"}"#;
///
/// assert_eq!(verify(b"whsec_test_secret", header, body, 1_700_000_300), Ok(()));
/// assert_eq!(verify(b"whsec_test_secret", header, body, 1_700_000_301), Err(VerifyError::TimestampTooOld));
/// assert_eq!(verify(b"another secret", header, body, 1_700_000_000), Err(VerifyError::SignatureMismatch));
/// ```
pub fn verify(
    secret: &[u8],
    signature_header: &str,
    raw_body: &[u8],
    now_unix_seconds: u64,
) -> Result<(), VerifyError> {
    Verifier::new(&[secret]).verify(signature_header, raw_body, now_unix_seconds)
}
