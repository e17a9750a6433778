//! The calendar feeds of vehicles: their tokens, and the values of their rows. `operations/vehicle_feed.rs` makes and reads
//! them.
//!
//! A token names its vehicle and has 192 random bits. The store has its SHA-256 only, so nobody can read a token from it.

use crate::{
    error::Error,
    store::Record,
    value::{OrganizationId, Timestamp, VehicleId},
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Random bytes of a token.
const RANDOM: usize = 24;
/// Bytes of a token: the ids of the organization and of the vehicle, and the random ones.
const BYTES: usize = 16 + 16 + RANDOM;

/// A token that was presented. Whether it is the one of its vehicle, [`VehicleFeed::is_of`] says.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// The organization that owns the vehicle.
    pub organization: OrganizationId,
    /// The vehicle.
    pub vehicle: VehicleId,
    hash: [u8; 32],
}

impl Token {
    /// Makes the token of a vehicle's feed. Returns its text too, which is a secret: only the response to its maker shows it.
    #[must_use]
    pub fn new(organization: OrganizationId, vehicle: VehicleId, random: &[u8; 32]) -> (Self, String) {
        let text = hex::encode([&organization.as_bytes()[..], vehicle.as_bytes(), &random[..RANDOM]].concat());
        (Self { organization, vehicle, hash: hash(&text) }, text)
    }

    /// Parses a token; `None` for any other text, which then needs no look-up.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; BYTES];
        // A token has one spelling: each has one hash.
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) || hex::decode_to_slice(text, &mut bytes).is_err() {
            return None;
        }
        let (organization, rest) = bytes.split_first_chunk::<16>()?;
        let (vehicle, _) = rest.split_first_chunk::<16>()?;
        let (organization, vehicle) = (OrganizationId::from_slice(organization)?, VehicleId::from_slice(vehicle)?);
        Some(Self { organization, vehicle, hash: hash(text) })
    }
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// The value of the row of a vehicle's feed.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct VehicleFeed {
    /// The SHA-256 of its token, in hex.
    hash: String,
    /// When the token was made.
    pub created_at: Timestamp,
}

impl VehicleFeed {
    /// The feed with this token.
    #[must_use]
    pub fn new(token: &Token, created_at: Timestamp) -> Self {
        Self { hash: hex::encode(token.hash), created_at }
    }

    /// The bytes of the row.
    #[must_use]
    pub fn value(&self) -> Bytes {
        format!("{{\"hash\":\"{}\",\"created_at\":\"{}\"}}", self.hash, self.created_at).into()
    }

    /// Parses a row.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the value is not one of [`VehicleFeed::value`].
    pub fn read(row: &Record) -> Result<Self, Error> {
        crate::value::read_json(&row.value).map_err(|error| Error::damaged(&row.key, &error))
    }

    /// Whether this is the token of the feed. Compares in constant time.
    #[must_use]
    pub fn is_of(&self, token: &Token) -> bool {
        self.hash.as_bytes().ct_eq(hex::encode(token.hash).as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Key;

    #[test]
    fn a_token_names_its_vehicle_and_opens_only_its_own_feed() {
        let (organization, vehicle) = (OrganizationId::from_u128(7), VehicleId::from_u128(8));
        let (token, text) = Token::new(organization, vehicle, &[0xab; 32]);
        let (other, _) = Token::new(organization, vehicle, &[10; 32]);
        let read = Token::parse(&text).unwrap();
        assert_eq!((read.organization, read.vehicle, text.len()), (organization, vehicle, 112));
        let feed = VehicleFeed::new(&token, Timestamp::from_millis(5));
        assert!(feed.is_of(&read) && !feed.is_of(&other));
        for bad in
            ["", "00", &text[1..], &text[..111], &format!("{text}00"), &text.to_uppercase(), &text.replace('b', "g")]
        {
            assert!(Token::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_row_has_the_hash_and_not_the_token() {
        let (token, text) = Token::new(OrganizationId::from_u128(7), VehicleId::from_u128(8), &[9; 32]);
        let feed = VehicleFeed::new(&token, Timestamp::from_millis(5));
        let value = feed.value();
        assert!(!std::str::from_utf8(&value).unwrap().contains(&text[64..]));
        assert_eq!(value, serde_json::to_vec(&feed).unwrap());
        let row = Record { key: Key::from_bytes(b"f"), revision: 1, value };
        assert_eq!(VehicleFeed::read(&row), Ok(feed));
        assert!(VehicleFeed::read(&Record { value: "{}".into(), ..row }).is_err());
    }
}
