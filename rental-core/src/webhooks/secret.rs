//! Encrypts the secrets of endpoints at rest: XChaCha20-Poly1305 with the master key, bound to the endpoint.

use crate::value::{EndpointId, Timestamp};
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use serde::{Deserialize, Serialize};

/// The prefix of every secret.
pub const PREFIX: &str = "whsec_";
/// Most secrets of an endpoint at the same time: the new one and old ones that still sign.
pub const MOST_SECRETS: usize = 5;

/// The key that encrypts secrets. It is not in the store.
#[derive(Clone)]
pub struct MasterKey(XChaCha20Poly1305);

impl MasterKey {
    /// The master key with these 32 bytes, which must be random.
    #[must_use]
    pub fn new(bytes: &[u8; 32]) -> Self {
        Self(XChaCha20Poly1305::new(bytes.into()))
    }

    /// Encrypts the secret of `endpoint`. `nonce` must be 24 random bytes and never be used twice.
    ///
    /// # Errors
    /// The secret is too long for the cipher.
    pub fn seal(&self, endpoint: EndpointId, nonce: [u8; 24], secret: &str) -> Result<String, String> {
        let payload = Payload { msg: secret.as_bytes(), aad: endpoint.as_bytes() };
        let sealed =
            self.0.encrypt(&XNonce::from(nonce), payload).map_err(|_| "the secret cannot be encrypted".to_owned())?;
        Ok(hex::encode([nonce.as_slice(), &sealed].concat()))
    }

    /// Decrypts a secret from [`MasterKey::seal`] for the same endpoint.
    ///
    /// # Errors
    /// The secret was encrypted with another key or for another endpoint, or it is damaged.
    pub fn open(&self, endpoint: EndpointId, sealed: &str) -> Result<String, String> {
        let wrong = || "a webhook secret cannot be decrypted: is this the master key of this store?".to_owned();
        let bytes = hex::decode(sealed).map_err(|_| wrong())?;
        let (nonce, text) = bytes.split_first_chunk::<24>().ok_or_else(wrong)?;
        let payload = Payload { msg: text, aad: endpoint.as_bytes() };
        let secret = self.0.decrypt(&XNonce::from(*nonce), payload).map_err(|_| wrong())?;
        String::from_utf8(secret).map_err(|_| wrong())
    }
}

/// The encrypted secrets of an endpoint, newest first.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Sealed(pub Vec<SealedSecret>);

/// One encrypted secret.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SealedSecret {
    /// Nonce and ciphertext, in hex.
    pub sealed: String,
    /// The time from which the secret no longer signs; `None` for the newest one.
    pub expires_at: Option<Timestamp>,
}

impl Sealed {
    /// Adds a new secret. The older ones sign until `overlap_ends`.
    pub fn rotate(&mut self, sealed: String, overlap_ends: Timestamp, now: Timestamp) {
        self.0.retain(|old| old.expires_at.is_none_or(|end| end > now));
        for old in &mut self.0 {
            old.expires_at = Some(old.expires_at.map_or(overlap_ends, |end| end.min(overlap_ends)));
        }
        self.0.retain(|old| old.expires_at.is_none_or(|end| end > now));
        self.0.insert(0, SealedSecret { sealed, expires_at: None });
        self.0.truncate(MOST_SECRETS);
    }

    /// The secrets that sign at `now`.
    pub fn in_force(&self, now: Timestamp) -> impl Iterator<Item = &SealedSecret> {
        self.0.iter().filter(move |secret| secret.expires_at.is_none_or(|end| end > now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn a_secret_opens_only_for_its_own_endpoint_under_its_own_key() {
        let (key, endpoint) = (MasterKey::new(&[7; 32]), EndpointId::from_u128(1));
        let sealed = key.seal(endpoint, [1; 24], "whsec_abc").unwrap();
        assert!(!sealed.contains("whsec") && !sealed.contains(&hex::encode("whsec_abc")));
        assert_eq!(key.open(endpoint, &sealed).as_deref(), Ok("whsec_abc"));
        assert!(key.open(EndpointId::from_u128(2), &sealed).is_err());
        assert!(MasterKey::new(&[8; 32]).open(endpoint, &sealed).is_err());
        assert!(key.open(endpoint, &sealed[..sealed.len() - 2]).is_err());
        assert!(key.open(endpoint, "zz").is_err());
    }

    #[test]
    fn old_and_new_sign_until_the_overlap_ends() {
        let mut secrets = Sealed::default();
        secrets.rotate("a".into(), at(0), at(0));
        secrets.rotate("b".into(), at(100), at(10));
        let names =
            |secrets: &Sealed, now| secrets.in_force(now).map(|secret| secret.sealed.clone()).collect::<Vec<_>>();
        assert_eq!(names(&secrets, at(99)), ["b", "a"]);
        assert_eq!(names(&secrets, at(100)), ["b"]);
        secrets.rotate("c".into(), at(20), at(20));
        assert_eq!(names(&secrets, at(20)), ["c"], "no overlap means that the old ones end at once");
    }

    #[test]
    fn there_are_never_more_than_five() {
        let mut secrets = Sealed::default();
        for name in 0..9 {
            secrets.rotate(name.to_string(), at(1000), at(1));
        }
        assert_eq!(secrets.0.len(), MOST_SECRETS);
        assert_eq!(secrets.0[0].sealed, "8");
    }
}
