//! A sound store with rows of every kind, and what the tests do with it.

use crate::stores::{Rows, STORES, everything, fill, memory, rows_of, same, upgrade, wait};
use bytes::Bytes;
use rental_core::{
    check::{
        Audit, Problem, Remedy, Report,
        repair::{self, Found},
    },
    erasing::Erasure,
    resources::{audit_entry, delivery, event, organization::SYSTEM, rental, vehicle},
    rows::{
        Row, Tag,
        calendar_feed::ImportedFeed,
        key,
        recheck::{Marked, Recheck},
        vehicle_feed::{Token, VehicleFeed},
    },
    store::{Commit, Key, Record, Store, Versioned, memory::Memory},
    tasks::Task,
    upgrade::{Step, Upgrade, UpgradeError},
    value::{Id, Timestamp},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::OnceLock,
};
use uuid::Uuid;

/// The resources with many records in the fixture.
const MANY: [u8; 3] = [delivery::SPEC.tag, event::SPEC.tag, audit_entry::SPEC.tag];
pub(crate) const NOW: Timestamp = Timestamp::LAST;

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

pub(crate) fn find(store: &dyn Store) -> Found {
    wait(repair::find(store, NOW, &mut |_| {})).unwrap()
}

/// Repairs a store, as `store repair` does.
pub(crate) async fn repair(store: &dyn Versioned, rows: usize) -> Result<Found, UpgradeError> {
    let found = repair::find(store, NOW, &mut |_| {}).await?;
    let mut walk = Upgrade::again(store).await?.in_batches_of(rows);
    assert_eq!(repair::apply(store, &found).await?, Commit::Applied);
    while walk.step().await? != Step::Done {}
    Ok(found)
}

/// What `store check` says of these rows.
pub(crate) fn checked(rows: &Rows) -> Report {
    let record = |key: &Key, row: &(u64, Bytes)| Record { key: key.clone(), revision: row.0, value: row.1.clone() };
    let get = |key: &Key| Ok(rows.get(key).map(|row| record(key, row)));
    let mut audit = Audit::new(&get).at(NOW);
    rows.iter().for_each(|(key, row)| audit.row(&record(key, row)));
    audit.finish()
}

/// Repairs a store; afterwards there is nothing to repair. Returns what was removed or replaced, and what a check says then.
pub(crate) fn repaired(store: &dyn Versioned) -> (Found, Report) {
    let found = wait(repair(store, 4000)).unwrap();
    let again = find(store);
    assert!(again.changes.is_empty(), "{:#?}", again.changes);
    let mut trial = wait(Upgrade::again_trial(store)).unwrap();
    while wait(trial.step()).unwrap() != Step::Done {}
    assert_eq!((trial.progress().written, trial.progress().removed), (0, 0));
    let report = checked(&wait(everything(store)));
    assert_eq!(report.remedies.get(&Remedy::Repair), None, "{:#?}", report.listed);
    let told: Vec<&Problem> = again.left.listed.iter().filter(|problem| problem.remedy == Remedy::Gone).collect();
    let is_number = |problem: &&Problem| problem.what.contains("but the counter stands at");
    let gone = report.listed.iter().filter(|problem| problem.remedy == Remedy::Gone && !is_number(problem));
    assert_eq!(told, gone.collect::<Vec<_>>());
    (found, report)
}

#[test]
fn a_sound_store_is_not_changed_and_has_every_kind_of_row() {
    let store = store(rows());
    let tags: BTreeSet<Tag> = rows().keys().filter_map(|key| Tag::of(key.as_bytes()[0])).collect();
    assert_eq!(tags.into_iter().collect::<Vec<_>>(), Tag::ALL, "the tests below damage a row of every kind");
    let (found, report) = repaired(&store);
    assert!(found.changes.is_empty(), "{:#?}", found.changes);
    assert_eq!(report.listed, []);
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
