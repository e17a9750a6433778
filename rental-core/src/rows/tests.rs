use super::{Marker, Row, Tag, recheck::Marked};
use crate::{
    store::Key,
    value::{Holder, Id},
};
use proptest::{collection::vec, prelude::*, strategy::Union};
use uuid::Uuid;

fn uuid() -> BoxedStrategy<Uuid> {
    any::<u128>().prop_map(Uuid::from_u128).boxed()
}

fn id<K: 'static>() -> BoxedStrategy<Id<K>> {
    uuid().prop_map(Id::from_uuid).boxed()
}

/// Names outlive the case that drew them, so that a row can borrow them.
fn name() -> BoxedStrategy<&'static str> {
    prop_oneof![Just(""), Just("a"), Just("b"), Just("ab"), Just("idempotency-key-1"), Just("é")].boxed()
}

fn values() -> BoxedStrategy<&'static [u8]> {
    const VALUES: [&[u8]; 4] = [b"", b"\0\0", b"\0\x03NEW", b"\0\x01A\0\x02BC"];
    prop::sample::select(VALUES.to_vec()).boxed()
}

/// Any row of this kind. A new kind does not compile here before it has its line.
fn of_kind(tag: Tag) -> BoxedStrategy<Row<'static>> {
    match tag {
        Tag::Marker => prop::sample::select(vec![Marker::Loading, Marker::MasterKey, Marker::Upgrade])
            .prop_map(Row::Marker)
            .boxed(),
        Tag::Access => any::<[u8; 16]>().prop_map(|selector| Row::Access { selector }).boxed(),
        Tag::Recheck => (id(), uuid().prop_map(Marked::of_key))
            .prop_map(|(organization, marked)| Row::Recheck { organization, marked })
            .boxed(),
        Tag::Calendar => {
            (id(), id()).prop_map(|(organization, vehicle)| Row::Calendar { organization, vehicle }).boxed()
        }
        Tag::Due => (id(), any::<u8>(), any::<u64>(), id())
            .prop_map(|(endpoint, class, millis, delivery)| Row::Due { endpoint, class, millis, delivery })
            .boxed(),
        Tag::Erased => (id(), any::<u8>(), uuid())
            .prop_map(|(organization, resource, id)| Row::Erased { organization, resource, id })
            .boxed(),
        Tag::Hold => (id(), id(), any::<u8>(), any::<u32>(), prop::sample::select(vec![3, 21]), uuid())
            .prop_map(|(organization, vehicle, class, start, resource, id)| Row::Hold {
                organization,
                vehicle,
                class,
                start,
                holder: Holder::of(resource, id).unwrap(),
            })
            .boxed(),
        Tag::IndexEntry => (id(), any::<u8>(), any::<u8>(), values(), uuid())
            .prop_map(|(organization, resource, index, values, id)| Row::IndexEntry {
                organization,
                resource,
                index,
                values,
                id,
            })
            .boxed(),
        Tag::Bell => (id(), id()).prop_map(|(server, endpoint)| Row::Bell { server, endpoint }).boxed(),
        Tag::Heartbeat => id().prop_map(|server| Row::Heartbeat { server }).boxed(),
        Tag::IdempotencyRecord => {
            (id(), name()).prop_map(|(organization, name)| Row::IdempotencyRecord { organization, name }).boxed()
        }
        Tag::Counter => (id(), name()).prop_map(|(organization, name)| Row::Counter { organization, name }).boxed(),
        Tag::Outbox => (id(), id()).prop_map(|(organization, event)| Row::Outbox { organization, event }).boxed(),
        Tag::VehicleFeed => {
            (id(), id()).prop_map(|(organization, vehicle)| Row::VehicleFeed { organization, vehicle }).boxed()
        }
        Tag::CalendarFeed => {
            (id(), id()).prop_map(|(organization, feed)| Row::CalendarFeed { organization, feed }).boxed()
        }
        Tag::Logo => id().prop_map(|organization| Row::Logo { organization }).boxed(),
        Tag::Subscribed => id().prop_map(|organization| Row::Subscribed { organization }).boxed(),
        Tag::Record => (id(), any::<u8>(), uuid())
            .prop_map(|(organization, resource, id)| Row::Record { organization, resource, id })
            .boxed(),
        Tag::Secrets => id().prop_map(|endpoint| Row::Secrets { endpoint }).boxed(),
        Tag::Task => id().prop_map(|id| Row::Task { id }).boxed(),
        Tag::Identity => (id(), any::<u8>(), any::<[u8; 16]>())
            .prop_map(|(organization, resource, hash)| Row::Identity { organization, resource, hash })
            .boxed(),
        Tag::Usage => (id(), id()).prop_map(|(server, organization)| Row::Usage { server, organization }).boxed(),
        Tag::Owner => id().prop_map(|endpoint| Row::Owner { endpoint }).boxed(),
        Tag::IdempotencyExpiry => (any::<u64>(), id(), name())
            .prop_map(|(millis, organization, name)| Row::IdempotencyExpiry { millis, organization, name })
            .boxed(),
    }
}

fn any_row() -> Union<BoxedStrategy<Row<'static>>> {
    Union::new(Tag::ALL.iter().map(|tag| of_kind(*tag)))
}

/// What comes first in the logical order: the tag, then the parts as numbers and text.
fn logical(row: &Row<'_>) -> (u8, Vec<u128>, Vec<u8>) {
    fn number<K>(id: Id<K>) -> u128 {
        id.uuid().as_u128()
    }
    let half = |bytes: [u8; 16]| u128::from_be_bytes(bytes);
    let (tag, numbers, tail): (Tag, Vec<u128>, &[u8]) = match *row {
        Row::Marker(Marker::Loading) => (Tag::Marker, vec![], b""),
        Row::Marker(Marker::MasterKey) => (Tag::Marker, vec![], b"master-key"),
        Row::Marker(Marker::Upgrade) => (Tag::Marker, vec![], b"upgrade"),
        Row::Access { selector } => (Tag::Access, vec![half(selector)], b""),
        Row::Calendar { organization, vehicle } => (Tag::Calendar, vec![number(organization), number(vehicle)], b""),
        Row::Recheck { organization, marked } => {
            (Tag::Recheck, vec![number(organization), half(*marked.as_bytes())], b"")
        }
        Row::Due { endpoint, class, millis, delivery } => {
            (Tag::Due, vec![number(endpoint), class.into(), millis.into(), number(delivery)], b"")
        }
        Row::Erased { organization, resource, id } => {
            (Tag::Erased, vec![number(organization), resource.into(), id.as_u128()], b"")
        }
        Row::Hold { organization, vehicle, class, start, holder } => {
            let parts =
                vec![number(organization), number(vehicle), class.into(), start.into(), holder.uuid().as_u128()];
            (Tag::Hold, parts, if matches!(holder, Holder::Block(_)) { &[21] } else { b"" })
        }
        Row::IndexEntry { organization, resource, index, values, .. } => {
            (Tag::IndexEntry, vec![number(organization), resource.into(), index.into()], values)
        }
        Row::Bell { server, endpoint } => (Tag::Bell, vec![number(server), number(endpoint)], b""),
        Row::Heartbeat { server } => (Tag::Heartbeat, vec![number(server)], b""),
        Row::IdempotencyRecord { organization, name } => {
            (Tag::IdempotencyRecord, vec![number(organization)], name.as_bytes())
        }
        Row::Counter { organization, name } => (Tag::Counter, vec![number(organization)], name.as_bytes()),
        Row::Outbox { organization, event } => (Tag::Outbox, vec![number(organization), number(event)], b""),
        Row::VehicleFeed { organization, vehicle } => {
            (Tag::VehicleFeed, vec![number(organization), number(vehicle)], b"")
        }
        Row::CalendarFeed { organization, feed } => (Tag::CalendarFeed, vec![number(organization), number(feed)], b""),
        Row::Logo { organization } => (Tag::Logo, vec![number(organization)], b""),
        Row::Subscribed { organization } => (Tag::Subscribed, vec![number(organization)], b""),
        Row::Record { organization, resource, id } => {
            (Tag::Record, vec![number(organization), resource.into(), id.as_u128()], b"")
        }
        Row::Secrets { endpoint } => (Tag::Secrets, vec![number(endpoint)], b""),
        Row::Task { id } => (Tag::Task, vec![number(id)], b""),
        Row::Identity { organization, resource, hash } => {
            (Tag::Identity, vec![number(organization), resource.into(), half(hash)], b"")
        }
        Row::Usage { server, organization } => (Tag::Usage, vec![number(server), number(organization)], b""),
        Row::Owner { endpoint } => (Tag::Owner, vec![number(endpoint)], b""),
        Row::IdempotencyExpiry { millis, organization, name } => {
            (Tag::IdempotencyExpiry, vec![millis.into(), number(organization)], name.as_bytes())
        }
    };
    (tag as u8, numbers, tail.to_vec())
}

/// Two rows of one kind that differ in few parts or in none, so that every part decides some time.
fn neighbours() -> impl Strategy<Value = (Row<'static>, Row<'static>)> {
    (prop::sample::select(Tag::ALL.to_vec()), any::<u64>(), any::<u64>()).prop_flat_map(|(tag, ..)| {
        (of_kind(tag), of_kind(tag)).prop_flat_map(|(one, other)| {
            let mixed = mix(one, other);
            (Just(one), prop_oneof![Just(other), Just(mixed)])
        })
    })
}

/// `one` with the last part of `other`, for the kinds that have several numbers.
fn mix(one: Row<'static>, other: Row<'static>) -> Row<'static> {
    match (one, other) {
        (Row::Due { endpoint, class, .. }, Row::Due { millis, delivery, .. }) => {
            Row::Due { endpoint, class, millis, delivery }
        }
        (Row::Hold { organization, vehicle, class, .. }, Row::Hold { start, holder, .. }) => {
            Row::Hold { organization, vehicle, class, start, holder }
        }
        (Row::Record { organization, resource, .. }, Row::Record { id, .. }) => {
            Row::Record { organization, resource, id }
        }
        (Row::IdempotencyRecord { organization, .. }, Row::IdempotencyRecord { name, .. }) => {
            Row::IdempotencyRecord { organization, name }
        }
        (Row::IdempotencyExpiry { millis, .. }, Row::IdempotencyExpiry { organization, name, .. }) => {
            Row::IdempotencyExpiry { millis, organization, name }
        }
        (_, other) => other,
    }
}

#[test]
fn every_kind_has_a_byte_of_its_own() {
    assert!(Tag::ALL.windows(2).all(|pair| (pair[0] as u8) < pair[1] as u8), "rising, so none is there twice");
    for byte in 0..=u8::MAX {
        assert_eq!(Tag::of(byte).map(|tag| tag as u8), Tag::ALL.iter().map(|tag| *tag as u8).find(|tag| *tag == byte));
    }
}

#[test]
fn the_table_of_the_documentation_names_every_kind_in_order() {
    let source = include_str!("row.rs");
    let lines: Vec<&str> = source.lines().filter_map(|line| line.strip_prefix("/// | `")?.get(..1)).collect();
    let tags: Vec<String> = Tag::ALL.iter().map(|tag| char::from(*tag as u8).to_string()).collect();
    assert_eq!(lines, tags);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_row_is_what_its_key_says(row in any_row()) {
        let key = row.encode();
        prop_assert_eq!(Row::decode(&key), Some(row));
        prop_assert!(!crate::resources::row_words::in_words(&key).starts_with("a row of no known kind"));
    }

    #[test]
    fn bytes_that_are_a_row_are_its_key(tag in prop::sample::select(Tag::ALL.to_vec()), rest in vec(any::<u8>(), 0..80)) {
        let key = Key::from([&[tag as u8], rest.as_slice()].concat());
        if let Some(row) = Row::decode(&key) {
            prop_assert_eq!(row.encode(), key);
        }
    }

    #[test]
    fn a_key_with_more_or_less_is_another_row_or_none(row in any_row(), more in any::<u8>()) {
        let key = row.encode();
        let bytes = key.as_bytes();
        for other in [Key::from([bytes, &[more]].concat()), Key::from_bytes(&bytes[..bytes.len() - 1])] {
            prop_assert_ne!(Row::decode(&other), Some(row));
        }
    }

    #[test]
    fn the_order_of_bytes_is_the_order_of_the_parts((one, other) in neighbours()) {
        let (left, right) = (one.encode(), other.encode());
        let by_parts = logical(&one).cmp(&logical(&other));
        // An index entry of equal values is ordered by its id, which follows values of any length.
        if let (Row::IndexEntry { id: a, .. }, Row::IndexEntry { id: b, .. }) = (one, other) {
            if by_parts.is_eq() {
                prop_assert_eq!(left.cmp(&right), a.cmp(&b));
            }
        } else {
            prop_assert_eq!(left.cmp(&right), by_parts);
        }
    }
}
