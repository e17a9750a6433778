//! Encrypts the secrets of endpoints at rest: XChaCha20-Poly1305 with a master key, bound to the endpoint. The address of a
//! calendar feed is sealed in the same way, bound to the id of the feed ([`bound_to`]).
//!
//! Each encrypted secret names its master key by the [`Fingerprint`] of the key. [`crate::webhooks::master_key`] says which
//! key is in use.

use crate::value::{CalendarFeedId, EndpointId, Timestamp};
pub use crate::value::{Fingerprint, SealedSecret};
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// The prefix of every secret.
pub const PREFIX: &str = "whsec_";
/// Most secrets of an endpoint at the same time: the new one and old ones that still sign.
pub const MOST_SECRETS: usize = 5;

/// What the address of a calendar feed is bound to.
#[must_use]
pub fn bound_to(feed: CalendarFeedId) -> EndpointId {
    EndpointId::from_uuid(feed.uuid())
}

/// The key that encrypts secrets. It is not in the store.
#[derive(Clone)]
pub struct MasterKey {
    cipher: XChaCha20Poly1305,
    mac: Hmac<Sha256>,
    fingerprint: Fingerprint,
}

impl MasterKey {
    /// The master key with these 32 bytes, which must be random.
    #[must_use]
    pub fn new(bytes: &[u8; 32]) -> Self {
        // HMAC pads a short key with zeros to a block of the hash.
        let mut block = [0; 64];
        block[..32].copy_from_slice(bytes);
        let mac = Hmac::new(&block.into());
        let fingerprint = Fingerprint::of(&hash(&mac, &[b"rental master key: fingerprint"]));
        Self { cipher: XChaCha20Poly1305::new(bytes.into()), mac, fingerprint }
    }

    /// The name of this key.
    #[must_use]
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// Encrypts the secret of `endpoint`. `nonce` must be 24 random bytes and never be used twice.
    ///
    /// # Errors
    /// The secret is too long for the cipher.
    pub fn seal(&self, endpoint: EndpointId, nonce: [u8; 24], secret: &str) -> Result<SealedSecret, String> {
        let payload = Payload { msg: secret.as_bytes(), aad: endpoint.as_bytes() };
        let encrypted = self.cipher.encrypt(&XNonce::from(nonce), payload);
        let encrypted = encrypted.map_err(|_| "the secret cannot be encrypted".to_owned())?;
        let sealed = hex::encode([nonce.as_slice(), &encrypted].concat());
        Ok(SealedSecret { sealed, key: self.fingerprint.clone(), expires_at: None })
    }

    /// Encrypts a secret that another key has encrypted as `former`. The nonce is derived from `former`, so equal nonces
    /// have equal messages.
    pub(crate) fn seal_anew(
        &self,
        endpoint: EndpointId,
        former: &SealedSecret,
        secret: &str,
    ) -> Result<SealedSecret, String> {
        let derived = hash(&self.mac, &[b"rental master key: nonce", endpoint.as_bytes(), former.sealed.as_bytes()]);
        let mut nonce = [0; 24];
        nonce.copy_from_slice(&derived[..24]);
        Ok(SealedSecret { expires_at: former.expires_at, ..self.seal(endpoint, nonce, secret)? })
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
        let secret = self.cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| wrong())?;
        String::from_utf8(secret).map_err(|_| wrong())
    }
}

fn hash(mac: &Hmac<Sha256>, parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = mac.clone();
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// The master keys that a server has, oldest first. There is at least one.
#[derive(Clone)]
pub struct MasterKeys(Vec<MasterKey>);

impl MasterKeys {
    /// These keys, oldest first; `None` if there is none.
    #[must_use]
    pub fn new(keys: Vec<MasterKey>) -> Option<Self> {
        (!keys.is_empty()).then_some(Self(keys))
    }

    /// Reads the text of a file of keys: 64 hexadecimal digits a line, oldest first. `None` if it is anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let key = |line: &str| {
            let mut bytes = [0; 32];
            hex::decode_to_slice(line.trim(), &mut bytes).ok()?;
            Some(MasterKey::new(&bytes))
        };
        text.trim_end().lines().map(key).collect::<Option<Vec<_>>>().and_then(Self::new)
    }

    /// The newest key: with it a new store begins, and to it a rotation changes.
    #[must_use]
    pub fn newest(&self) -> &MasterKey {
        // There is at least one.
        &self.0[self.0.len() - 1]
    }

    /// The key with this name.
    #[must_use]
    pub fn get(&self, name: &Fingerprint) -> Option<&MasterKey> {
        self.0.iter().find(|key| key.fingerprint == *name)
    }

    /// The names of the keys, oldest first.
    #[must_use]
    pub fn fingerprints(&self) -> Vec<&Fingerprint> {
        self.0.iter().map(MasterKey::fingerprint).collect()
    }

    /// These keys, and before them the keys of `others` that are not among them.
    #[must_use]
    pub fn with_older(self, others: &Self) -> Self {
        let older = others.0.iter().filter(|key| self.get(&key.fingerprint).is_none()).cloned();
        Self(older.chain(self.0.iter().cloned()).collect())
    }

    /// Decrypts a secret with the key that it names.
    ///
    /// # Errors
    /// As for [`MasterKey::open`].
    pub fn open(&self, endpoint: EndpointId, secret: &SealedSecret) -> Result<String, String> {
        let name = &secret.key;
        let lacks = || format!("a webhook secret was sealed with master key {name}, which this server does not have");
        self.get(name).ok_or_else(lacks)?.open(endpoint, &secret.sealed)
    }

    /// Decrypts all secrets of an endpoint that these keys open, newest first, each with the time at which it expires.
    ///
    /// # Errors
    /// There is no secret, or the newest one cannot be decrypted. Without it no delivery is sent: a receiver may know no older
    /// one.
    pub fn open_all(&self, endpoint: EndpointId, secrets: &Sealed) -> Result<Vec<(String, Option<Timestamp>)>, String> {
        if secrets.0.is_empty() {
            return Err(format!("webhook_endpoint {endpoint} has no secret; rotate its secret"));
        }
        let mut open = Vec::with_capacity(secrets.0.len());
        for (at, secret) in secrets.0.iter().enumerate() {
            match self.open(endpoint, secret) {
                Ok(text) => open.push((text, secret.expires_at)),
                Err(why) if at == 0 => return Err(why),
                // An old secret that nobody can open signs no more, as if its overlap had ended.
                Err(_) => {}
            }
        }
        Ok(open)
    }
}

/// The encrypted secrets of an endpoint, newest first.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Sealed(pub Vec<SealedSecret>);

impl Sealed {
    /// Adds a new secret. The older ones sign until `overlap_ends`.
    pub fn rotate(&mut self, new: SealedSecret, overlap_ends: Timestamp, now: Timestamp) {
        self.0.retain(|old| old.expires_at.is_none_or(|end| end > now));
        for old in &mut self.0 {
            old.expires_at = Some(old.expires_at.map_or(overlap_ends, |end| end.min(overlap_ends)));
        }
        self.0.retain(|old| old.expires_at.is_none_or(|end| end > now));
        self.0.insert(0, SealedSecret { expires_at: None, ..new });
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

    fn named(sealed: &str) -> SealedSecret {
        SealedSecret { sealed: sealed.into(), key: MasterKey::new(&[7; 32]).fingerprint().clone(), expires_at: None }
    }

    #[test]
    fn a_secret_opens_only_for_its_own_endpoint_under_its_own_key() {
        let (key, endpoint) = (MasterKey::new(&[7; 32]), EndpointId::from_u128(1));
        let SealedSecret { sealed, .. } = key.seal(endpoint, [1; 24], "whsec_abc").unwrap();
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
        secrets.rotate(named("a"), at(0), at(0));
        secrets.rotate(named("b"), at(100), at(10));
        let names =
            |secrets: &Sealed, now| secrets.in_force(now).map(|secret| secret.sealed.clone()).collect::<Vec<_>>();
        assert_eq!(names(&secrets, at(99)), ["b", "a"]);
        assert_eq!(names(&secrets, at(100)), ["b"]);
        secrets.rotate(named("c"), at(20), at(20));
        assert_eq!(names(&secrets, at(20)), ["c"], "no overlap means that the old ones end at once");
    }

    #[test]
    fn there_are_never_more_than_five() {
        let mut secrets = Sealed::default();
        for name in 0..9 {
            secrets.rotate(named(&name.to_string()), at(1000), at(1));
        }
        assert_eq!(secrets.0.len(), MOST_SECRETS);
        assert_eq!(secrets.0[0].sealed, "8");
    }

    #[test]
    fn a_fingerprint_names_the_key_and_does_not_contain_it() {
        let key = MasterKey::new(&[7; 32]);
        assert_eq!(key.fingerprint().to_string().len(), 16);
        assert!(!key.fingerprint().to_string().contains("0707"));
        assert_eq!(key.fingerprint(), MasterKey::new(&[7; 32]).fingerprint());
        assert_ne!(key.fingerprint(), MasterKey::new(&[8; 32]).fingerprint());
    }

    #[test]
    fn a_secret_names_its_key_and_opens_with_no_other() {
        let [old, new] = [7, 8].map(|byte| MasterKey::new(&[byte; 32]));
        let endpoint = EndpointId::from_u128(1);
        let keys = MasterKeys::new(vec![old.clone(), new.clone()]).unwrap();
        let mut sealed = old.seal(endpoint, [1; 24], "whsec_abc").unwrap();
        assert_eq!(&sealed.key, old.fingerprint());
        assert_eq!(keys.open(endpoint, &sealed).as_deref(), Ok("whsec_abc"));
        let alone = MasterKeys::new(vec![new.clone()]).unwrap();
        assert!(alone.open(endpoint, &sealed).is_err_and(|why| why.contains(&sealed.key.to_string())));
        sealed.key = new.fingerprint().clone();
        assert!(keys.open(endpoint, &sealed).is_err());
        assert!(MasterKeys::new(Vec::new()).is_none());
    }

    #[test]
    fn a_file_of_keys_has_one_a_line_and_nothing_else() {
        let line = |byte: u8| hex::encode([byte; 32]);
        let name = |byte: u8| MasterKey::new(&[byte; 32]).fingerprint().clone();
        for end in ["", "\n", "\r\n", "\n\n"] {
            let keys = MasterKeys::parse(&format!("{}\n{}{end}", line(1), line(2))).unwrap();
            assert_eq!(keys.fingerprints(), [&name(1), &name(2)]);
        }
        let half = &line(2)[..40];
        for bad in ["", "\n", "zz", &format!("{}\n{half}", line(1)), &format!("{}\n\n{}", line(1), line(2)), half] {
            assert!(MasterKeys::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn keys_that_were_read_again_keep_their_order_and_lose_none() {
        let [one, two, three] = [1, 2, 3].map(|byte| MasterKey::new(&[byte; 32]));
        let before = MasterKeys::new(vec![one.clone(), two.clone()]).unwrap();
        let now = MasterKeys::new(vec![two, three.clone()]).unwrap().with_older(&before);
        assert_eq!((now.0.len(), now.newest().fingerprint()), (3, three.fingerprint()));
        assert!(now.get(one.fingerprint()).is_some());
    }

    #[test]
    fn an_old_secret_that_nobody_opens_is_left_out_and_the_newest_must_open() {
        let [known, lost] = [7, 8].map(|byte| MasterKey::new(&[byte; 32]));
        let endpoint = EndpointId::from_u128(1);
        let keys = MasterKeys::new(vec![known.clone()]).unwrap();
        let [new, old] = [known.seal(endpoint, [1; 24], "new").unwrap(), lost.seal(endpoint, [2; 24], "old").unwrap()];
        assert_eq!(keys.open_all(endpoint, &Sealed(vec![new.clone(), old.clone()])), Ok(vec![("new".into(), None)]));
        assert!(keys.open_all(endpoint, &Sealed(vec![old, new])).is_err());
        let none = keys.open_all(endpoint, &Sealed::default());
        assert!(none.is_err_and(|why| why.contains("rotate its secret")));
    }

    #[test]
    fn a_secret_that_is_sealed_anew_keeps_its_text_and_its_end_and_never_repeats_a_nonce() {
        let [old, new] = [7, 8].map(|byte| MasterKey::new(&[byte; 32]));
        let endpoint = EndpointId::from_u128(1);
        let former =
            |nonce| SealedSecret { expires_at: Some(at(5)), ..old.seal(endpoint, [nonce; 24], "text").unwrap() };
        let sealed = new.seal_anew(endpoint, &former(1), "text").unwrap();
        assert_eq!(new.open(endpoint, &sealed.sealed).as_deref(), Ok("text"));
        assert_eq!((sealed.expires_at, &sealed.key), (Some(at(5)), new.fingerprint()));
        assert_eq!(sealed, new.seal_anew(endpoint, &former(1), "text").unwrap());
        let other = new.seal_anew(endpoint, &former(2), "text").unwrap();
        assert_ne!(sealed.sealed[..48], other.sealed[..48]);
    }
}
