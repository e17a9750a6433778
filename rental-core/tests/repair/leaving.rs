//! A repair leaves an organization alone that is being deleted.

use crate::{
    sound::{NOW, repaired, rows, store},
    stores::{everything, wait},
};
use rental_core::{
    resources::{organization, organization::SYSTEM},
    rows::{Row, key},
    store::{Commit, Key, Store},
    tasks::{Step, Task, organization_deletion as deletion, step},
    value::{Id, OrganizationId},
    webhooks::secret::{MasterKey, MasterKeys},
};

/// The organization of the store with the most rows.
fn leaving() -> OrganizationId {
    let all: Vec<OrganizationId> = rows().keys().filter_map(|key| Row::decode(key)?.organization()).collect();
    let count = |one: &OrganizationId| all.iter().filter(|other| *other == one).count();
    all.iter().copied().filter(|one| *one != SYSTEM).max_by_key(count).unwrap()
}

fn next(store: &dyn Store, task: &Key) -> Step {
    let keys = MasterKeys::new(vec![MasterKey::new(&[7; 32])]).unwrap();
    let record = wait(store.get(std::slice::from_ref(task))).unwrap().pop().flatten().unwrap();
    wait(step(store, &record, (&keys, NOW), &mut Vec::new())).unwrap()
}

#[test]
fn the_deletion_of_an_organization_goes_on_after_a_repair() {
    for steps in [0, 3, 6] {
        let store = store(rows());
        let record = wait(store.get(&[key::record(SYSTEM, &organization::SPEC, leaving().uuid())])).unwrap();
        let record = record[0].clone().unwrap();
        let begun = wait(deletion::begin(&store, &record, leaving(), (Id::from_u128(99), "req", NOW))).unwrap();
        let mut batch = begun.batch;
        Task::organization_deletion(begun.state, NOW).begin(&mut batch).unwrap();
        assert_eq!(wait(store.commit(batch)), Ok(Commit::Applied));
        let task = key::task(deletion::task_id(leaving()));
        for _ in 0..steps {
            assert_eq!(next(&store, &task), Step::Continue);
        }
        let (found, report) = repaired(&store);
        assert!(found.changes.is_empty() && report.listed.is_empty(), "{:#?} {:#?}", found.changes, report.listed);
        while next(&store, &task) != Step::Done {}
        let left = wait(everything(&store));
        let of_it: Vec<&Key> =
            left.keys().filter(|key| Row::decode(key).unwrap().organization() == Some(leaving())).collect();
        assert_eq!(of_it, Vec::<&Key>::new());
    }
}
