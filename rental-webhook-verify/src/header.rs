//! The signature header, parsed: `t=<digits>,v1=<64 lower-case hex>[,v1=...]`.
//!
//! Everything here is known to whoever sent the request, so nothing here needs constant time.

use crate::VerifyError;

/// The most signatures (`v1`) that one header may carry. A sender that rolls its secret sends two.
///
/// The bound keeps the work of an unauthenticated request small; each signature costs one comparison of 32 bytes.
pub const MAX_SIGNATURES: usize = 16;

/// The longest header accepted, in bytes: [`MAX_SIGNATURES`] signatures of 68 bytes each, `t`, and room for
/// schemes that this version does not know.
pub const MAX_HEADER_LEN: usize = 2048;

/// Bytes of an HMAC-SHA256 tag.
pub(crate) const TAG_LEN: usize = 32;

pub(crate) type Tag = [u8; TAG_LEN];

/// A well-formed header: exactly one timestamp, 1 to [`MAX_SIGNATURES`] tags.
pub(crate) struct Header<'h> {
    /// `t` as written. It is part of the signed string, so it is never printed anew: `t=007` signs `007`.
    pub(crate) timestamp_text: &'h str,
    pub(crate) timestamp: u64,
    tags: [Tag; MAX_SIGNATURES],
    tags_len: usize,
}

impl<'h> Header<'h> {
    /// Unknown schemes (`v0=`, `foo=`) are ignored, so that the service can add one; `t` and `v1` are strict.
    #[inline] // into `verify`, its only caller: 600 bytes less to move
    pub(crate) fn parse(text: &'h str) -> Result<Self, VerifyError> {
        if text.len() > MAX_HEADER_LEN {
            return Err(VerifyError::HeaderTooLong);
        }
        let mut timestamp_text = None;
        let mut tags = [[0; TAG_LEN]; MAX_SIGNATURES];
        let mut tags_len = 0;
        for element in text.split(',') {
            let (scheme, value) = element.split_once('=').unwrap_or((element, ""));
            // Bytes: patterns of text call `memcmp`.
            match scheme.as_bytes() {
                b"t" if timestamp_text.is_some() => return Err(VerifyError::DuplicateTimestamp),
                b"t" => timestamp_text = Some(value),
                b"v1" => {
                    let tag = tags.get_mut(tags_len).ok_or(VerifyError::TooManySignatures)?;
                    decode(value, tag)?;
                    tags_len += 1;
                }
                _ => {}
            }
        }
        let timestamp_text = timestamp_text.ok_or(VerifyError::MissingTimestamp)?;
        let timestamp = seconds(timestamp_text)?;
        if tags_len == 0 {
            return Err(VerifyError::MissingSignature);
        }
        Ok(Self { timestamp_text, timestamp, tags, tags_len })
    }

    pub(crate) fn tags(&self) -> &[Tag] {
        self.tags.get(..self.tags_len).unwrap_or_default()
    }
}

/// `u64::from_str` would also take `+1`, hence the look at every byte.
fn seconds(text: &str) -> Result<u64, VerifyError> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(VerifyError::InvalidTimestamp);
    }
    text.parse().map_err(|_| VerifyError::InvalidTimestamp) // empty, or over 64 bits
}

/// Lower case only (spec, Signature verification 1). Own code, because every select here compiles to vector code: the
/// look-up of each digit in a table takes as long as hashing another hundred bytes.
fn decode(text: &str, tag: &mut Tag) -> Result<(), VerifyError> {
    let digits: &[u8; 2 * TAG_LEN] = text.as_bytes().try_into().map_err(|_| VerifyError::InvalidSignature)?;
    let nibbles = digits.map(nibble);
    for (byte, pair) in tag.iter_mut().zip(nibbles.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    // `fold` and not `any`: an early exit would keep it from being vector code.
    if nibbles.iter().fold(0, |all, nibble| all | nibble) > 0xf { Err(VerifyError::InvalidSignature) } else { Ok(()) }
}

/// The value of a digit; 255 for any other byte.
fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => u8::MAX,
    }
}
