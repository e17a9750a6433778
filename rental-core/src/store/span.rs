//! Keys and ranges of keys. To the store a key is bytes; `crate::rows` defines their meaning.

use uuid::Uuid;

/// A key of the store, compared byte by byte.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Key(Vec<u8>);

impl From<Vec<u8>> for Key {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl Key {
    /// The key with these bytes, for engines and for tests.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// The bytes of the key.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// This key followed by more bytes.
    #[must_use]
    pub(crate) fn followed_by(&self, bytes: &[u8]) -> Self {
        let mut all = Vec::with_capacity(self.0.len() + bytes.len());
        all.extend_from_slice(&self.0);
        all.extend_from_slice(bytes);
        Self(all)
    }

    /// The first key after this one.
    #[must_use]
    pub fn next(&self) -> Self {
        self.followed_by(&[0])
    }

    /// The last 16 bytes of the key as an id: that of a record or an index entry. `None` for shorter keys.
    #[must_use]
    pub fn id(&self) -> Option<Uuid> {
        let at = self.0.len().checked_sub(16)?;
        Uuid::from_slice(&self.0[at..]).ok()
    }
}

/// The direction in which a span is read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Order {
    /// By rising key: oldest first where the key ends in an id.
    Ascending,
    /// By falling key: newest first.
    Descending,
}

/// How a scan finds the records of index entries.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Follow {
    /// The record's key is this prefix, followed by the last 16 bytes of the entry's key.
    pub prefix: Key,
}

impl Follow {
    /// The key of the record that belongs to an entry; `None` when the key of the entry has less than 16 bytes.
    #[must_use]
    pub fn target(&self, entry: &[u8]) -> Option<Key> {
        let id = entry.last_chunk::<16>()?;
        Some(self.prefix.followed_by(id))
    }
}

/// A range of keys, from inclusive to exclusive.
#[derive(Clone, Debug)]
pub struct Span {
    /// The first key of the range.
    pub from: Key,
    /// The first key after the range.
    pub to: Key,
    /// The direction in which the range is read.
    pub order: Order,
    /// When set, the rows of the span are index entries and the scan returns their records instead.
    pub follow: Option<Follow>,
}

impl Span {
    /// All keys that begin with `prefix`, in descending order.
    #[must_use]
    pub fn newest_first(prefix: &Key) -> Self {
        Self { from: prefix.clone(), to: after(prefix), order: Order::Descending, follow: None }
    }

    /// Returns the records of the index entries instead of the entries. `prefix` is that of the records' keys.
    #[must_use]
    pub fn following(mut self, prefix: Key) -> Self {
        self.follow = Some(Follow { prefix });
        self
    }

    /// All keys that begin with `prefix`, in ascending order.
    #[must_use]
    pub fn under(prefix: Key) -> Self {
        Self { to: after(&prefix), from: prefix, order: Order::Ascending, follow: None }
    }

    /// All keys of the store, in ascending order.
    #[must_use]
    pub fn everything() -> Self {
        Self { from: Key(Vec::new()), to: Key(vec![u8::MAX; 64]), order: Order::Ascending, follow: None }
    }

    /// Keeps only keys of `prefix` followed by an id less than `id`.
    #[must_use]
    pub fn before_id(mut self, prefix: &Key, id: Uuid) -> Self {
        self.to = self.to.min(prefix.followed_by(id.as_bytes()));
        self
    }

    /// Keeps only keys of `prefix` followed by an id created at `millis` (since the epoch) or later.
    #[must_use]
    pub fn created_from(mut self, prefix: &Key, millis: u64) -> Self {
        self.from = self.from.max(at_millis(prefix, millis));
        self
    }

    /// Keeps only keys of `prefix` followed by an id created before `millis` (since the epoch).
    #[must_use]
    pub fn created_before(mut self, prefix: &Key, millis: u64) -> Self {
        self.to = self.to.min(at_millis(prefix, millis));
        self
    }

    /// Whether the range contains no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.from >= self.to
    }
}

/// The least key of `prefix` with an id created at `millis`: a UUIDv7 begins with 48 bits of milliseconds (RFC 9562, 5.7).
fn at_millis(prefix: &Key, millis: u64) -> Key {
    prefix.followed_by(&millis.to_be_bytes()[2..])
}

/// The first key after all keys that begin with `prefix`.
#[must_use]
pub fn after(prefix: &Key) -> Key {
    let mut bytes = prefix.0.clone();
    while bytes.pop_if(|last| *last == u8::MAX).is_some() {}
    match bytes.last_mut() {
        Some(last) => *last += 1,
        // No tag of a row is 0xff, so no key of the store follows this one.
        None => bytes = vec![u8::MAX; 64],
    }
    Key(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_followed_entry_leads_to_its_prefix_and_last_16_bytes() {
        let follow = Follow { prefix: Key::from_bytes(b"to") };
        let entry = [b"entry".as_slice(), &[7; 16]].concat();
        assert_eq!(follow.target(&entry), Some(Key::from_bytes(&[b"to".as_slice(), &[7; 16]].concat())));
        assert_eq!(follow.target(&[7; 15]), None, "too short for an id");
    }

    proptest! {
        #[test]
        fn everything_with_the_prefix_and_nothing_else_is_before_its_end(prefix in proptest::collection::vec(any::<u8>(), 1..20), tail in proptest::collection::vec(any::<u8>(), 0..20), other in proptest::collection::vec(any::<u8>(), 0..20)) {
            let start = Key::from_bytes(&prefix);
            let end = after(&start);
            let inside = Key::from_bytes(&[prefix.clone(), tail].concat());
            prop_assert!(start <= inside && inside < end);
            if !other.starts_with(&prefix) && other.len() < 60 {
                let other = Key::from_bytes(&other);
                prop_assert!(other < start || other >= end || prefix.iter().all(|byte| *byte == u8::MAX));
            }
        }
    }
}
