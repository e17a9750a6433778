//! Claims: rows that only one object can have. The value contains the id of this object.

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

/// The key of the claim of an identity, which is hashed.
#[must_use]
pub(crate) fn identity_key(organization: OrganizationId, spec: &ResourceSpec, identity: &str) -> Key {
    let hash: [u8; 32] = Sha256::digest(identity.as_bytes()).into();
    key::identity(organization, spec, &hash)
}

/// The value of a claim: the id of the object that has it, and the stated amount of an imported object.
#[must_use]
pub(crate) fn claim_value(id: Uuid, amount: Option<Money>) -> Bytes {
    let mut value = id.as_bytes().to_vec();
    value.extend(amount.map(|amount| amount.to_string()).unwrap_or_default().into_bytes());
    value.into()
}

/// Parses the value of a claim: the id and the amount.
///
/// # Errors
/// [`Error::Internal`]: the value is not one of [`claim_value`].
pub(crate) fn read_claim(value: &[u8]) -> Result<(Uuid, Option<Money>), Error> {
    let wrong = || Error::Internal("a claim holds neither an id nor an amount".into());
    let (id, amount) = value.split_at_checked(16).ok_or_else(wrong)?;
    let id = Uuid::from_slice(id).map_err(|_| wrong())?;
    let text = std::str::from_utf8(amount).map_err(|_| wrong())?;
    let amount = if text.is_empty() { None } else { Some(Money::parse(text, 4).map_err(|_| wrong())?) };
    Ok((id, amount))
}
