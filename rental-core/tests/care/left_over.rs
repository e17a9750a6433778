//! What a deleted webhook endpoint leaves behind is in order while a task removes it, and a problem otherwise.

use crate::fleet::{CACHE, Still, fleet, wait};
use rental_core::{
    check::{self, Report},
    operations::Edge,
    resources::row_words::in_words,
    rows::{Row, key},
    store::{
        Batch, Commit, Key, Prior, Span, Store, Write, key_of,
        redb::{ClosedFile, Redb},
    },
    tasks::{self, Step, Task},
    value::{EndpointId, EventId, TaskId},
    webhooks::{
        deletion, fan_out,
        secret::{MasterKey, MasterKeys},
    },
};
use std::path::Path;

const ENDPOINT: EndpointId = EndpointId::from_u128(77);

fn report(path: &Path) -> Report {
    check::of_file(&ClosedFile::open(path, CACHE).unwrap(), &mut |_| {})
}

fn on_file<T>(path: &Path, act: impl FnOnce(&Redb) -> T) -> T {
    let store = Redb::open(path, CACHE).unwrap();
    let done = act(&store);
    store.close().unwrap();
    done
}

/// Puts one delivery to an endpoint into the store, and no record of the endpoint; gives the key of the due row.
fn leave_delivery(path: &Path, edge: &Still) -> Key {
    on_file(path, |store| {
        let rows = wait(store.scan(&Span::everything(), 10_000)).unwrap();
        let organization = rows.iter().find_map(|row| match Row::decode(key_of(row)) {
            Some(Row::Calendar { organization, .. }) => Some(organization),
            _ => None,
        });
        let organization = organization.unwrap();
        let mut batch = Batch::default();
        fan_out::add(&mut batch, organization, ENDPOINT, (EventId::from_uuid(edge.new_id()), "vehicle.created"), edge)
            .unwrap();
        // As a program did that did not look for the endpoint.
        batch.checks.clear();
        let due = batch.writes.iter().find_map(|write| match write {
            Write::Put(key, ..) if key::due_endpoint(key).is_some() => Some(key.clone()),
            _ => None,
        });
        assert_eq!(wait(store.commit(batch)), Ok(Commit::Applied));
        due.unwrap()
    })
}

#[test]
fn due_rows_of_a_deleted_endpoint_are_a_problem_until_there_is_a_task() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.redb");
    fleet(&path, 2);
    assert_eq!(report(&path).problems, 0);
    let edge = Still::default();
    edge.skip(1_000);
    let due = leave_delivery(&path, &edge);
    let found = report(&path);
    assert_eq!((found.problems, found.listed[0].place.clone()), (1, in_words(&due)), "{:?}", found.listed);
    assert!(found.listed[0].what.contains("its endpoint was deleted"), "{:?}", found.listed);
    on_file(&path, |store| assert_eq!(wait(tasks::begin_left_over_deletions(store, edge.now())), Ok(1)));
    assert_eq!(report(&path).problems, 0);
    on_file(&path, |store| {
        let task = wait(store.get(&[key::task(deletion::task_id(ENDPOINT))])).unwrap().pop().flatten().unwrap();
        let keys = MasterKeys::new(vec![MasterKey::new(&[7; 32])]).unwrap();
        assert_eq!(wait(tasks::step(store, &task, (&keys, edge.now()), &mut Vec::new())), Ok(Step::Done));
        assert_eq!(wait(store.scan(&key::all_due_rows(ENDPOINT), deletion::BATCH)), Ok(Vec::new()));
    });
    assert_eq!(report(&path).problems, 0);
}

#[test]
fn a_task_that_cannot_be_read_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.redb");
    fleet(&path, 2);
    let task = serde_json::to_string(&Task::endpoint_deletion(ENDPOINT, Still::default().now())).unwrap();
    for (value, words) in [("{}".to_owned(), "it does not parse"), (task, "another task")] {
        let place = key::task(TaskId::from_u128(5));
        let writes = vec![Write::Put(place.clone(), 1, value.into(), Prior::Any)];
        on_file(&path, |store| wait(store.commit(Batch { checks: Vec::new(), writes })).unwrap());
        let found = report(&path);
        assert_eq!((found.problems, found.listed[0].place.clone()), (1, in_words(&place)));
        assert!(found.listed[0].what.contains(words), "{:?}", found.listed);
    }
}
