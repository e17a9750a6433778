//! The indexes of a resource, as data, and the values in the key of an index entry.
//!
//! The key of an entry is: organization, tag of the resource, number of the index, the values of its fields, id. Numbers
//! are written down here and never reused, so an index never contains entries that an older program wrote for another one.

use super::kind::Kind;
use crate::value::{self, Timestamp};
use uuid::Uuid;

/// One index behind the filters of a list: every object whose fields are all set has one entry in it.
#[derive(Debug)]
pub struct IndexSpec {
    /// The byte behind the tag of the resource in the keys of the entries, 1 to 127. Never reused in this resource, also
    /// not after the index is gone.
    pub number: u8,
    /// The fields that it compares exactly, in the order of the key.
    pub fields: &'static [&'static str],
    /// The time field by which its entries are ordered, before the id; without one they are in order of creation.
    pub ordered_by: Option<&'static str>,
}

/// An index with this number over these fields, its entries in order of creation.
#[must_use]
pub const fn index(number: u8, fields: &'static [&'static str]) -> IndexSpec {
    IndexSpec { number, fields, ordered_by: None }
}

/// An index with this number over all objects, its entries ordered by a time field.
#[must_use]
pub const fn ordered_index(number: u8, ordered_by: &'static str) -> IndexSpec {
    IndexSpec { number, fields: &[], ordered_by: Some(ordered_by) }
}

/// A way to find objects by values that are no filter of their list. The resource itself makes its entries.
#[derive(Debug)]
pub struct LookUpSpec {
    /// The byte behind the tag of the resource in the keys of the entries, 128 to 255. Never reused in this resource.
    pub number: u8,
    /// What the objects are found by.
    pub name: &'static str,
}

/// A look-up with this number.
#[must_use]
pub const fn look_up(number: u8, name: &'static str) -> LookUpSpec {
    LookUpSpec { number, name }
}

impl LookUpSpec {
    /// The entries of this look-up with these values.
    #[must_use]
    pub fn of(&self, values: &[&[u8]]) -> IndexPrefix {
        values.iter().fold(IndexPrefix::new(self.number), |prefix, value| prefix.with(value))
    }
}

/// The value of a field, as an index entry has it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum IndexValue<'a> {
    /// Text, byte by byte.
    Text(&'a str),
    /// An id: its 16 bytes.
    Id(Uuid),
    /// A time: its milliseconds as 8 bytes, so that byte order is the order of time.
    Time(Timestamp),
}

impl<'a> IndexValue<'a> {
    /// The value of a field of this kind from its text; `None` for an id or time that no object can have.
    #[must_use]
    pub fn parse(kind: Kind, text: &'a str) -> Option<Self> {
        match kind {
            Kind::Reference(_) | Kind::Id => value::id(text).map(Self::Id),
            Kind::Time => Timestamp::parse(text).map(Self::Time),
            _ => Some(Self::Text(text)),
        }
    }

    fn put_into(self, prefix: IndexPrefix) -> IndexPrefix {
        match self {
            Self::Text(text) => prefix.with(text.as_bytes()),
            Self::Id(id) => prefix.with(id.as_bytes()),
            Self::Time(time) => prefix.with(&time.millis().to_be_bytes()),
        }
    }
}

/// What the key of an index entry says between the tag of the resource and the id: the number of the index and the values.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IndexPrefix(Vec<u8>);

impl IndexPrefix {
    /// Of the index or look-up with this number, without values.
    #[must_use]
    pub fn new(number: u8) -> Self {
        let mut bytes = Vec::with_capacity(1 + 3 * (2 + 16));
        bytes.push(number);
        Self(bytes)
    }

    /// With one more value. Its length stands before it, so that values cannot run into each other.
    #[must_use]
    pub fn with(mut self, value: &[u8]) -> Self {
        // Every value is bounded far below 64 KiB: the longest is an e-mail address of 254 bytes.
        self.0.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        self.0.extend_from_slice(value);
        self
    }

    /// The number of the index and the values, as they stand in the key.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl IndexSpec {
    /// The entries of this index in which the fields have these values; `None` when one of them has none.
    pub fn with<'a>(&self, value: impl Fn(&str) -> Option<IndexValue<'a>>) -> Option<IndexPrefix> {
        let mut fields = self.fields.iter().chain(&self.ordered_by);
        fields.try_fold(IndexPrefix::new(self.number), |prefix, field| Some(value(field)?.put_into(prefix)))
    }

    /// Whether it compares exactly these fields and has this order.
    pub(super) fn serves(&self, fields: &[&str], ordered_by: Option<&str>) -> bool {
        let same = self.fields.len() == fields.len() && self.fields.iter().all(|field| fields.contains(field));
        same && self.ordered_by == ordered_by
    }
}
