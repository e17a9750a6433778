//! A sound store with rows of every kind, and what the tests do with it.

use crate::stores::{Rows, STORES, everything, fill, memory, rows_of, same, upgrade, wait};
use rental_core::{
    check::repair::{self, Plan, Waiter},
    erasing::Erasure,
    resources::{audit_entry, customer, delivery, event, organization::SYSTEM, rental, vehicle},
    rows::{
        Row, Tag,
        calendar_feed::ImportedFeed,
        key,
        recheck::{Marked, Recheck},
        vehicle_feed::{Token, VehicleFeed},
    },
    store::{Answer, Key, Store, StoreError, memory::Memory},
    tasks::Task,
    value::{Id, Timestamp},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::OnceLock,
};
use uuid::Uuid;

/// The resources with many records in the fixture.
const MANY: [u8; 4] = [customer::SPEC.tag, delivery::SPEC.tag, event::SPEC.tag, audit_entry::SPEC.tag];
pub(crate) const NOW: Timestamp = Timestamp::LAST;

/// Runs the futures of a store.
pub(crate) struct Waits;

impl Waiter for Waits {
    fn wait<T>(&self, answer: Answer<'_, T>) -> Result<T, StoreError> {
        wait(answer)
    }
}

/// The rows of a store that the program of the last version filled and this one upgraded, and rows of the kinds that it lacks. Of most
/// kinds of records there are many, of which few are enough here.
pub(crate) fn rows() -> &'static Rows {
    static ROWS: OnceLock<Rows> = OnceLock::new();
    ROWS.get_or_init(|| {
        let newest = STORES[STORES.len() - 1];
        let store = memory(newest, &rows_of(newest));
        wait(upgrade(&store));
        let mut rows = wait(everything(&store));
        let mut counts = BTreeMap::<u8, u32>::new();
        let waiting: BTreeSet<Option<Uuid>> =
            rows.keys().filter(|key| key.as_bytes()[0] == Tag::Outbox as u8).map(Key::id).collect();
        rows.retain(|key, _| match Row::decode(key) {
            Some(Row::Record { resource, .. }) if MANY.contains(&resource) && !waiting.contains(&key.id()) => {
                let count = counts.entry(resource).or_default();
                *count += 1;
                count.is_multiple_of(20)
            }
            _ => true,
        });
        let store = self::store(&rows);
        repaired(&store);
        rows = wait(everything(&store));
        let organization = rows.keys().find_map(|key| match Row::decode(key) {
            Some(Row::Record { organization, .. }) if organization != SYSTEM => Some(organization),
            _ => None,
        });
        let (organization, id) = (organization.unwrap(), Uuid::from_u128(9));
        let vehicle = rows.keys().find_map(|key| match Row::decode(key) {
            Some(Row::Record { organization: owner, resource, id })
                if owner == organization && resource == vehicle::SPEC.tag =>
            {
                Some(Id::from_uuid(id))
            }
            _ => None,
        });
        let task = serde_json::to_vec(&Task::endpoint_deletion(Id::from_uuid(id), NOW)).unwrap();
        let erasure = Erasure::new(organization, Id::from_uuid(id), NOW);
        for (key, value) in [
            (key::task(Id::from_uuid(id)), task),
            (key::erased(organization, &rental::SPEC, id), Vec::new()),
            (erasure.key(), serde_json::to_vec(&erasure).unwrap()),
            (key::usage(Id::from_uuid(id), organization), b"{}".to_vec()),
            (key::heartbeat(Id::from_uuid(id)), b"{}".to_vec()),
            (key::owner(Id::from_uuid(id)), b"?".to_vec()),
            (key::bell(Id::from_uuid(id), Id::from_uuid(id)), Vec::new()),
            (key::logo(organization), b"\x89PNG\r\n\x1a\n".to_vec()),
            (
                key::vehicle_feed(organization, vehicle.unwrap()),
                VehicleFeed::new(&Token::new(organization, vehicle.unwrap(), &[7; 32]).0, NOW).value().to_vec(),
            ),
            (
                key::calendar_feed(organization, Id::from_uuid(id)),
                serde_json::to_vec(&ImportedFeed { removed: true, ..ImportedFeed::new(None, NOW) }).unwrap(),
            ),
            (key::recheck(organization, Marked::vehicle(vehicle.unwrap())), Recheck::of_all().value().to_vec()),
        ] {
            rows.insert(key, (1, value.into()));
        }
        rows
    })
}

pub(crate) fn store(rows: &Rows) -> Memory {
    let store = Memory::default();
    wait(fill(&store, rows));
    store
}

pub(crate) fn plan(store: &dyn Store) -> Plan {
    repair::plan(store, &Waits, NOW, &mut |_| {}).unwrap()
}

/// Repairs a store; afterwards there is nothing to repair.
pub(crate) fn repaired(store: &dyn Store) -> Plan {
    let made = plan(store);
    repair::apply(store, &Waits, &made).unwrap();
    let again = plan(store);
    assert!(again.changes.is_empty(), "{:#?}", again.changes);
    assert_eq!(again.left, made.left);
    made
}

#[test]
fn a_sound_store_is_not_changed_and_has_every_kind_of_row() {
    let store = store(rows());
    let tags: BTreeSet<Tag> = rows().keys().filter_map(|key| Tag::of(key.as_bytes()[0])).collect();
    assert_eq!(tags.into_iter().collect::<Vec<_>>(), Tag::ALL, "the tests below damage a row of every kind");
    let made = repaired(&store);
    assert!(made.changes.is_empty(), "{:#?}", made.changes);
    assert_eq!(made.left.listed, []);
    same(&wait(everything(&store)), rows(), "a sound store");
}

/// The rows of a kind that the tests damage: the first and the last one. Of records, those of every resource.
pub(crate) fn examples() -> Vec<Key> {
    let mut examples = Vec::new();
    for tag in Tag::ALL {
        let of_tag = |key: &&Key| key.as_bytes()[0] == *tag as u8;
        let length = if *tag == Tag::Record { 18 } else { 1 };
        let group = |key: &Key| match length {
            18 => key.as_bytes()[17],
            _ => 0,
        };
        let keys: Vec<&Key> = rows().keys().filter(of_tag).collect();
        let groups: BTreeSet<u8> = keys.iter().map(|key| group(key)).collect();
        for one in groups {
            let of_group: Vec<&&Key> = keys.iter().filter(|key| group(key) == one).collect();
            examples.extend([of_group[0], of_group[of_group.len() - 1]].map(|key| (*key).clone()));
        }
    }
    examples.dedup();
    examples
}
