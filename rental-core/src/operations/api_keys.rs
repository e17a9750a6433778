//! Authentication: API keys with their scopes and plans, and tokens of operators.
//!
//! The organization of a request comes from its key only. The store contains only the SHA-256 of a key or token. Both have
//! 256 random bits, so a slow hash would add no protection (OWASP ASVS 5.0, 6.5.2).

use crate::{
    error::{Error, KeyProblem},
    resources::{
        Resource,
        api_key::{ApiKey, Scope},
        operator::Operator,
        organization::{Organization, Plan, SYSTEM},
        parse,
    },
    rows::key,
    store::{Revision, Store, get_one},
    value::{ApiKeyId, Id, OperatorId, Text, Timestamp},
};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// The prefix of every API key. People and secret scanners recognize a key by it.
pub const KEY_PREFIX: &str = "rk_live_";
/// The prefix of every operator's token.
pub const OPERATOR_PREFIX: &str = "op_live_";
const RANDOM_DIGITS: usize = 43;
const CHECKSUM_DIGITS: usize = 6;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The text of a key: `rk_live_`, 32 random bytes in base 62, and the CRC-32 of both in base 62.
#[must_use]
pub fn key_text(random: &[u8; 32]) -> String {
    text(KEY_PREFIX, random)
}

/// The text of an operator's token: like that of a key, with the prefix `op_live_`.
#[must_use]
pub fn operator_token(random: &[u8; 32]) -> String {
    text(OPERATOR_PREFIX, random)
}

fn text(prefix: &str, random: &[u8; 32]) -> String {
    let mut text = String::from(prefix);
    push_base62(&mut text, random, RANDOM_DIGITS);
    let checksum = checksum_digits(&text);
    text.extend(checksum.map(char::from));
    text
}

/// The SHA-256 of a presented key; `None` for text that is no key, which then needs no look-up.
#[must_use]
pub fn key_hash(presented: &str) -> Option<[u8; 32]> {
    hash(KEY_PREFIX, presented)
}

/// The SHA-256 of a presented operator's token; `None` for text that is no such token.
#[must_use]
pub fn operator_hash(presented: &str) -> Option<[u8; 32]> {
    hash(OPERATOR_PREFIX, presented)
}

fn hash(prefix: &str, presented: &str) -> Option<[u8; 32]> {
    let digits = presented.strip_prefix(prefix)?;
    if digits.len() != RANDOM_DIGITS + CHECKSUM_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let (body, checksum) = presented.split_at(presented.len() - CHECKSUM_DIGITS);
    (checksum_digits(body) == checksum.as_bytes()).then(|| Sha256::digest(presented.as_bytes()).into())
}

/// The beginning and the end of a key or token, to tell them apart.
#[must_use]
pub fn hint(text: &str) -> Text {
    let (start, end) = (text.get(..KEY_PREFIX.len()), text.get(text.len().saturating_sub(4)..));
    Text::fit(&format!("{}…{}", start.unwrap_or_default(), end.unwrap_or_default()), 255)
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

/// The value of the row [`crate::rows::key::access`] of an operator's token: the whole hash, the id of the operator's
/// record, and how often the token had been rotated when this one was made.
#[must_use]
pub fn operator_entry(hash: &[u8; 32], id: OperatorId, rotation: u32) -> Bytes {
    [hash.as_slice(), id.as_bytes(), &rotation.to_be_bytes()].concat().into()
}

/// The id and the rotation in the value of [`operator_entry`], if the value has this hash. Compares in constant time.
#[must_use]
pub fn open_operator_entry(stored: &[u8], hash: &[u8; 32]) -> Option<(OperatorId, u32)> {
    let (whole, rest) = stored.split_at_checked(32)?;
    let (id, rotation) = rest.split_at_checked(16)?;
    let entry = (OperatorId::from_slice(id)?, u32::from_be_bytes(rotation.try_into().ok()?));
    bool::from(whole.ct_eq(hash)).then_some(entry)
}

/// Checks at `now` that an operator's token works, which was made by this rotation.
///
/// # Errors
/// Why it does not: the operator was revoked, or the operator or the token has expired.
pub fn admit(operator: &Operator, rotation: u32, now: Timestamp) -> Result<(), KeyProblem> {
    if operator.revoked_at.is_some() {
        return Err(KeyProblem::Revoked);
    }
    let before = operator.rotations.checked_sub(1) == Some(rotation);
    let overlaps = before && operator.previous_token_expires_at.is_some_and(|end| now < end);
    if operator.has_ended(now) || !(rotation == operator.rotations || overlaps) {
        return Err(KeyProblem::Expired);
    }
    Ok(())
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

    #[test]
    fn an_operators_token_is_no_key_and_a_key_is_no_operators_token() {
        let (key, token) = (key_text(&[7; 32]), operator_token(&[7; 32]));
        assert!(operator_hash(&token).is_some() && key_hash(&key).is_some());
        assert_eq!((key_hash(&token), operator_hash(&key)), (None, None));
        assert_eq!(hint(&token).as_str(), format!("op_live_…{}", &token[53..]));
    }

    #[test]
    fn an_entry_of_an_operator_is_none_of_a_key() {
        let (hash, id) = ([3; 32], OperatorId::from_u128(9));
        let entry = operator_entry(&hash, id, 2);
        assert_eq!(open_operator_entry(&entry, &hash), Some((id, 2)));
        assert_eq!(open_operator_entry(&entry, &[4; 32]), None);
        assert_eq!(open_entry(&entry, &hash), None);
        assert_eq!(open_operator_entry(&super::entry(&hash, ApiKeyId::from_u128(9)), &hash), None);
    }

    #[test]
    fn the_token_before_the_last_rotation_works_until_the_overlap_ends_and_earlier_ones_do_not() {
        let at = Timestamp::from_millis;
        let json = r#"{"id":"0190d0f2-7c3a-7cc0-8000-000000000014","object":"operator","name":"Ada","role":"owner","hint":"h","rotations":0,
            "previous_token_expires_at":null,"expires_at":null,"revoked_at":null,"last_used_at":null,
            "created_at":"2026-05-05T09:30:00.000Z","updated_at":"2026-05-05T09:30:00.000Z"}"#;
        let mut ada: Operator = serde_json::from_str(json).unwrap();
        assert_eq!(admit(&ada, 0, at(1)), Ok(()));
        ada.rotate(Text::fit("h", 9), at(100), at(1));
        assert_eq!([0, 1].map(|rotation| admit(&ada, rotation, at(99))), [Ok(()), Ok(())]);
        assert_eq!([0, 1].map(|rotation| admit(&ada, rotation, at(100))), [Err(KeyProblem::Expired), Ok(())]);
        ada.rotate(Text::fit("h", 9), at(100), at(2));
        let found = [0, 1, 2, 3].map(|rotation| admit(&ada, rotation, at(3)));
        assert_eq!(found, [Err(KeyProblem::Expired), Ok(()), Ok(()), Err(KeyProblem::Expired)]);
        ada.expires_at = Some(at(50));
        assert_eq!(admit(&ada, 2, at(50)), Err(KeyProblem::Expired));
        ada.revoked_at = Some(at(10));
        assert_eq!([1, 2].map(|rotation| admit(&ada, rotation, at(11))), [Err(KeyProblem::Revoked); 2]);
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
