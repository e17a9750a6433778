//! Ids: UUIDs that name an object of one kind, and their text.
//!
//! [`Id<Kind>`](Id) names an object of a kind that is known when the program is compiled; [`VehicleId`](super::VehicleId) and the
//! other aliases are such types. Where the kind is data (a path's `{id}`, the `tag` of a
//! [`ResourceSpec`](crate::schema::ResourceSpec), a cursor), an id is a plain [`Uuid`]. Only [`Id::from_uuid`] and
//! [`Id::uuid`] lead from one to the other, so no id changes its kind by itself.

use super::{FieldValue, FromField, IndexValue};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{cmp::Ordering, fmt, hash, marker::PhantomData};
use uuid::Uuid;

/// Parses an id: a UUID of 36 characters, in lower case, with hyphens. `None` for any other spelling.
#[must_use]
pub fn id(text: &str) -> Option<Uuid> {
    let plain = text.len() == 36 && !text.bytes().any(|byte| byte.is_ascii_uppercase());
    if plain { Uuid::try_parse(text).ok() } else { None }
}

/// The id of an object of one kind. `K` is one of [`kinds`](super::kinds), or the
/// struct of a resource.
///
/// It is stored and sent as its UUID: 16 bytes in keys, lower-case text with hyphens in JSON. Ids of different kinds are
/// different types, so the compiler refuses a rental's id where a vehicle's id belongs:
///
/// ```compile_fail,E0308
/// use rental_core::value::{RentalId, VehicleId};
///
/// fn calendar_of(vehicle: VehicleId) {}
/// # let uuid = uuid::Uuid::nil();
///
/// calendar_of(RentalId::from_uuid(uuid));
/// ```
///
/// With the id of a vehicle it compiles:
///
/// ```
/// use rental_core::value::{RentalId, VehicleId};
///
/// fn calendar_of(vehicle: VehicleId) {}
/// # let uuid = uuid::Uuid::nil();
///
/// calendar_of(VehicleId::from_uuid(uuid));
/// ```
pub struct Id<K>(Uuid, PhantomData<fn() -> K>);

impl<K> Id<K> {
    /// The id with this UUID. The caller knows that it names an object of this kind.
    #[must_use]
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid, PhantomData)
    }

    /// The id with this number: `0190d0f2-…` is `0x0190_d0f2_…`.
    #[must_use]
    pub const fn from_u128(number: u128) -> Self {
        Self::from_uuid(Uuid::from_u128(number))
    }

    /// The id with these 16 bytes; `None` for any other number of bytes.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        Uuid::from_slice(bytes).ok().map(Self::from_uuid)
    }

    /// The id whose bytes are all 0.
    #[must_use]
    pub const fn nil() -> Self {
        Self::from_uuid(Uuid::nil())
    }

    /// Reads an id as this API writes it; see [`id`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        id(text).map(Self::from_uuid)
    }

    /// Its UUID, without the kind.
    #[must_use]
    pub const fn uuid(self) -> Uuid {
        self.0
    }

    /// Its 16 bytes, as keys have them.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

// By hand: a derived implementation would demand the same of `K`, which has no values.
impl<K> Clone for Id<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Id<K> {}

impl<K> PartialEq for Id<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<K> Eq for Id<K> {}

impl<K> PartialOrd for Id<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Id<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl<K> hash::Hash for Id<K> {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<K> fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl<K> fmt::Display for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl<K> Serialize for Id<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, K> Deserialize<'de> for Id<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Uuid::deserialize(deserializer).map(Self::from_uuid)
    }
}

impl<K> FromField for Id<K> {
    fn from_field(value: &FieldValue) -> Option<Self> {
        Uuid::from_field(value).map(Self::from_uuid)
    }

    fn index_value(&self) -> Option<IndexValue<'_>> {
        Some(IndexValue::Id(self.0))
    }
}

/// The type of an id, for code that knows the type and not its kind: `<VehicleId as IdType>::Kind`.
pub trait IdType {
    /// What the id names.
    type Kind: 'static;
}

impl<K: 'static> IdType for Id<K> {
    type Kind = K;
}

impl<K> FromField for Vec<Id<K>> {
    fn from_field(value: &FieldValue) -> Option<Self> {
        let FieldValue::Texts(texts) = value else { return None };
        texts.iter().map(|text| Id::parse(text)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::VehicleId;
    use proptest::prelude::*;
    use std::hash::{DefaultHasher, Hash, Hasher};

    const TEXT: &str = "0190d0f2-7c3a-7cc0-8000-0000000000ab";

    fn hash(value: impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn an_id_is_read_in_the_one_spelling_that_is_written() {
        assert_eq!(VehicleId::parse(TEXT).unwrap().to_string(), TEXT);
        let spellings = [TEXT.to_uppercase(), TEXT.replace('-', ""), format!("{{{TEXT}}}"), format!("urn:uuid:{TEXT}")];
        for other in spellings.iter().map(String::as_str).chain(["", "x", &TEXT[1..]]) {
            assert_eq!(VehicleId::parse(other), None, "{other}");
        }
        assert_eq!(format!("{:?} {:>37}", VehicleId::nil(), VehicleId::parse(TEXT).unwrap()), {
            format!("00000000-0000-0000-0000-000000000000 {:>37}", Uuid::try_parse(TEXT).unwrap())
        });
    }

    #[test]
    fn an_id_has_the_json_of_its_uuid() {
        let (uuid, id) = (Uuid::try_parse(TEXT).unwrap(), VehicleId::parse(TEXT).unwrap());
        assert_eq!(serde_json::to_string(&id).unwrap(), format!("\"{TEXT}\""));
        assert_eq!(serde_json::to_string(&id).unwrap(), serde_json::to_string(&uuid).unwrap());
        for json in [format!("\"{TEXT}\""), format!("\"{}\"", TEXT.to_uppercase())] {
            assert_eq!(serde_json::from_str::<VehicleId>(&json).unwrap(), id);
        }
        let wrong = ["1", "null", "\"\"", "\"no id\""].map(|json| {
            let (id, uuid) = (serde_json::from_str::<VehicleId>(json), serde_json::from_str::<Uuid>(json));
            (id.unwrap_err().to_string(), uuid.unwrap_err().to_string())
        });
        assert!(wrong.iter().all(|(id, uuid)| id == uuid), "{wrong:?}");
    }

    #[test]
    fn an_id_is_made_of_a_checked_field() {
        let uuid = Uuid::from_u128(7);
        assert_eq!(VehicleId::from_field(&FieldValue::Id(uuid)), Some(VehicleId::from_u128(7)));
        assert_eq!(VehicleId::from_field(&FieldValue::Plain(uuid.to_string())), Some(VehicleId::from_u128(7)));
        assert_eq!(VehicleId::from_field(&FieldValue::Null), None);
    }

    #[test]
    fn sixteen_bytes_are_an_id() {
        let id = VehicleId::from_u128(7);
        assert_eq!(VehicleId::from_slice(id.as_bytes()), Some(id));
        assert_eq!(VehicleId::from_slice(&id.as_bytes()[1..]), None);
        assert_eq!(size_of::<Option<VehicleId>>(), size_of::<Option<Uuid>>());
    }

    proptest! {
        #[test]
        fn ids_compare_and_hash_as_their_uuids(a: u128, b: u128) {
            let (left, right) = (VehicleId::from_u128(a), VehicleId::from_u128(b));
            prop_assert_eq!(left.cmp(&right), left.uuid().cmp(&right.uuid()));
            prop_assert_eq!(left.cmp(&right), left.as_bytes().cmp(right.as_bytes()));
            prop_assert_eq!(left == right, a == b);
            prop_assert_eq!(hash(left), hash(left.uuid()));
        }
    }
}
