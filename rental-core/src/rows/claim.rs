//! Claims: rows that only one object can have. The value contains the id of this object.

use super::key;
use crate::{
    error::Error,
    schema::ResourceSpec,
    store::{Key, Record},
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

/// The value of a claim whose object was corrected: the id, the amount that was stated last, and the amounts before it, the
/// latest first and at most [`MOST_FORMER`] of them. An older file states one of these.
#[must_use]
pub(crate) fn stated_value(id: Uuid, stated: Money, before: Option<Money>, former: &[Money]) -> Bytes {
    let former = before.iter().chain(former).filter(|amount| **amount != stated).take(MOST_FORMER);
    let amounts: Vec<String> = std::iter::once(&stated).chain(former).map(Money::to_string).collect();
    [id.as_bytes(), amounts.join(" ").as_bytes()].concat().into()
}

/// Most former amounts in a claim.
pub(crate) const MOST_FORMER: usize = 16;

/// The value of a claim whose object had other amounts before: the id, and the amounts of each former state one after the other,
/// the latest state first, at most [`MOST_FORMER`] states.
#[must_use]
pub(crate) fn states_value(id: Uuid, states: &[Vec<Money>]) -> Bytes {
    let amounts: Vec<String> = states.iter().take(MOST_FORMER).flatten().map(Money::to_string).collect();
    [id.as_bytes(), amounts.join(" ").as_bytes()].concat().into()
}

/// The content of a claim.
pub(crate) struct Stated {
    /// The id of the object.
    pub(crate) id: Uuid,
    /// The amount that was stated last, of an imported object.
    pub(crate) amount: Option<Money>,
    /// The amounts that were stated before.
    pub(crate) former: Vec<Money>,
}

/// Parses the value of a claim: the id and the amount.
///
/// # Errors
/// [`Error::Damaged`]: the value is not one of [`claim_value`] or [`stated_value`].
pub(crate) fn read_claim(claim: &Record) -> Result<(Uuid, Option<Money>), Error> {
    read_stated(claim).map(|stated| (stated.id, stated.amount))
}

/// Parses the value of a claim, with the former amounts.
///
/// # Errors
/// As [`read_claim`].
pub(crate) fn read_stated(claim: &Record) -> Result<Stated, Error> {
    let wrong = || Error::damaged_row(&claim.key, "it holds neither an id nor an amount");
    let (id, amounts) = claim.value.split_at_checked(16).ok_or_else(wrong)?;
    let id = Uuid::from_slice(id).map_err(|_| wrong())?;
    let text = std::str::from_utf8(amounts).map_err(|_| wrong())?;
    let mut amounts = text.split_whitespace().map(|text| Money::parse(text, 4).map_err(|_| wrong()));
    let amount = amounts.next().transpose()?;
    Ok(Stated { id, amount, former: amounts.collect::<Result<_, _>>()? })
}
