//! The descriptions of a resource's indexes, and the values in the key of an index entry.
//!
//! The key of an entry is: organization, tag of the resource, number of the index, values of the fields, id. The number of
//! an index is never reused, so an index contains no entries that an older program wrote for another index.

use super::kind::Kind;
use crate::value::{self, Date, IndexValue, Timestamp, nfc};

/// An index for the filters of a list. An object has one entry in it if all fields of the index are set.
#[derive(Debug)]
pub struct IndexSpec {
    /// The byte after the tag of the resource in the keys of the entries, 1 to 127. A resource never reuses a number, not
    /// even that of a removed index.
    pub number: u8,
    /// The fields that a query compares, in the order of the key.
    pub fields: &'static [&'static str],
    /// The time or date that orders the entries; `None` for the order of creation.
    pub ordered_by: Option<&'static str>,
    /// A field of the index and its words for which objects have an entry; `None` when all objects have one.
    pub only: Option<(&'static str, &'static [&'static str])>,
}

/// An index with this number over these fields, in order of creation.
#[must_use]
pub(crate) const fn index(number: u8, fields: &'static [&'static str]) -> IndexSpec {
    IndexSpec { number, fields, ordered_by: None, only: None }
}

/// An index like [`index`] that contains only the objects in which a field has one of some words.
#[must_use]
pub(crate) const fn sparse_index(
    number: u8,
    fields: &'static [&'static str],
    only: (&'static str, &'static [&'static str]),
) -> IndexSpec {
    IndexSpec { number, fields, ordered_by: None, only: Some(only) }
}

/// An index with this number over all objects that have a value in a time or date field, ordered by it.
#[must_use]
pub(crate) const fn ordered_index(number: u8, ordered_by: &'static str) -> IndexSpec {
    IndexSpec { number, fields: &[], ordered_by: Some(ordered_by), only: None }
}

/// An index that is no filter of a list. The code of the resource computes its entries.
#[derive(Debug)]
pub struct LookUpSpec {
    /// The byte after the tag of the resource in the keys of the entries, 128 to 255. A resource never reuses a number.
    pub number: u8,
    /// The name of the values that it finds objects by.
    pub name: &'static str,
}

/// A look-up with this number and name.
#[must_use]
pub(crate) const fn look_up(number: u8, name: &'static str) -> LookUpSpec {
    LookUpSpec { number, name }
}

impl LookUpSpec {
    /// The prefix of this look-up's entries with these values.
    #[must_use]
    pub(crate) fn of(&self, values: &[&[u8]]) -> IndexPrefix {
        values.iter().fold(IndexPrefix::new(self.number), |prefix, value| prefix.with(value))
    }
}

impl<'a> IndexValue<'a> {
    /// Parses the value of a field of this kind; `None` for an id or time that no object can have.
    #[must_use]
    pub fn parse(kind: Kind, text: &'a str) -> Option<Self> {
        match kind {
            Kind::Reference(_) | Kind::Id => value::id(text).map(Self::Id),
            Kind::Time => Timestamp::parse(text).map(Self::Time),
            Kind::Date => Date::parse(text).map(Self::Date),
            _ => Some(Self::Text(text)),
        }
    }

    fn put_into(self, prefix: IndexPrefix) -> IndexPrefix {
        match self {
            Self::Text(text) => prefix.with(nfc(text).as_bytes()),
            Self::Id(id) => prefix.with(id.as_bytes()),
            Self::Time(time) => prefix.with(&time.millis().to_be_bytes()),
            Self::Date(date) => prefix.with(&u64::from(date.day_number()).to_be_bytes()),
        }
    }
}

/// Bytes of a value in a key: a text of 255 characters of 4 bytes.
const VALUE_BYTES: usize = 255 * 4;

/// The middle of an index entry's key, between the tag of the resource and the id: number of the index and values.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct IndexPrefix(Vec<u8>);

impl IndexPrefix {
    /// The prefix of the index or look-up with this number, without values.
    #[must_use]
    pub fn new(number: u8) -> Self {
        let mut bytes = Vec::with_capacity(1 + 3 * (2 + 16));
        bytes.push(number);
        Self(bytes)
    }

    /// Adds a value, with its length before it so that two values are never confused with one.
    ///
    /// Only its first 1,020 bytes count: some characters are longer in NFC, and an index of PostgreSQL takes keys below 2,700 bytes.
    #[must_use]
    pub fn with(mut self, value: &[u8]) -> Self {
        let value = &value[..value.len().min(VALUE_BYTES)];
        self.0.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        self.0.extend_from_slice(value);
        self
    }

    /// The bytes in the key.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl IndexSpec {
    /// The prefix of this index's entries with these values. `value` returns the value of a field by name; the result is
    /// `None` when a field has no value, or one that the index does not contain.
    pub(crate) fn with<'a>(&self, value: impl Fn(&str) -> Option<IndexValue<'a>>) -> Option<IndexPrefix> {
        if let Some((field, words)) = self.only
            && !matches!(value(field), Some(IndexValue::Text(text)) if words.contains(&text))
        {
            return None;
        }
        let mut fields = self.fields.iter().chain(&self.ordered_by);
        fields.try_fold(IndexPrefix::new(self.number), |prefix, field| Some(value(field)?.put_into(prefix)))
    }

    /// Whether the index has exactly these fields and this order.
    pub(super) fn serves(&self, fields: &[&str], ordered_by: Option<&str>) -> bool {
        let same = self.fields.len() == fields.len() && self.fields.iter().all(|field| fields.contains(field));
        same && self.ordered_by == ordered_by
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_entry_composed_and_decomposed_and_of_bounded_length() {
        let entry = |text: &str| IndexValue::Text(text).put_into(IndexPrefix::new(1));
        assert_eq!(entry("zoë@exämple.com"), entry("zoe\u{308}@exa\u{308}mple.com"));
        assert_ne!(entry("zoë@exämple.com"), entry("ZOË@exämple.com"));
        let longest = "\u{1d160}".repeat(255);
        assert!(nfc(&longest).len() > longest.len(), "three characters each");
        assert!(entry(&longest).as_bytes().len() <= 1 + 2 + VALUE_BYTES);
    }
}
