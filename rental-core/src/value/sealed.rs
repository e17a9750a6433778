//! A secret at rest. `webhooks/secret.rs` seals and opens it.

use super::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The name of a master key: the first 8 bytes of an HMAC-SHA256 with the key, in hex. It does not tell the key.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// The name of the key with this HMAC.
    pub(crate) fn of(hmac: &[u8; 32]) -> Self {
        Self(hex::encode(&hmac[..8]))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One encrypted secret.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SealedSecret {
    /// Nonce and ciphertext, in hex.
    pub sealed: String,
    /// The master key that sealed it.
    pub key: Fingerprint,
    /// The time from which the secret no longer signs; `None` for the newest one.
    pub expires_at: Option<Timestamp>,
}
