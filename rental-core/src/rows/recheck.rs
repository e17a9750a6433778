//! Marks of vehicles and numbers whose tolls and violations must be derived again, because something that they rest on has
//! changed.
//!
//! The revision of a mark is random when the mark is made, so a mark that was removed and made again is never confused with
//! the former one.

use super::Tag;
use crate::{
    error::Error,
    schema::IndexPrefix,
    store::{Batch, Key, Prior, Record, Revision, Write},
    value::VehicleId,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

/// What decides about tolls and violations and is marked when it changes: a vehicle with its rentals, or a transponder or plate
/// with the vehicles that have and had it. In keys it has 16 bytes: the id of the vehicle, or a hash of the number as a UUID of
/// version 8, which no id of a vehicle has.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Marked(Uuid);

impl Marked {
    /// The version of a UUID whose bytes a program chose (RFC 9562, 5.8).
    const CUSTOM: usize = 8;

    /// The rentals of a vehicle.
    #[must_use]
    pub fn vehicle(vehicle: VehicleId) -> Self {
        Self(vehicle.uuid())
    }

    /// The vehicles of a transponder or plate. `name` is its prefix in the look-ups of vehicles.
    #[must_use]
    pub fn number(name: &IndexPrefix) -> Self {
        let hash: [u8; 32] = Sha256::digest(name.as_bytes()).into();
        let half = hash.first_chunk().copied().unwrap_or_default();
        Self(Builder::from_custom_bytes(half).into_uuid())
    }

    /// What has these 16 bytes in a key.
    #[must_use]
    pub fn of_key(bytes: Uuid) -> Self {
        Self(bytes)
    }

    /// The vehicle, if it is no transponder or plate.
    #[must_use]
    pub fn as_vehicle(self) -> Option<VehicleId> {
        (self.0.get_version_num() != Self::CUSTOM).then(|| VehicleId::from_uuid(self.0))
    }

    /// Its bytes in keys.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

/// The value of a mark.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Recheck {
    /// Attachments on this day and later ones, as a day number, are derived again.
    pub from: u32,
    /// The key of the last index entry that was handled, in hex; `None` at the beginning.
    pub after: Option<String>,
}

impl Recheck {
    /// A mark for the attachments of all days.
    #[must_use]
    pub fn of_all() -> Self {
        Self::default()
    }

    /// A mark for the attachments on this day and later ones.
    #[must_use]
    pub fn from(day: u32) -> Self {
        Self { from: day, after: None }
    }

    /// The bytes of the row.
    #[must_use]
    pub fn value(&self) -> Bytes {
        let after = self.after.as_ref().map_or_else(|| "null".to_owned(), |key| format!("\"{key}\""));
        format!("{{\"from\":{},\"after\":{after}}}", self.from).into()
    }

    /// Parses a mark.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the value is not one of [`Recheck::value`].
    pub fn read(row: &Record) -> Result<Self, Error> {
        crate::value::read_json(&row.value).map_err(|error| Error::damaged(&row.key, &error))
    }
}

/// Adds a mark with this revision to a batch. If the batch has the mark already, the earlier day counts.
pub(crate) fn put(batch: &mut Batch, key: Key, revision: Revision, value: Bytes) {
    let same = |write: &&mut Write| matches!(write, Write::Put(known, ..) if *known == key);
    let Some(Write::Put(_, _, present, _)) = batch.writes.iter_mut().find(same) else {
        batch.writes.push(Write::Put(key, revision, value, Prior::Any));
        return;
    };
    let from = |value: &Bytes| crate::value::read_json::<Recheck>(value).map_or(0, |mark| mark.from);
    *present = Recheck::from(from(present).min(from(&value))).value();
}

/// Adds all checks and writes of a batch to another one. Marks of the same vehicle or number become one mark.
pub fn absorb(into: &mut Batch, other: Batch) {
    into.checks.extend(other.checks);
    for write in other.writes {
        match write {
            Write::Put(key, revision, value, _) if key.as_bytes().first() == Some(&(Tag::Recheck as u8)) => {
                put(into, key, revision, value);
            }
            write => into.writes.push(write),
        }
    }
}
