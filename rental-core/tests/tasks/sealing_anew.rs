//! A change of the master key: one walk seals all secrets anew, and survives whatever happens between two steps.

use super::{commit, keys, later, next_step_with, rows, task};
use rental_core::{
    error::Error,
    resources::to_json,
    rows::{calendar_feed::ImportedFeed, key},
    store::{Batch, Commit, Prior, Span, Store, memory::Memory},
    tasks::{Step, Task, step},
    value::{CalendarFeedId, EndpointId, OrganizationId},
    webhooks::{
        master_key::{self, BATCH, InUse, Stored, Survey, survey},
        secret::{MasterKey, MasterKeys, Sealed, bound_to},
    },
};

/// The key of a store before its change, and the keys of a server that has the new one too.
fn old_and_both() -> (MasterKey, MasterKeys) {
    let new = MasterKey::new(&[8; 32]);
    let old = keys().newest().clone();
    (old.clone(), MasterKeys::new(vec![old, new]).unwrap())
}

fn endpoint(number: usize) -> EndpointId {
    EndpointId::from_u128(number as u128 + 100)
}

/// Adds the secrets of an endpoint: the newest and one in its overlap, sealed with `key`.
async fn seal(store: &Memory, number: usize, key: &MasterKey) {
    let (id, mut sealed, mut batch) = (endpoint(number), Sealed::default(), Batch::default());
    for (at, text) in ["old", "new"].into_iter().enumerate() {
        let nonce = [u8::try_from(at).unwrap(); 24];
        sealed.rotate(key.seal(id, nonce, &format!("{text} {number}")).unwrap(), later().plus_millis(1_000), later());
    }
    batch.put(key::secrets(id), to_json(&sealed).unwrap(), Prior::Any);
    assert_eq!(commit(store, batch).await, Commit::Applied);
}

async fn sealed(store: &Memory, number: usize) -> Sealed {
    let row = store.get(&[key::secrets(endpoint(number))]).await.unwrap().pop().flatten().unwrap();
    serde_json::from_slice(&row.value).unwrap()
}

/// A store whose secrets are sealed with the first of these keys, and whose row begins to name the newest.
async fn begun(endpoints: usize) -> Memory {
    let ((old, both), store) = (old_and_both(), Memory::default());
    for number in 0..endpoints {
        seal(&store, number, &old).await;
    }
    let in_use = InUse { current: both.newest().fingerprint().clone(), former: Some(old.fingerprint().clone()) };
    let mut batch = Batch::default();
    Stored::read(&store).await.unwrap().change(&mut batch, &in_use).unwrap();
    Task::sealing_anew(later()).begin_again(&store, &mut batch).await.unwrap();
    assert_eq!(commit(&store, batch).await, Commit::Applied);
    store
}

#[tokio::test]
async fn every_secret_is_sealed_anew_and_then_the_former_key_is_dropped() {
    let (_, both) = old_and_both();
    let all = 2 * BATCH + 10;
    let store = begun(all).await;
    let mut steps = Vec::new();
    // Nothing but the row is kept from one step to the next, as after a kill.
    while let Some(record) = task(&store).await {
        assert!(Stored::read(&store).await.unwrap().in_use.unwrap().former.is_some());
        steps.push(next_step_with(&both, &store, &record).await);
    }
    assert_eq!(steps, [Step::Continue, Step::Continue, Step::Done]);
    let new = MasterKeys::new(vec![both.newest().clone()]).unwrap();
    let in_use = Stored::read(&store).await.unwrap().in_use.unwrap();
    assert_eq!(in_use, InUse { current: new.newest().fingerprint().clone(), former: None });
    assert_eq!(survey(&store, &new).await.unwrap(), Survey { endpoints: all as u64, ..Survey::default() });
    for number in [0, BATCH - 1, BATCH, all - 1] {
        let open = new.open_all(endpoint(number), &sealed(&store, number).await).unwrap();
        let texts: Vec<&str> = open.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(texts, [format!("new {number}"), format!("old {number}")]);
        assert_eq!(open[1].1, Some(later().plus_millis(1_000)), "the overlap ends when it did");
    }
}

#[tokio::test]
async fn the_addresses_of_calendar_feeds_are_sealed_anew_after_the_secrets() {
    let (old, both) = old_and_both();
    let store = begun(1).await;
    let (organization, all) = (OrganizationId::from_u128(7), BATCH + 5);
    let place = |number: usize| key::calendar_feed(organization, CalendarFeedId::from_u128(number as u128 + 1));
    let mut batch = Batch::default();
    for number in 0..all {
        let id = bound_to(CalendarFeedId::from_u128(number as u128 + 1));
        let mut nonce = [0; 24];
        nonce[..8].copy_from_slice(&(number as u64).to_be_bytes());
        let address = old.seal(id, nonce, &format!("https://example.com/{number}")).unwrap();
        batch.insert(place(number), to_json(&ImportedFeed::new(Some(address), later())).unwrap());
    }
    // A damaged row and a feed without an address stop nothing.
    batch.insert(place(all), "nonsense".into());
    batch.insert(place(all + 1), to_json(&ImportedFeed::new(None, later())).unwrap());
    assert_eq!(commit(&store, batch).await, Commit::Applied);
    let (mut steps, mut damaged) = (Vec::new(), Vec::new());
    while let Some(record) = task(&store).await {
        steps.push(step(&store, &record, (&both, later()), &mut damaged).await.unwrap());
    }
    assert_eq!((steps, damaged.len()), (vec![Step::Continue, Step::Done], 1));
    let new = MasterKeys::new(vec![both.newest().clone()]).unwrap();
    let found = survey(&store, &new).await.unwrap();
    assert_eq!((found.calendar_feeds, found.unreadable_calendar_feeds), (all as u64, 0));
    for number in [0, BATCH - 1, BATCH, all - 1] {
        let row = store.get(&[place(number)]).await.unwrap().pop().flatten().unwrap();
        let sealed = ImportedFeed::read(&row).unwrap().sealed.unwrap();
        let id = bound_to(CalendarFeedId::from_u128(number as u128 + 1));
        assert_eq!(new.open(id, &sealed), Ok(format!("https://example.com/{number}")));
    }
}

#[tokio::test]
async fn a_secret_that_the_former_key_would_seal_during_the_walk_is_not_committed() {
    let (old, both) = old_and_both();
    let (store, mut late) = (Memory::default(), Batch::default());
    seal(&store, 0, &old).await;
    // A server prepares a new secret with the only key that it knows ...
    let alone = keys();
    assert_eq!(
        master_key::sealing(&store, &alone, &mut late).await.unwrap().fingerprint(),
        old.fingerprint(),
        "a store that says nothing"
    );
    late.put(key::secrets(endpoint(1)), "{}".into(), Prior::New);
    // ... and the row names a key before the batch is committed.
    let mut batch = Batch::default();
    let in_use = InUse { current: both.newest().fingerprint().clone(), former: Some(old.fingerprint().clone()) };
    Stored::read(&store).await.unwrap().change(&mut batch, &in_use).unwrap();
    assert_eq!(commit(&store, batch).await, Commit::Applied);
    assert_eq!(commit(&store, late).await, Commit::Stale(key::master_key()));
    let refused = master_key::sealing(&store, &alone, &mut Batch::default()).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "a server without the key in use seals nothing");
    let mut batch = Batch::default();
    let sealing = master_key::sealing(&store, &both, &mut batch).await.unwrap();
    assert_eq!((sealing.fingerprint(), batch.checks.len()), (&in_use.current, 1));
}

#[tokio::test]
async fn a_server_that_lacks_a_key_does_no_step() {
    let store = begun(1).await;
    let record = task(&store).await.unwrap();
    let before = rows(&store, &Span::everything()).await;
    for byte in [7, 8] {
        let alone = MasterKeys::new(vec![MasterKey::new(&[byte; 32])]).unwrap();
        let outcome = step(&store, &record, (&alone, later()), &mut Vec::new()).await;
        assert!(matches!(outcome, Err(Error::Unavailable(_))), "{outcome:?}");
    }
    assert_eq!(rows(&store, &Span::everything()).await, before);
}

#[tokio::test]
async fn what_no_key_opens_stays_and_is_counted_and_what_has_ended_is_removed() {
    let (lost, (_, both)) = (MasterKey::new(&[9; 32]), old_and_both());
    let store = begun(1).await;
    seal(&store, 1, &lost).await;
    let before = sealed(&store, 1).await;
    let found = survey(&store, &both).await.unwrap();
    assert_eq!(found, Survey { endpoints: 2, unreadable: 1, unreadable_ids: vec![endpoint(1)], ..Survey::default() });
    let after_the_overlap = later().plus_millis(1_000);
    let outcome = step(&store, &task(&store).await.unwrap(), (&both, after_the_overlap), &mut Vec::new()).await;
    assert_eq!(outcome, Ok(Step::Done));
    assert_eq!(sealed(&store, 0).await.0.len(), 1);
    assert_eq!(sealed(&store, 1).await.0, before.0[..1]);
    // A walk that begins again finds nothing to do.
    let mut batch = Batch::default();
    Task::sealing_anew(later()).begin_again(&store, &mut batch).await.unwrap();
    assert_eq!(commit(&store, batch).await, Commit::Applied);
    let before = rows(&store, &key::secrets_of_all()).await;
    let outcome = step(&store, &task(&store).await.unwrap(), (&both, after_the_overlap), &mut Vec::new()).await;
    assert_eq!((outcome, rows(&store, &key::secrets_of_all()).await), (Ok(Step::Done), before));
}

#[tokio::test]
async fn a_damaged_row_of_secrets_is_told_and_does_not_stop_the_walk() {
    let (_, both) = old_and_both();
    let store = begun(3).await;
    let mut batch = Batch::default();
    batch.put(key::secrets(endpoint(1)), "{".into(), Prior::Any);
    assert_eq!(commit(&store, batch).await, Commit::Applied);
    let mut damaged = Vec::new();
    let outcome = step(&store, &task(&store).await.unwrap(), (&both, later()), &mut damaged).await;
    assert_eq!((outcome, damaged.len()), (Ok(Step::Done), 1));
    let new = MasterKeys::new(vec![both.newest().clone()]).unwrap();
    assert!(new.open_all(endpoint(2), &sealed(&store, 2).await).is_ok());
    assert_eq!(survey(&store, &new).await.unwrap().endpoints, 2);
}
