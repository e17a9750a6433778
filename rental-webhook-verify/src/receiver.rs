//! What the framework adapters share: owned secrets, the header's name, limits, the system clock.

use core::fmt;
use std::borrow::{Cow, ToOwned};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use std::vec::Vec;

use crate::{DEFAULT_TOLERANCE_SECS, Verifier, VerifyError};

/// The header that carries the signature unless the service runs under another brand (spec, Delivery 2).
pub const DEFAULT_HEADER: &str = "Service-Signature";

/// The largest body an adapter buffers unless told otherwise, in bytes (1 MiB).
pub const DEFAULT_MAX_BODY_BYTES: usize = 1 << 20;

/// The settings of one webhook endpoint, for the framework adapters. Cheap to clone.
///
/// It reads the system clock. Where there is none, use [`verify`](crate::verify).
///
/// ```
/// use rental_webhook_verify::Receiver;
///
/// let receiver = Receiver::new("whsec_the_new_one")
///     .also("whsec_the_old_one") // while the secret is being rolled
///     .header("Acme-Signature")
///     .max_body_bytes(64 * 1024);
/// ```
#[derive(Clone)]
pub struct Receiver {
    secrets: Arc<Vec<Vec<u8>>>,
    header: Cow<'static, str>,
    tolerance_secs: u64,
    max_body_bytes: usize,
}

impl Receiver {
    /// Accepts deliveries signed with `secret`. An empty one refuses every delivery with
    /// [`VerifyError::EmptySecret`].
    #[must_use]
    pub fn new(secret: impl AsRef<[u8]>) -> Self {
        Self {
            secrets: Arc::new(Vec::from([secret.as_ref().to_owned()])),
            header: Cow::Borrowed(DEFAULT_HEADER),
            tolerance_secs: DEFAULT_TOLERANCE_SECS,
            max_body_bytes: DEFAULT_MAX_BODY_BYTES,
        }
    }

    /// Accepts deliveries signed with `secret` too.
    #[must_use]
    pub fn also(mut self, secret: impl AsRef<[u8]>) -> Self {
        Arc::make_mut(&mut self.secrets).push(secret.as_ref().to_owned());
        self
    }

    /// Reads the signature from another header than [`DEFAULT_HEADER`]. Upper and lower case are the same.
    #[must_use]
    pub fn header(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.header = name.into();
        self
    }

    /// See [`Verifier::tolerance_secs`].
    #[must_use]
    pub const fn tolerance_secs(mut self, seconds: u64) -> Self {
        self.tolerance_secs = seconds;
        self
    }

    /// Refuses a body of more than `bytes` bytes without reading it to the end.
    #[must_use]
    pub const fn max_body_bytes(mut self, bytes: usize) -> Self {
        self.max_body_bytes = bytes;
        self
    }

    /// As [`verify`](crate::verify), with these settings and the system clock.
    ///
    /// # Errors
    ///
    /// See [`VerifyError`].
    pub fn verify(&self, signature_header: &str, raw_body: &[u8]) -> Result<(), VerifyError> {
        Verifier::new(&self.secrets).tolerance_secs(self.tolerance_secs).verify(
            signature_header,
            raw_body,
            now_unix_seconds(),
        )
    }

    #[cfg(any(feature = "http", feature = "actix"))]
    pub(crate) fn header_name(&self) -> &str {
        &self.header
    }

    #[cfg(any(feature = "tower", feature = "axum", feature = "actix", feature = "warp"))]
    pub(crate) const fn body_limit(&self) -> usize {
        self.max_body_bytes
    }
}

/// Shows the number of secrets, never the secrets.
impl fmt::Debug for Receiver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Receiver")
            .field("secrets", &self.secrets.len())
            .field("header", &self.header)
            .field("tolerance_secs", &self.tolerance_secs)
            .field("max_body_bytes", &self.max_body_bytes)
            .finish()
    }
}

/// A clock before 1970 reads as 0, which refuses every delivery instead of accepting an old one.
#[allow(clippy::disallowed_methods, reason = "the edge of the crate: the only clock it reads")]
fn now_unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

/// The one value of the signature header. Two are ambiguous, even if equal: the sender never sends two.
#[cfg(any(feature = "http", feature = "actix"))]
pub(crate) fn only<'v>(mut values: impl Iterator<Item = &'v [u8]>) -> Result<&'v str, Rejection> {
    let value = values.next().ok_or(Rejection::MissingHeader)?;
    if values.next().is_some() {
        return Err(Rejection::RepeatedHeader);
    }
    core::str::from_utf8(value).map_err(|_| Rejection::HeaderNotText)
}

/// Why a request was turned away by an adapter.
///
/// `Display` is for the receiver's log. The answer to the request has a status and
/// [`response_text`](Self::response_text), which says no more than a stranger may know.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Rejection {
    /// The signature header is absent. 400.
    MissingHeader,
    /// The signature header is there more than once. 400.
    RepeatedHeader,
    /// The signature header is not text. 400.
    HeaderNotText,
    /// The body is longer than [`Receiver::max_body_bytes`]. 413.
    BodyTooLarge,
    /// The body could not be read to its end. 400.
    BodyUnreadable,
    /// The delivery does not verify. 401; 500 for [`VerifyError::EmptySecret`]; 400 for a malformed header.
    Refused(VerifyError),
}

impl Rejection {
    /// The HTTP status to answer with. The service retries on each of them (spec, Retries 1).
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::MissingHeader | Self::RepeatedHeader | Self::HeaderNotText | Self::BodyUnreadable => 400,
            Self::BodyTooLarge => 413,
            Self::Refused(error) => match error {
                VerifyError::EmptySecret => 500,
                VerifyError::HeaderTooLong
                | VerifyError::MissingTimestamp
                | VerifyError::DuplicateTimestamp
                | VerifyError::InvalidTimestamp
                | VerifyError::MissingSignature
                | VerifyError::TooManySignatures
                | VerifyError::InvalidSignature => 400,
                VerifyError::SignatureMismatch
                | VerifyError::SecretHasWhitespace
                | VerifyError::TimestampTooOld
                | VerifyError::TimestampTooNew => 401,
            },
        }
    }

    /// The body to answer with: the text of the rejection, but silent about how the receiver is configured.
    #[must_use]
    pub const fn response_text(self) -> &'static str {
        match self {
            Self::Refused(VerifyError::EmptySecret) => "this receiver is not configured: see its own log",
            Self::Refused(VerifyError::SecretHasWhitespace) => VerifyError::SignatureMismatch.text(),
            other => other.text(),
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::MissingHeader => {
                "the signature header is missing: check its name (it carries the service's brand) and any proxy between"
            }
            Self::RepeatedHeader => "the signature header is there more than once: check the proxies between",
            Self::HeaderNotText => "the signature header is not text: check the proxies between",
            Self::BodyTooLarge => "the body is larger than this receiver accepts: raise `max_body_bytes`",
            Self::BodyUnreadable => "the body ended early: the service will deliver again",
            Self::Refused(error) => error.text(),
        }
    }
}

impl From<VerifyError> for Rejection {
    fn from(error: VerifyError) -> Self {
        Self::Refused(error)
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text())
    }
}

impl core::error::Error for Rejection {}
