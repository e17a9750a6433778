//! Why a delivery was refused, and what the developer does about it.

use core::fmt;

/// Why a delivery was refused.
///
/// The text of each is written for the developer of the receiver and says what to do next. It holds nothing of the
/// secret, the body or the expected signature, and a mismatch does not say which of the three differed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum VerifyError {
    /// No secret was given, or one of them is empty or only white space. Anyone can sign with that, so it never
    /// verifies.
    EmptySecret,
    /// The header is longer than [`MAX_HEADER_LEN`](crate::MAX_HEADER_LEN).
    HeaderTooLong,
    /// The header has no `t`.
    MissingTimestamp,
    /// The header has more than one `t`, so it is unclear which was signed.
    DuplicateTimestamp,
    /// `t` is not made of ASCII digits only, or does not fit in 64 bits.
    InvalidTimestamp,
    /// The header has no `v1`.
    MissingSignature,
    /// The header has more than [`MAX_SIGNATURES`](crate::MAX_SIGNATURES) `v1`.
    TooManySignatures,
    /// A `v1` is not 64 lower-case hexadecimal digits.
    InvalidSignature,
    /// No `v1` is the signature of this body by any of the secrets.
    SignatureMismatch,
    /// As [`SignatureMismatch`](Self::SignatureMismatch), and a configured secret begins or ends with white space,
    /// most often the newline at the end of a file. Depends on the configuration only, never on the request.
    SecretHasWhitespace,
    /// A genuine signature, made longer ago than the tolerance allows.
    TimestampTooOld,
    /// A genuine signature, from further in the future than the tolerance allows.
    TimestampTooNew,
}

impl VerifyError {
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::EmptySecret => {
                "the webhook secret is empty: set it to the `whsec_...` value displayed when the webhook was created"
            }
            Self::HeaderTooLong => {
                "the signature header is too long: pass only the value of the `...-Signature` header"
            }
            Self::MissingTimestamp => {
                "the signature header has no `t=`: pass the value of the `...-Signature` header unchanged"
            }
            Self::DuplicateTimestamp => {
                "the signature header has more than one `t=`: pass one header value, not several joined by a proxy"
            }
            Self::InvalidTimestamp => {
                "`t` in the signature header must be digits only: pass the header value unchanged"
            }
            Self::MissingSignature => {
                "the signature header has no `v1=` (written without spaces): pass the header value unchanged"
            }
            Self::TooManySignatures => {
                "the signature header has more than 16 `v1=`: pass one header value, not several joined by a proxy"
            }
            Self::InvalidSignature => {
                "a `v1` in the signature header is not 64 lower-case hex digits: pass the header value unchanged"
            }
            Self::SignatureMismatch => {
                "no signature matches: pass the raw body, not re-serialised JSON, and this webhook's own secret"
            }
            Self::SecretHasWhitespace => {
                "no signature matches, and the secret begins or ends with white space: trim it (a newline at the end of a file?)"
            }
            Self::TimestampTooOld => {
                "the delivery was signed too long ago: verify before queueing, pass Unix seconds, and check this machine's clock"
            }
            Self::TimestampTooNew => {
                "the delivery was signed in the future: pass Unix seconds, not milliseconds, and check this machine's clock"
            }
        }
    }
}

impl fmt::Display for VerifyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text())
    }
}

impl core::error::Error for VerifyError {}
