//! Authentication: API keys, scopes and plans.
//!
//! The organization of a request comes from its key only. The store contains only the SHA-256 of a key. A key has 256 random
//! bits, so a slow hash would add no protection (OWASP ASVS 5.0, 6.5.2).

use crate::{
    error::{Error, KeyProblem},
    resources::{
        Resource,
        api_key::{ApiKey, Scope},
        organization::{Organization, Plan, SYSTEM},
        parse,
    },
    rows::key,
    store::{Revision, Store, get_one},
    value::{ApiKeyId, Id, Timestamp},
};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// The prefix of every key. People and secret scanners recognize a key by it.
pub const KEY_PREFIX: &str = "rk_live_";
const RANDOM_DIGITS: usize = 43;
const CHECKSUM_DIGITS: usize = 6;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The text of a key: `rk_live_`, 32 random bytes in base 62, and the CRC-32 of both in base 62.
#[must_use]
pub fn key_text(random: &[u8; 32]) -> String {
    let mut text = String::from(KEY_PREFIX);
    push_base62(&mut text, random, RANDOM_DIGITS);
    let checksum = checksum_digits(&text);
    text.extend(checksum.map(char::from));
    text
}

/// The SHA-256 of a presented key; `None` for text that is no key, which then needs no look-up.
#[must_use]
pub fn key_hash(presented: &str) -> Option<[u8; 32]> {
    let digits = presented.strip_prefix(KEY_PREFIX)?;
    if digits.len() != RANDOM_DIGITS + CHECKSUM_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let (body, checksum) = presented.split_at(presented.len() - CHECKSUM_DIGITS);
    (checksum_digits(body) == checksum.as_bytes()).then(|| Sha256::digest(presented.as_bytes()).into())
}

/// The value of the row [`crate::rows::key::access`]: the whole hash, then the id of the key's record.
#[must_use]
pub fn entry(hash: &[u8; 32], id: ApiKeyId) -> Bytes {
    [hash.as_slice(), id.as_bytes()].concat().into()
}

/// The id of the key's record in the value of [`entry`], if the value has this hash. Compares in constant time.
#[must_use]
pub fn open_entry(stored: &[u8], hash: &[u8; 32]) -> Option<ApiKeyId> {
    let (whole, id) = stored.split_at_checked(32)?;
    if bool::from(whole.ct_eq(hash)) { ApiKeyId::from_slice(id) } else { None }
}

/// Finds the record of the key with this hash, and its organization, even when the key is revoked or expired. Returns them
/// with their revisions.
///
/// # Errors
/// The store is not available.
pub async fn look_up(store: &dyn Store, hash: &[u8; 32]) -> Result<Option<(Principal, [Revision; 2])>, Error> {
    let Some(entry) = get_one(store, &key::access(hash)).await? else { return Ok(None) };
    let Some(id) = open_entry(&entry.value, hash) else { return Ok(None) };
    let Some((key, of_key)) = load::<ApiKey>(store, id).await? else { return Ok(None) };
    let Some((organization, of_organization)) = load::<Organization>(store, key.organization_id).await? else {
        return Ok(None);
    };
    Ok(Some((Principal { key, organization: Arc::new(organization) }, [of_key, of_organization])))
}

/// Reads one of the operator's objects.
async fn load<T: Resource>(store: &dyn Store, id: Id<T::Kind>) -> Result<Option<(T, Revision)>, Error> {
    let record = get_one(store, &T::key(SYSTEM, id)).await?;
    record.map(|record| Ok((parse(&record.key, &record.value)?, record.revision))).transpose()
}

/// The CRC-32 of a key's text before its checksum, in base 62.
fn checksum_digits(body: &str) -> [u8; CHECKSUM_DIGITS] {
    let mut rest = crc32fast::hash(body.as_bytes());
    let mut digits = [b'0'; CHECKSUM_DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[(rest % 62) as usize];
        rest /= 62;
    }
    digits
}

/// Long division by 62, most significant digit first, padded to `width`.
fn push_base62(text: &mut String, bytes: &[u8], width: usize) {
    let mut number = bytes.to_vec();
    let mut digits = vec![b'0'; width];
    for digit in digits.iter_mut().rev() {
        let mut rest = 0u32;
        for byte in &mut number {
            let value = rest * 256 + u32::from(*byte);
            *byte = (value / 62) as u8;
            rest = value % 62;
        }
        *digit = BASE62[rest as usize];
    }
    text.extend(digits.into_iter().map(char::from));
}

/// The token of an `Authorization` header: `Bearer TOKEN`, the scheme in any case (RFC 9110, 11.1).
#[must_use]
pub fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    let token = token.trim_matches(' ');
    let fine =
        scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    fine.then_some(token)
}

/// An authenticated caller: an API key and its organization.
#[derive(Clone, Debug)]
pub struct Principal {
    /// The record of the API key.
    pub key: ApiKey,
    /// The organization that owns the key.
    pub organization: Arc<Organization>,
}

/// The kind of access that a request needs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    /// Read objects: both scopes allow it.
    Read,
    /// Create and change objects: the scope must be [`Scope::ReadWrite`].
    Write,
}

impl Principal {
    /// Checks that this key allows `access` at `now`, in the order of `docs/decisions.md`, "Errors".
    ///
    /// # Errors
    /// [`Error::Unauthenticated`] for a revoked or expired key, else [`Error::PlanRequired`], else [`Error::ScopeRequired`].
    pub fn authorize(&self, access: Access, now: Timestamp) -> Result<(), Error> {
        if self.key.revoked_at.is_some() {
            return Err(Error::Unauthenticated(KeyProblem::Revoked));
        }
        if self.key.expires_at.is_some_and(|expiry| expiry <= now) {
            return Err(Error::Unauthenticated(KeyProblem::Expired));
        }
        if self.organization.plan != Plan::Pro {
            return Err(Error::PlanRequired);
        }
        if access == Access::Write && self.key.scope != Scope::ReadWrite {
            return Err(Error::ScopeRequired);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_scheme_is_bearer_in_any_case_and_the_token_is_one_word() {
        assert_eq!(bearer("Bearer abc"), Some("abc"));
        assert_eq!(bearer("bearer   abc"), Some("abc"));
        for bad in ["", "abc", "Basic abc", "Bearer", "Bearer ", "Bearer a b", "Bearer a\tb", "Bearerabc"] {
            assert_eq!(bearer(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn junk_costs_no_lookup() {
        let key = key_text(&[7; 32]);
        assert!(key_hash(&key).is_some());
        assert_eq!(key.len(), 57);
        for bad in ["", "rk_live_", "sk_live_abc", &key[..56], &format!("{key}0"), &key.to_lowercase()] {
            assert_eq!(key_hash(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn one_changed_character_breaks_the_checksum(random: [u8; 32], at in 8usize..57, to in 0usize..62) {
            let key = key_text(&random);
            let mut bytes = key.clone().into_bytes();
            bytes[at] = BASE62[to];
            let changed = String::from_utf8(bytes).unwrap();
            prop_assert_eq!(key_hash(&changed).is_some(), changed == key);
        }

        #[test]
        fn different_keys_have_different_texts(a: [u8; 32], b: [u8; 32]) {
            prop_assert_eq!(key_text(&a) == key_text(&b), a == b);
        }
    }
}
