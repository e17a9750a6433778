//! New API keys and tokens of operators. Only the response to the request that makes one has its text; the store has its
//! hash.

use crate::edge;
use rental_core::{operations::api_keys, value::Text};

/// The longest overlap of a rotation: 30 days.
pub(super) const MAX_OVERLAP_SECS: i64 = 30 * 24 * 3600;

/// A new key or token.
pub(super) struct Fresh {
    pub(super) text: String,
    pub(super) hash: [u8; 32],
}

impl Fresh {
    /// A new API key.
    pub(super) fn key() -> Self {
        Self::make(api_keys::key_text, api_keys::key_hash)
    }

    /// A new token of an operator.
    pub(super) fn token() -> Self {
        Self::make(api_keys::operator_token, api_keys::operator_hash)
    }

    fn make(text: fn(&[u8; 32]) -> String, hash: fn(&str) -> Option<[u8; 32]>) -> Self {
        loop {
            let text = text(&edge::secret_bytes());
            // Always true: `text` makes texts that have a hash.
            if let Some(hash) = hash(&text) {
                return Self { text, hash };
            }
        }
    }

    /// The beginning and the end of the text, to tell keys and tokens apart.
    pub(super) fn hint(&self) -> Text {
        api_keys::hint(&self.text)
    }
}
