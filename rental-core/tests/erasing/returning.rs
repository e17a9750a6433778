//! A person who comes back with an older backup or export is erased again.

use super::{
    IN_LEADS, SECRETS, finish, found_outside_of_invoices, sound,
    world::{ORGANIZATION, World, rows},
};
use rental_core::{
    erasing::{Erasure, missing_in},
    imports::{
        Counts,
        organization::{HEAD_LINES, Importer, Lines, end_line, first_line, inspect, line, spans},
    },
    resources::{Resource, customer::Customer, organization::SYSTEM, to_json},
    store::{Batch, Commit, Prior, Record, Span, Store, Write, memory::Memory},
    tasks::erasing::begin_left_over_erasures,
    value::CustomerId,
};
use std::sync::Arc;

async fn nothing_in(store: &dyn Store) {
    let all = rows(store, &Span::everything()).await;
    for word in SECRETS.iter().chain(&IN_LEADS) {
        assert_eq!(found_outside_of_invoices(&all, word), [], "{word}");
    }
}

/// A store with these rows, like a restore.
async fn restored(rows: &[Record]) -> Memory {
    let store = Memory::default();
    let put = |row: &Record| Write::Put(row.key.clone(), row.revision, row.value.clone(), Prior::New);
    let batch = Batch { checks: Vec::new(), writes: rows.iter().map(put).collect() };
    assert_eq!(store.commit(batch).await, Ok(Commit::Applied));
    store
}

#[tokio::test]
async fn after_the_restore_of_an_older_backup_the_list_erases_the_person_again() {
    let world = World::new().await;
    let person = world.person().await;
    let backup = rows(&world.store, &Span::everything()).await;
    world.erase(&person).await;
    let begun = world.mark_of(&person).await.unwrap();
    finish(&world.store).await;
    let ended = world.mark_of(&person).await.unwrap();
    // The list of a store that was lost in the middle of the task, or after it.
    for mark in [begun, ended] {
        let store = restored(&backup).await;
        assert_eq!(begin_left_over_erasures(&store, &world.edge, &mut Vec::new()).await, Ok(0), "the list is empty");
        let listed = Erasure::read(&mark).unwrap().on_another_list();
        let mut batch = Batch::default();
        batch.insert(mark.key, to_json(&listed).unwrap());
        assert_eq!(store.commit(batch).await, Ok(Commit::Applied));
        assert_eq!(begin_left_over_erasures(&store, &world.edge, &mut Vec::new()).await, Ok(1));
        assert_eq!(begin_left_over_erasures(&store, &world.edge, &mut Vec::new()).await, Ok(0), "the task runs");
        finish(&store).await;
        nothing_in(&store).await;
        sound(&store).await;
    }
}

#[tokio::test]
async fn a_list_adds_nobody_of_an_organization_that_the_store_does_not_have() {
    let world = World::new().await;
    let person = world.person().await;
    world.erase(&person).await;
    let list = [world.mark_of(&person).await.unwrap()];
    let (known, older) = (fresh(&world).await, restored(&[]).await);
    assert_eq!(missing_in(&*known, &list).await.unwrap(), [&list[0]]);
    assert_eq!(missing_in(&older, &list).await, Ok(Vec::new()), "the organization is younger than the backup");
    assert_eq!(missing_in(&world.store, &list).await, Ok(Vec::new()), "it is on the list already");
}

#[tokio::test]
async fn a_task_that_a_repair_removed_begins_again() {
    let world = World::new().await;
    let person = world.person().await;
    world.erase(&person).await;
    let task = world.store.scan(&rental_core::rows::key::tasks(), 1).await.unwrap().pop().unwrap().unwrap();
    let mut batch = Batch::default();
    batch.delete(task.key);
    assert_eq!(world.store.commit(batch).await, Ok(Commit::Applied));
    assert_eq!(begin_left_over_erasures(&world.store, &world.edge, &mut Vec::new()).await, Ok(1));
    finish(&world.store).await;
    let all = rows(&world.store, &Span::everything()).await;
    // The address went with the task, so only the lead without a customer stays.
    assert!(
        SECRETS.iter().filter(|word| !word.contains('@')).all(|word| found_outside_of_invoices(&all, word).is_empty())
    );
}

/// The lines of an export.
async fn export(store: &dyn Store) -> String {
    let (mut file, mut lines) = (first_line(), 1);
    for span in spans(ORGANIZATION) {
        for row in rows(store, &span).await {
            file.push_str(&String::from_utf8(line(&row.value)).unwrap());
            lines += 1;
        }
    }
    file + &end_line(lines)
}

async fn import(store: &Arc<Memory>, world: &World, file: &str) -> (u64, u64, u64) {
    let counts = run(store, world, file).await;
    assert_eq!(counts.invalid, 0, "{:?}", counts.errors);
    (counts.received, counts.created, counts.duplicates)
}

async fn run(store: &Arc<Memory>, world: &World, file: &str) -> Counts {
    let inspection = inspect(file.as_bytes(), &world.organization).unwrap();
    let store = Arc::clone(store) as Arc<dyn Store>;
    let importer = Importer::new(store, None, &world.edge, &world.organization, inspection.source).await.unwrap();
    let audit = |_: CustomerId, batch: &mut Batch| {
        assert!(!batch.is_empty(), "the entry is part of the batch that erases");
        Ok(())
    };
    let mut importer = importer.of_version(&inspection).erasing(&audit);
    let lines = Lines::new(file.as_bytes()).skip(HEAD_LINES).take(inspection.objects as usize);
    for line in lines {
        let (row, line) = line.unwrap();
        importer.line(row, &line).await.unwrap();
    }
    importer.finish().await.unwrap();
    importer.look_for_returning().await.unwrap();
    importer.counts
}

/// A store that has only the organization.
async fn fresh(world: &World) -> Arc<Memory> {
    let place = rental_core::resources::organization::Organization::key(SYSTEM, ORGANIZATION);
    let organization = world.store.get(&[place]).await.unwrap();
    Arc::new(restored(&[organization[0].clone().unwrap()]).await)
}

#[tokio::test]
async fn an_export_has_the_list_and_an_older_export_after_it_brings_nobody_back() {
    let world = World::new().await;
    let person = world.person().await;
    let older = export(&world.store).await;
    world.erase(&person).await;
    finish(&world.store).await;
    let newer = export(&world.store).await;
    assert!(newer.contains("\"object\":\"erasure\"") && !older.contains("\"object\":\"erasure\""));

    // The list first, then an export of before: its objects come without personal data.
    let only: Vec<&str> = newer.lines().take(3).collect();
    let only = format!("{}\n{}", only.join("\n"), end_line(3));
    let store = fresh(&world).await;
    assert_eq!(import(&store, &world, &only).await, (1, 1, 0));
    let (received, created, _) = import(&store, &world, &older).await;
    assert_eq!(created, received);
    let place = Customer::key(ORGANIZATION, CustomerId::parse(&person).unwrap());
    let customer: Customer =
        serde_json::from_slice(&store.get(&[place]).await.unwrap()[0].as_ref().unwrap().value).unwrap();
    assert!(customer.erased_at.is_some());
    assert_eq!(
        begin_left_over_erasures(&*store, &world.edge, &mut Vec::new()).await,
        Ok(0),
        "the import has begun the task for leads without a customer"
    );
    finish(&*store).await;
    nothing_in(&*store).await;
    sound(&store).await;
    assert_eq!(run(&store, &world, &older).await.created, 0, "all are there");
    finish(&*store).await;
    nothing_in(&*store).await;
}

#[tokio::test]
async fn a_list_that_comes_after_the_person_erases_it() {
    let world = World::new().await;
    let person = world.person().await;
    let store = fresh(&world).await;
    import(&store, &world, &export(&world.store).await).await;
    world.erase(&person).await;
    finish(&world.store).await;
    let newer = export(&world.store).await;
    let only: Vec<&str> = newer.lines().take(3).collect();
    import(&store, &world, &format!("{}\n{}", only.join("\n"), end_line(3))).await;
    assert_eq!(begin_left_over_erasures(&*store, &world.edge, &mut Vec::new()).await, Ok(0), "the task runs");
    finish(&*store).await;
    nothing_in(&*store).await;
    sound(&store).await;
}
