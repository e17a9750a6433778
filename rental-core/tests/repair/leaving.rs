//! Repairs of what the deletion of an organization leaves.

use crate::{
    damage::rot,
    sound::{NOW, plan, repaired, rows, store},
    stores::{CACHE, everything, fill, same, wait},
};
use rental_core::{
    check::repair::Action,
    erasing::Erasure,
    resources::{lead, organization, organization::SYSTEM},
    rows::{Row, key},
    store::{Batch, Commit, Key, Store, redb::Redb},
    tasks::{Step, Task, Work, organization_deletion as deletion, step},
    value::{CustomerId, Id, OrganizationId},
    webhooks::secret::{MasterKey, MasterKeys},
};
use uuid::Uuid;

const GONE: OrganizationId = OrganizationId::from_u128(0x77);

#[test]
fn marks_of_erased_customers_go_with_the_last_record_of_their_organization() {
    let mark = Erasure::new(GONE, CustomerId::from_u128(8), NOW);
    let with_mark = || {
        let mut rows = rows().clone();
        rows.insert(mark.key(), (1, serde_json::to_vec(&mark).unwrap().into()));
        rows
    };
    let alone = store(&with_mark());
    let made = repaired(&alone);
    assert_eq!(made.left.listed, []);
    assert_eq!(made.changes.keys().collect::<Vec<_>>(), [&mark.key()]);
    same(&wait(everything(&alone)), rows(), "the store without the mark");

    // A record that is removed does not count.
    let lead = key::record(GONE, &lead::SPEC, Uuid::from_u128(9));
    let mut with_damaged = with_mark();
    with_damaged.insert(lead.clone(), (1, "?".into()));
    let made = repaired(&store(&with_damaged));
    assert_eq!(made.left.listed, []);
    assert!(made.changes.values().all(|change| change.action == Action::Remove));

    // The record of the organization is lost, and a restore can bring it back.
    let mut with_lead = with_mark();
    let json = format!(
        r#"{{"id":"{}","object":"lead","source_channel":"api","customer_id":null,"raw_data":null,"status":"NEW","created_at":"{NOW}","updated_at":"{NOW}"}}"#,
        Uuid::from_u128(9)
    );
    with_lead.insert(lead, (1, json.into()));
    let kept = store(&with_lead);
    repaired(&kept);
    assert!(wait(everything(&kept)).contains_key(&mark.key()));
}

/// The organization of the store with the most rows.
fn leaving() -> OrganizationId {
    let all: Vec<OrganizationId> = rows().keys().filter_map(|key| Row::decode(key)?.organization()).collect();
    let count = |one: &OrganizationId| all.iter().filter(|other| *other == one).count();
    all.iter().copied().filter(|one| *one != SYSTEM).max_by_key(count).unwrap()
}

/// Begins the deletion of the organization, and does the first steps. Returns the key of the task.
fn begin(store: &dyn Store, steps: usize) -> Key {
    let record = wait(store.get(&[key::record(SYSTEM, &organization::SPEC, leaving().uuid())])).unwrap();
    let record = record[0].clone().unwrap();
    let begun = wait(deletion::begin(store, &record, leaving(), (Id::from_u128(99), "req", NOW))).unwrap();
    let mut batch = begun.batch;
    Task::organization_deletion(begun.state, NOW).begin(&mut batch).unwrap();
    assert_eq!(wait(store.commit(batch)), Ok(Commit::Applied));
    let task = key::task(deletion::task_id(leaving()));
    for _ in 0..steps {
        assert_eq!(next(store, &task), Step::Continue);
    }
    task
}

fn next(store: &dyn Store, task: &Key) -> Step {
    let keys = MasterKeys::new(vec![MasterKey::new(&[7; 32])]).unwrap();
    let record = wait(store.get(std::slice::from_ref(task))).unwrap().pop().flatten().unwrap();
    wait(step(store, &record, (&keys, NOW), &mut Vec::new())).unwrap()
}

/// Repairs a store with a damaged deletion, which then goes on until nothing of the organization is left.
fn goes_on(store: &dyn Store, task: &Key) {
    let made = repaired(store);
    assert_eq!(made.left.listed, []);
    assert_eq!(made.changes.keys().collect::<Vec<_>>(), [task], "no other row is touched");
    let stored = wait(store.get(std::slice::from_ref(task))).unwrap().pop().flatten().unwrap();
    assert!(matches!(Task::read(&stored).unwrap().work, Work::OrganizationDeletion(_)));
    while next(store, task) != Step::Done {}
    let left = wait(everything(store));
    let of_it: Vec<&Key> =
        left.keys().filter(|key| Row::decode(key).unwrap().organization() == Some(leaving())).collect();
    assert_eq!(of_it, Vec::<&Key>::new());
    assert_eq!(plan(store).left.listed, []);
}

#[test]
fn a_damaged_deletion_of_an_organization_goes_on() {
    for steps in [0, 3, 6] {
        let store = store(rows());
        let task = begin(&store, steps);
        let mut batch = Batch::default();
        let revision = wait(store.get(std::slice::from_ref(&task))).unwrap()[0].as_ref().unwrap().revision;
        batch.replace(task.clone(), revision, "?".into());
        assert_eq!(wait(store.commit(batch)), Ok(Commit::Applied));
        goes_on(&store, &task);
    }
}

#[test]
fn a_deletion_of_an_organization_whose_bytes_are_damaged_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.redb");
    let store = Redb::open(&path, CACHE).unwrap();
    wait(fill(&store, rows()));
    let task = begin(&store, 1);
    store.close().unwrap();
    rot(&path, std::slice::from_ref(&task));
    let store = Redb::open(&path, CACHE).unwrap();
    goes_on(&store, &task);
    store.close().unwrap();
}

#[test]
fn a_damaged_deletion_without_rows_is_removed() {
    let task = key::task(deletion::task_id(GONE));
    let mut with_task = rows().clone();
    with_task.insert(task.clone(), (1, "?".into()));
    let store = store(&with_task);
    let made = repaired(&store);
    assert_eq!(made.changes.keys().collect::<Vec<_>>(), [&task]);
    same(&wait(everything(&store)), rows(), "the store without the task");
}
