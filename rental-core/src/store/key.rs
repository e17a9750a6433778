//! Where things lie in the store: byte order is logical order, and the organization is part of every key.
//!
//! ```text
//! r org object id                     a record                 -> its JSON
//! i org object number values.. id     an index entry           -> empty; points at `r org object id`
//! a selector                          half an API key's hash   -> the whole hash and the id of its record
//! c org vehicle                       calendar of a vehicle    -> which length classes it holds
//! h org vehicle class start rental    one hold                 -> end day
//! m org key                           an idempotency record    -> the first answer
//! x millis org key                    when that one expires    -> empty
//! o event                             outbox                   -> org and event type
//! q org                               has webhook endpoints    -> empty
//! d endpoint class millis delivery    a delivery that is due   -> org
//! s endpoint                          sealed webhook secrets   -> JSON
//! n org name                          a counter                -> the last number given
//! !                                   a copy into this store has not come to its end
//! ! "upgrade"                         an upgrade of this store has not come to its end -> how far it has come
//! l server                            a server's beat          -> empty; its revision counts
//! w endpoint                          who sends for it         -> id of the server
//! j server endpoint                   something new is due     -> empty
//! u org object hash                   an identity              -> id of the one object that has it
//! b org source                        what an invoice bills    -> id of the invoice
//! ```
//! Ids are UUIDv7, so the end of a record's or an index entry's key is also its place in time: newest first is the
//! reverse of byte order, and a cursor is an id.

use crate::spec::ResourceSpec;
use uuid::Uuid;

/// A place in the store; compared byte by byte.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Key(Vec<u8>);

impl Key {
    /// The key of these bytes, for engines that hand keys back.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The id at the end of a record's or index entry's key.
    #[must_use]
    pub fn id(&self) -> Option<Uuid> {
        let at = self.0.len().checked_sub(16)?;
        Uuid::from_slice(&self.0[at..]).ok()
    }
}

fn key(tag: u8, parts: &[&[u8]]) -> Key {
    let mut bytes = Vec::with_capacity(1 + parts.iter().map(|part| part.len()).sum::<usize>());
    bytes.push(tag);
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    Key(bytes)
}

/// A record of `spec` in `organization`.
#[must_use]
pub fn record(organization: Uuid, spec: &ResourceSpec, id: Uuid) -> Key {
    key(b'r', &[organization.as_bytes(), &[spec.tag], id.as_bytes()])
}

/// All records of `spec` in `organization`.
#[must_use]
pub fn records(organization: Uuid, spec: &ResourceSpec) -> Key {
    key(b'r', &[organization.as_bytes(), &[spec.tag]])
}

/// All index entries that begin with the number of their index and its values ([`crate::spec::IndexPrefix`]).
#[must_use]
pub(crate) fn index(organization: Uuid, spec: &ResourceSpec, number_and_values: &[u8]) -> Key {
    key(b'i', &[organization.as_bytes(), &[spec.tag], number_and_values])
}

/// `prefix` continued by an id: one entry of an index.
#[must_use]
pub fn entry(prefix: &Key, id: Uuid) -> Key {
    let mut bytes = Vec::with_capacity(prefix.0.len() + 16);
    bytes.extend_from_slice(&prefix.0);
    bytes.extend_from_slice(id.as_bytes());
    Key(bytes)
}

/// Where the hash of an API key leads to its record. Only half of the hash is looked up; the whole is compared after.
#[must_use]
pub fn access(sha256: &[u8; 32]) -> Key {
    key(b'a', &[&sha256[..16]])
}

/// The calendar of a vehicle: its revision changes with every hold.
#[must_use]
pub fn calendar(organization: Uuid, vehicle: Uuid) -> Key {
    key(b'c', &[organization.as_bytes(), vehicle.as_bytes()])
}

/// One hold of a vehicle.
#[must_use]
pub fn hold(organization: Uuid, vehicle: Uuid, class: u8, start: u32, rental: Uuid) -> Key {
    key(b'h', &[organization.as_bytes(), vehicle.as_bytes(), &[class], &start.to_be_bytes(), rental.as_bytes()])
}

/// Where the holds of one length class begin that start on `start` or later.
#[must_use]
pub fn holds_from(organization: Uuid, vehicle: Uuid, class: u8, start: u32) -> Key {
    key(b'h', &[organization.as_bytes(), vehicle.as_bytes(), &[class], &start.to_be_bytes()])
}

/// The start day and the rental in the key of a hold.
#[must_use]
pub fn hold_parts(key: &Key) -> Option<(u32, Uuid)> {
    let bytes = key.as_bytes();
    let start = bytes.get(34..38)?.try_into().ok()?;
    Some((u32::from_be_bytes(start), Uuid::from_slice(bytes.get(38..54)?).ok()?))
}

/// An idempotency record.
#[must_use]
pub fn memo(organization: Uuid, name: &str) -> Key {
    key(b'm', &[organization.as_bytes(), name.as_bytes()])
}

/// The entry that says when an idempotency record may go.
#[must_use]
pub fn memo_expiry(millis: u64, organization: Uuid, name: &str) -> Key {
    key(b'x', &[&millis.to_be_bytes(), organization.as_bytes(), name.as_bytes()])
}

/// All expiries up to `millis`, first to last.
#[must_use]
pub fn memo_expiries_until(millis: u64) -> Span {
    Span { from: key(b'x', &[]), to: key(b'x', &[&millis.to_be_bytes()]), order: Order::Ascending, follow: None }
}

/// The idempotency record that an expiry entry speaks of.
#[must_use]
pub fn memo_of_expiry(expiry: &Key) -> Option<Key> {
    expiry.as_bytes().get(9..).map(|rest| key(b'm', &[rest]))
}

/// The outbox row of an event.
#[must_use]
pub fn outbox(event: Uuid) -> Key {
    key(b'o', &[event.as_bytes()])
}

/// All outbox rows, oldest first.
#[must_use]
pub fn outbox_rows() -> Span {
    under(key(b'o', &[]))
}

/// Whether an organization ever had a webhook endpoint: without one, its events need no outbox row.
#[must_use]
pub fn subscribed(organization: Uuid) -> Key {
    key(b'q', &[organization.as_bytes()])
}

/// When a delivery of an endpoint is due; `class` puts first attempts before retries.
#[must_use]
pub fn due(endpoint: Uuid, class: u8, millis: u64, delivery: Uuid) -> Key {
    key(b'd', &[endpoint.as_bytes(), &[class], &millis.to_be_bytes(), delivery.as_bytes()])
}

/// The due rows of one class of an endpoint, earliest first.
#[must_use]
pub fn due_rows(endpoint: Uuid, class: u8) -> Span {
    under(key(b'd', &[endpoint.as_bytes(), &[class]]))
}

/// All due rows of an endpoint.
#[must_use]
pub fn all_due_rows(endpoint: Uuid) -> Span {
    under(key(b'd', &[endpoint.as_bytes()]))
}

/// The due rows of all endpoints, endpoint by endpoint.
#[must_use]
pub fn due_rows_of_all() -> Span {
    under(key(b'd', &[]))
}

/// The endpoint in the key of a due row.
#[must_use]
pub fn due_endpoint(key: &Key) -> Option<Uuid> {
    Uuid::from_slice(key.as_bytes().get(1..17)?).ok()
}

/// The milliseconds in the key of a due row.
#[must_use]
pub fn due_millis(key: &Key) -> Option<u64> {
    Some(u64::from_be_bytes(key.as_bytes().get(18..26)?.try_into().ok()?))
}

/// The sealed secrets of an endpoint.
#[must_use]
pub fn secrets(endpoint: Uuid) -> Key {
    key(b's', &[endpoint.as_bytes()])
}

/// A named counter of an organization.
#[must_use]
pub fn counter(organization: Uuid, name: &str) -> Key {
    key(b'n', &[organization.as_bytes(), name.as_bytes()])
}

/// The beat of a server that shares the store with others.
#[must_use]
pub fn beat(server: Uuid) -> Key {
    key(b'l', &[server.as_bytes()])
}

/// The beats of all servers.
#[must_use]
pub fn beats() -> Span {
    under(key(b'l', &[]))
}

/// Who sends for an endpoint.
#[must_use]
pub fn owner(endpoint: Uuid) -> Key {
    key(b'w', &[endpoint.as_bytes()])
}

/// Who sends for all endpoints.
#[must_use]
pub fn owners() -> Span {
    under(key(b'w', &[]))
}

/// Tells a server that something new is due for an endpoint of its.
#[must_use]
pub fn bell(server: Uuid, endpoint: Uuid) -> Key {
    key(b'j', &[server.as_bytes(), endpoint.as_bytes()])
}

/// The bells of a server.
#[must_use]
pub fn bells(server: Uuid) -> Span {
    under(key(b'j', &[server.as_bytes()]))
}

/// The mark of a store into which another one is being copied.
#[must_use]
pub fn loading() -> Key {
    key(b'!', &[])
}

/// The marker of an upgrade that has not come to its end.
#[must_use]
pub fn upgrade() -> Key {
    key(b'!', &[b"upgrade"])
}

/// The first key after this one.
#[must_use]
pub fn next(key: &Key) -> Key {
    let mut bytes = Vec::with_capacity(key.0.len() + 1);
    bytes.extend_from_slice(&key.0);
    bytes.push(0);
    Key(bytes)
}

/// Whether a row belongs to running servers and means nothing in a copy of the store.
#[must_use]
pub fn is_of_servers(key: &Key) -> bool {
    matches!(key.as_bytes().first(), Some(b'l' | b'w' | b'j' | b'!'))
}

/// All keys that begin with `prefix`, lowest first, as they are.
fn under(prefix: Key) -> Span {
    Span { to: after(&prefix), from: prefix, order: Order::Ascending, follow: None }
}

/// Where half the hash of what there can be only one of leads to the object that it is.
#[must_use]
pub fn identity(organization: Uuid, spec: &ResourceSpec, sha256: &[u8; 32]) -> Key {
    key(b'u', &[organization.as_bytes(), &[spec.tag], &sha256[..16]])
}

/// The mark of a toll or violation that an invoice bills.
#[must_use]
pub fn billed(organization: Uuid, source: Uuid) -> Key {
    key(b'b', &[organization.as_bytes(), source.as_bytes()])
}

/// In which direction a span is read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Order {
    /// By rising key: oldest first where the key ends in an id.
    Ascending,
    /// By falling key: newest first.
    Descending,
}

/// How the entries of a span lead to other rows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Follow {
    /// The row that an entry leads to has this prefix and the last 16 bytes of the entry's key.
    pub prefix: Key,
}

impl Follow {
    /// The row that an entry leads to; `None` when the key of the entry has less than 16 bytes.
    #[must_use]
    pub fn target(&self, entry: &[u8]) -> Option<Key> {
        let id = entry.last_chunk::<16>()?;
        let mut bytes = Vec::with_capacity(self.prefix.0.len() + id.len());
        bytes.extend_from_slice(&self.prefix.0);
        bytes.extend_from_slice(id);
        Some(Key(bytes))
    }
}

/// A range of keys, from inclusive to exclusive.
#[derive(Clone, Debug)]
pub struct Span {
    /// The first key that belongs to it.
    pub from: Key,
    /// The first key that no longer does.
    pub to: Key,
    /// Direction of reading.
    pub order: Order,
    /// With it, the scan gives the rows that the entries lead to instead of the entries.
    pub follow: Option<Follow>,
}

impl Span {
    /// All keys that begin with `prefix`, newest first, as they are.
    #[must_use]
    pub fn newest_first(prefix: &Key) -> Self {
        Self { from: prefix.clone(), to: after(prefix), order: Order::Descending, follow: None }
    }

    /// Reads the entries of an index as the rows that they lead to: those whose keys begin with `prefix`.
    #[must_use]
    pub fn following(mut self, prefix: Key) -> Self {
        self.follow = Some(Follow { prefix });
        self
    }

    /// All keys, lowest first, as they are.
    #[must_use]
    pub fn everything() -> Self {
        Self { from: Key(Vec::new()), to: Key(vec![u8::MAX; 64]), order: Order::Ascending, follow: None }
    }

    /// Keeps only keys that continue `prefix` with an id older than `id`.
    #[must_use]
    pub fn before_id(mut self, prefix: &Key, id: Uuid) -> Self {
        self.to = self.to.min(entry(prefix, id));
        self
    }

    /// Keeps only keys that continue `prefix` with an id created at `millis` or later.
    #[must_use]
    pub fn created_from(mut self, prefix: &Key, millis: u64) -> Self {
        self.from = self.from.max(at_millis(prefix, millis));
        self
    }

    /// Keeps only keys that continue `prefix` with an id created before `millis`.
    #[must_use]
    pub fn created_before(mut self, prefix: &Key, millis: u64) -> Self {
        self.to = self.to.min(at_millis(prefix, millis));
        self
    }

    /// Whether no key can lie in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.from >= self.to
    }
}

/// The first 48 bits of a UUIDv7 are its milliseconds (RFC 9562, 5.7).
fn at_millis(prefix: &Key, millis: u64) -> Key {
    let mut bytes = prefix.0.clone();
    bytes.extend_from_slice(&millis.to_be_bytes()[2..]);
    Key(bytes)
}

/// The first key after all that begin with `prefix`.
#[must_use]
pub fn after(prefix: &Key) -> Key {
    let mut bytes = prefix.0.clone();
    while bytes.pop_if(|last| *last == u8::MAX).is_some() {}
    match bytes.last_mut() {
        Some(last) => *last += 1,
        // A prefix of 0xff alone has nothing behind it; a key is at most 64 KiB, so this one is behind all.
        None => bytes = vec![u8::MAX; 64],
    }
    Key(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        resources::{rental, vehicle},
        spec::IndexPrefix,
    };
    use proptest::prelude::*;

    fn uuid(n: u128) -> Uuid {
        Uuid::from_u128(n)
    }

    #[test]
    fn an_index_entry_points_at_its_record() {
        let prefix = IndexPrefix::new(3).with(b"NEW").with(uuid(9).as_bytes()).prefix(uuid(7), &rental::SPEC);
        let entry = entry(&prefix, uuid(42));
        let follow = Follow { prefix: records(uuid(7), &rental::SPEC) };
        assert_eq!(follow.target(entry.as_bytes()), Some(record(uuid(7), &rental::SPEC, uuid(42))));
        assert_eq!(follow.target(&[7; 15]), None, "too short for an id");
    }

    #[test]
    fn a_span_of_one_organization_never_reaches_the_next() {
        for n in [0, 255, u128::MAX - 1, u128::MAX] {
            let span = Span::newest_first(&records(uuid(n), &vehicle::SPEC));
            let inside = record(uuid(n), &vehicle::SPEC, uuid(u128::MAX));
            assert!(span.from <= inside && inside < span.to);
            let next = record(uuid(n.wrapping_add(1)), &vehicle::SPEC, uuid(0));
            assert!(next < span.from || next >= span.to);
        }
    }

    #[test]
    fn values_of_an_index_cannot_run_into_each_other() {
        let one = IndexPrefix::new(3).with(b"AB").with(b"C").prefix(uuid(1), &rental::SPEC);
        let other = IndexPrefix::new(3).with(b"A").with(b"BC").prefix(uuid(1), &rental::SPEC);
        assert!(!one.as_bytes().starts_with(other.as_bytes()) && !other.as_bytes().starts_with(one.as_bytes()));
    }

    proptest! {
        #[test]
        fn byte_order_of_records_is_id_order(org: u128, a: u128, b: u128) {
            let (left, right) = (record(uuid(org), &vehicle::SPEC, uuid(a)), record(uuid(org), &vehicle::SPEC, uuid(b)));
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
            prop_assert_eq!(left.id(), Some(uuid(a)));
        }

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

        #[test]
        fn a_hold_keeps_its_start_and_rental(class: u8, start: u32, rental: u128) {
            let key = hold(uuid(1), uuid(2), class, start, uuid(rental));
            prop_assert_eq!(hold_parts(&key), Some((start, uuid(rental))));
        }
    }
}
