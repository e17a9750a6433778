//! The check itself: MAC, constant-time comparison, time. No clock, no allocation.

use core::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};

use crate::VerifyError;
use crate::header::{Header, TAG_LEN, Tag};

/// How far `t` may be from the receiver's clock, in seconds, unless a [`Verifier`] says otherwise
/// (spec, Signature verification 4). Exactly this far is still accepted.
pub const DEFAULT_TOLERANCE_SECS: u64 = 300;

/// Checks deliveries against several secrets, or with another tolerance. Borrows; allocates nothing.
///
/// While a secret is being rolled, the service signs with the old and the new one; a receiver that knows either
/// accepts. A receiver that knows both can be changed at any moment of the overlap.
///
/// ```
/// use rental_webhook_verify::Verifier;
///
/// let header = "t=1700000000,v1=d95c6b7477fbd7e9f90b1b0ef5f9c7ac25abca5382460e0d988c2b2a5b71b990";
/// let body = br#"{"id":"evt_test_webhook","object":"event"}"#;
/// let secrets = ["whsec_the_new_one", "whsec_test_secret"];
///
/// let verifier = Verifier::new(&secrets).tolerance_secs(60);
/// assert!(verifier.verify(header, body, 1_700_000_060).is_ok());
/// assert!(verifier.verify(header, body, 1_700_000_061).is_err());
/// ```
pub struct Verifier<'s, S> {
    secrets: &'s [S],
    tolerance_secs: u64,
}

impl<'s, S: AsRef<[u8]>> Verifier<'s, S> {
    /// Accepts a signature by any of `secrets`, in any order. One MAC over the body is computed for each.
    ///
    /// An empty list and a blank secret are refused by [`verify`](Self::verify), not here.
    #[must_use]
    pub const fn new(secrets: &'s [S]) -> Self {
        Self { secrets, tolerance_secs: DEFAULT_TOLERANCE_SECS }
    }

    /// Accepts a `t` that differs from the clock by at most `seconds`, in either direction. 0 means the same second;
    /// no value switches the check off.
    #[must_use]
    pub const fn tolerance_secs(mut self, seconds: u64) -> Self {
        self.tolerance_secs = seconds;
        self
    }

    /// Checks one delivery; the parameters are those of [`verify`](crate::verify).
    ///
    /// The time it takes depends on the lengths of the body and of the secrets and on the number of secrets and
    /// signatures, not on which of them match or where they first differ.
    ///
    /// # Errors
    ///
    /// See [`VerifyError`], and [`verify`](crate::verify) for the order of the checks.
    pub fn verify(&self, signature_header: &str, raw_body: &[u8], now_unix_seconds: u64) -> Result<(), VerifyError> {
        if self.secrets.is_empty() || self.secrets.iter().any(is_blank) {
            return Err(VerifyError::EmptySecret);
        }
        let header = Header::parse(signature_header)?;
        if !self.any_signature_matches(&header, raw_body) {
            return Err(self.mismatch());
        }
        // Last on purpose: before it is authenticated, `t` is only what the sender of the request claims, and the
        // answer would tell a stranger the time here.
        if now_unix_seconds.abs_diff(header.timestamp) <= self.tolerance_secs {
            Ok(())
        } else if header.timestamp < now_unix_seconds {
            Err(VerifyError::TimestampTooOld)
        } else {
            Err(VerifyError::TimestampTooNew)
        }
    }

    /// Looks at every signature with every secret: no early exit, one conversion to `bool` at the end.
    fn any_signature_matches(&self, header: &Header<'_>, raw_body: &[u8]) -> bool {
        let mut matched = Choice::from(0);
        for secret in self.secrets {
            let Some(expected) = tag(secret.as_ref(), header.timestamp_text, raw_body) else {
                return false;
            };
            for candidate in header.tags() {
                matched |= same(&expected, candidate);
            }
        }
        bool::from(matched)
    }

    fn mismatch(&self) -> VerifyError {
        let spaced = |secret: &S| {
            let secret = secret.as_ref();
            secret.trim_ascii().len() != secret.len()
        };
        if self.secrets.iter().any(spaced) { VerifyError::SecretHasWhitespace } else { VerifyError::SignatureMismatch }
    }
}

/// Shows the number of secrets, never the secrets.
impl<S> fmt::Debug for Verifier<'_, S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Verifier")
            .field("secrets", &self.secrets.len())
            .field("tolerance_secs", &self.tolerance_secs)
            .finish()
    }
}

/// White space alone is what an empty secret file with a newline holds: as guessable as nothing at all.
fn is_blank(secret: impl AsRef<[u8]>) -> bool {
    secret.as_ref().trim_ascii().is_empty()
}

/// Word by word: `[u8]::ct_eq` passes each of the 32 bytes through a barrier of its own, which takes as long as a
/// block of SHA-256.
fn same(left: &Tag, right: &Tag) -> Choice {
    let word = |tag: &Tag, at: usize| u64::from_le_bytes(core::array::from_fn(|byte| tag[8 * at + byte]));
    (0..TAG_LEN / 8).fold(Choice::from(1), |same, at| same & word(left, at).ct_eq(&word(right, at)))
}

/// HMAC-SHA256 over `<t>.<raw_body>` (spec, Signature verification 2), without building that string.
///
/// `None` never happens: HMAC takes keys of any length. It spares the crate a panic all the same.
fn tag(secret: &[u8], timestamp_text: &str, raw_body: &[u8]) -> Option<Tag> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
    mac.update(timestamp_text.as_bytes());
    mac.update(b".");
    mac.update(raw_body);
    Some(mac.finalize().into_bytes().into())
}
