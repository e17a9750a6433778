//! Requests that run while a person is erased: none brings the data back.

use super::{
    IN_LEADS, SECRETS,
    between::Between,
    finish, found_outside_of_invoices, sound,
    world::{ORGANIZATION, World, rows, step},
};
use rental_core::{
    operations::{self, Intent, Prepared, Settle},
    resources::{
        Resource,
        invoice::Settlement,
        organization::{Organization, SYSTEM},
    },
    rows::key,
    store::{Batch, Commit, Span, Store},
    tasks::{Step, Task, organization_deletion},
    value::{Id, Timestamp},
};
use serde_json::{Value, json};
use std::sync::Mutex;

async fn nothing_remains(world: &World) {
    let after = rows(&world.store, &Span::everything()).await;
    for word in SECRETS.iter().chain(&IN_LEADS) {
        assert_eq!(found_outside_of_invoices(&after, word), [], "{word}");
    }
    sound(&world.store).await;
}

/// Each kind of write that is prepared before the person is erased and committed after the first batch.
#[tokio::test]
async fn a_write_that_was_prepared_before_is_refused_by_the_store() {
    let lines = json!([{"description": "For Grace Hopper", "amount": 5}]);
    let writes: [(&str, &str, Value); 8] = [
        ("update", "customer", json!({"notes": "allergic to cats, again"})),
        ("update", "rental", json!({"status": "COMPLETED"})),
        ("update", "rental", json!({"delivery_location": "9 Harbor Lane, Pier 2"})),
        ("create", "rental", json!({"booking_id": "BK-GRACE"})),
        ("create", "lead", json!({"raw_data": {"text": "license D1234567"}})),
        ("create", "invoice", json!({"lines": lines})),
        ("pay", "invoice", Value::Null),
        ("detach", "rental", Value::Null),
    ];
    for (verb, object, mut body) in writes {
        let world = World::new().await;
        let person = world.person().await;
        let id = if object == "customer" { person.clone() } else { world.one_of(object, &person).await };
        let prepared: Prepared = match verb {
            "update" => world.prepare_update(object, &id, &body).await.unwrap(),
            "pay" => {
                let pay = Settle { organization: &world.organization, id: &id, how: Settlement::Paid(None) };
                pay.prepare(&world.store, &world.edge).await.unwrap()
            }
            "detach" => {
                let other = world.create("customer", json!({"full_name": "Other"})).await;
                world.prepare_update(object, &id, &json!({"customer_id": other["id"]})).await.unwrap()
            }
            _ => {
                body["customer_id"] = json!(person);
                if object == "rental" {
                    body["vehicle_id"] = json!(world.vehicle);
                }
                world.prepare_create(object, &body).await.unwrap()
            }
        };
        world.erase(&person).await;
        let outcome = world.store.commit(prepared.batch).await.unwrap();
        assert!(matches!(outcome, Commit::Stale(_)), "{verb} {object}: {outcome:?}");
        finish(&world.store).await;
        nothing_remains(&world).await;
    }
}

/// Before each step of the task, in each possible place: a rental changes, an invoice is paid.
#[tokio::test]
async fn what_is_committed_between_the_reads_and_the_commit_of_a_step_is_rewritten_too() {
    for at in 0..7 {
        let world = World::new().await;
        let person = world.person().await;
        world.erase(&person).await;
        let rental = world.one_of("rental", &person).await;
        for n in 0.. {
            let Some(record) = world.store.scan(&key::tasks(), 1).await.unwrap().pop() else { break };
            let between = match n == at {
                true => Some(
                    world.prepare_update("rental", &rental, &json!({"damage_at_return": true})).await.unwrap().batch,
                ),
                false => None,
            };
            let store = Between(&world.store, Mutex::new(between));
            assert_ne!(step(&store, &record.unwrap()).await, Step::Overtaken);
        }
        nothing_remains(&world).await;
    }
}

/// The same at the first batch: it is prepared again, with what was committed in between.
#[tokio::test]
async fn a_change_of_the_customer_at_the_same_moment_is_erased_with_the_rest() {
    let world = World::new().await;
    let person = world.person().await;
    let change = world.prepare_update("customer", &person, &json!({"notes": "allergic to cats, again"})).await.unwrap();
    let store = Between(&world.store, Mutex::new(Some(change.batch)));
    let intent = rental_core::tasks::erasing::Erase { organization: &world.organization, id: &person };
    let render = |_: &rental_core::error::Error| (400, bytes::Bytes::new());
    operations::write(&store, &world.edge, ORGANIZATION, None, &intent, (200, &render)).await.unwrap();
    finish(&world.store).await;
    nothing_remains(&world).await;
}

#[tokio::test]
async fn of_two_servers_at_one_step_one_does_it() {
    let world = World::new().await;
    let person = world.person().await;
    world.erase(&person).await;
    let seen = world.store.scan(&key::tasks(), 1).await.unwrap().pop().unwrap().unwrap();
    assert_eq!(step(&world.store, &seen).await, Step::Continue);
    assert_eq!(step(&world.store, &seen).await, Step::Overtaken);
    finish(&world.store).await;
    assert_eq!(step(&world.store, &seen).await, Step::Overtaken, "the task is finished");
    nothing_remains(&world).await;
}

/// The first batch of the deletion of the organization.
async fn deletion(world: &World) -> Batch {
    let record = world.store.get(&[Organization::key(SYSTEM, ORGANIZATION)]).await.unwrap().pop().flatten().unwrap();
    let ids = (Id::from_u128(99), "req", Timestamp::LAST);
    let begun = organization_deletion::begin(&world.store, &record, ORGANIZATION, ids).await.unwrap();
    let mut batch = begun.batch;
    Task::organization_deletion(begun.state, Timestamp::LAST).begin(&mut batch).unwrap();
    batch
}

/// The organization is deleted before each step of the task, or between the reads and the commit of it. The deletion then
/// ends first.
#[tokio::test]
async fn the_deletion_of_the_organization_leaves_nothing_of_an_erasing_that_runs() {
    for (at, during) in (0..9).flat_map(|at| [(at, false), (at, true)]) {
        let world = World::new().await;
        let person = world.person().await;
        world.erase(&person).await;
        for _ in 0..at {
            let Some(record) = world.store.scan(&key::tasks(), 1).await.unwrap().pop() else { break };
            step(&world.store, &record.unwrap()).await;
        }
        let deletion = deletion(&world).await;
        match world.store.scan(&key::tasks(), 1).await.unwrap().pop().filter(|_| during) {
            Some(record) => {
                let store = Between(&world.store, Mutex::new(Some(deletion)));
                step(&store, &record.unwrap()).await;
            }
            None => assert_eq!(world.store.commit(deletion).await, Ok(Commit::Applied)),
        }
        finish(&world.store).await;
        assert_eq!(world.mark_of(&person).await, None, "{at}, {during}");
        nothing_remains(&world).await;
    }
}
