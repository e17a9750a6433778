//! Claims: rows that only one object can have, with the id of that object.

use super::key;
use crate::{
    error::Error,
    schema::ResourceSpec,
    store::Key,
    value::{Money, OrganizationId},
};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The key under which the one object with this identity is known.
#[must_use]
pub fn identity_key(organization: OrganizationId, spec: &ResourceSpec, identity: &str) -> Key {
    let hash: [u8; 32] = Sha256::digest(identity.as_bytes()).into();
    key::identity(organization, spec, &hash)
}

/// The value of a claim: the id of who has it and, for what has one, the amount that came with it.
#[must_use]
pub fn claim_value(id: Uuid, amount: Option<Money>) -> Bytes {
    let mut value = id.as_bytes().to_vec();
    value.extend(amount.map(|amount| amount.to_string()).unwrap_or_default().into_bytes());
    value.into()
}

/// The id and the amount in a claim.
///
/// # Errors
/// The store holds something else there.
pub fn read_claim(value: &[u8]) -> Result<(Uuid, Option<Money>), Error> {
    let wrong = || Error::Internal("a claim holds neither an id nor an amount".into());
    let (id, amount) = value.split_at_checked(16).ok_or_else(wrong)?;
    let id = Uuid::from_slice(id).map_err(|_| wrong())?;
    let text = std::str::from_utf8(amount).map_err(|_| wrong())?;
    let amount = if text.is_empty() { None } else { Some(Money::parse(text, 4).map_err(|_| wrong())?) };
    Ok((id, amount))
}
