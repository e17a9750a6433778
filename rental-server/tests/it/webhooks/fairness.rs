//! One organization's slow receivers keep no other organization, and one endpoint no other endpoint, from its deliveries.

use super::{PRIVATE, act, hook, many_events, metric, one_event, quiet_while, retention::commit};
use crate::{
    events_in_store::stop,
    support::{
        Organization, Server,
        receiver::{Act, Receiver},
    },
};
use rental_core::{
    resources::event,
    rows::{key, outbox},
    store::{Batch, Prior, Store, redb::Redb},
    value::{EventId, OrganizationId, Timestamp},
};
use serde_json::{Value, json};
use std::{path::Path, time::Duration};
use uuid::Uuid;

/// Receivers that never respond. The attempt time-out is longer than the test, so no permit of theirs is returned.
const ENDLESS: [&str; 3] = [PRIVATE, "--webhook-timeout", "10m"];

/// Gives an organization so many endpoints at receivers that never respond, and events for all of them.
fn flood(organization: &Organization, receiver: &Receiver, endpoints: usize, events: usize) {
    (0..endpoints).for_each(|_| drop(hook(organization, receiver)));
    many_events(organization, events);
}

#[test]
fn three_organizations_with_hanging_receivers_delay_no_other_organization() {
    let server = Server::start(&ENDLESS);
    let hanging = Receiver::that(Act::Hang);
    let floods = [(); 3].map(|()| server.organization());
    for organization in &floods {
        flood(organization, &hanging, 40, 12);
    }
    let (victim, receiver) = (server.organization(), Receiver::start());
    hook(&victim, &receiver);
    // What the three get of the 1,024 permits. If they got all of them, none would be left within the pause.
    hanging.wait_for(700);
    quiet_while();
    for count in 1..=20 {
        one_event(&victim);
        receiver.wait_for(count);
    }
    assert!(hanging.seen().iter().all(|one| one.ended.is_none()), "the flood hangs all the while");
}

/// Their receivers kept up at first, so each of the eight may have a hundred attempts in flight: more than one organization
/// gets.
#[test]
fn hanging_endpoints_of_an_organization_do_not_delay_its_other_endpoint() {
    const QUICK: usize = 8 * 200;
    let server = Server::start(&ENDLESS);
    let organization = server.organization();
    let slow = Receiver::with(|number, _| match number {
        0..QUICK => Act::After(Duration::from_millis(50), Box::new(Act::Status(200))),
        _ => Act::Hang,
    });
    let hooks: Vec<_> = (0..8).map(|_| hook(&organization, &slow)).collect();
    hooks.iter().for_each(|hook| drop(act(&server, hook, "disable", &Value::Null).ok()));
    many_events(&organization, 400);
    hooks.iter().for_each(|hook| drop(act(&server, hook, "enable", &Value::Null).ok()));
    // Less than half of all permits: this organization has what it gets.
    slow.wait_for(QUICK + 400);
    quiet_while();
    let receiver = Receiver::start();
    hook(&organization, &receiver);
    for count in 1..=20 {
        one_event(&organization);
        receiver.wait_for(count);
    }
    let in_flight = slow.seen().iter().filter(|one| one.ended.is_none()).count();
    assert!((400..=512).contains(&in_flight), "{in_flight} in flight");
}

/// Adds events to the outbox in the file of a server that is gone.
fn fill_outbox(batch: &mut Batch, owner: OrganizationId, millis: u64, count: u128) {
    for number in 0..count {
        let id = Uuid::from_u128((u128::from(millis) << 80) | (0x7 << 76) | (0x2 << 62) | number);
        let id = EventId::from_uuid(id);
        batch.insert(event::key(owner, id), br#"{"type":"lead.received"}"#.as_slice().into());
        batch.put(key::outbox(owner, id), outbox::value(owner, "lead.received"), Prior::New);
    }
}

/// The burst has the older events and is of the older organization: the relay would come to it first.
#[test]
fn a_burst_in_the_outbox_delays_no_other_organization() {
    const EVENTS: u64 = 3000;
    const OUTBOX: &str = "rental_webhook_outbox_events";
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[PRIVATE]);
    let receiver = Receiver::start();
    let (flooding, victim) = (server.organization(), server.organization());
    for _ in 0..20 {
        // Its deliveries are made and wait: the test is about the relay alone.
        act(&server, &hook(&flooding, &receiver), "disable", &json!({})).ok();
    }
    hook(&victim, &receiver);
    let [flood, single] = [&flooding, &victim].map(|one| OrganizationId::parse(&one.id).expect("an id"));
    drop((flooding, victim));
    stop(server);
    let mut batch = Batch::default();
    let now =
        Timestamp::from_millis(i64::try_from(crate::support::receiver::unix_seconds()).expect("fits") * 1000).millis();
    fill_outbox(&mut batch, flood, now - 1, EVENTS.into());
    fill_outbox(&mut batch, single, now, 1);
    commit(directory.path(), batch);

    let server = Server::start_on_file(directory.path(), &[PRIVATE]);
    receiver.wait_for(1);
    server.signal("KILL");
    server.wait_until_gone();
    drop(server);
    let waiting = outbox_rows(directory.path());
    assert!(waiting > EVENTS as usize / 2, "the burst came first: only {waiting} of its events still wait");
    let server = Server::start_on_file(directory.path(), &[PRIVATE]);
    super::wait_for(
        "the deliveries of the burst",
        || (metric(&server, OUTBOX) == 0.0).then_some(()),
        || metric(&server, OUTBOX).to_string(),
    );
    super::wait_for(
        "the last count",
        || (metric(&server, "rental_webhook_deliveries_kept") == EVENTS as f64 * 20.0).then_some(()),
        || metric(&server, "rental_webhook_deliveries_kept").to_string(),
    );
}

/// How many events of a store are no deliveries yet.
fn outbox_rows(directory: &Path) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
    let store = Redb::open(&directory.join("store.redb"), 16 << 20).expect("the server is gone");
    let rows = runtime.block_on(store.scan(&key::outbox_rows(), usize::MAX)).expect("the store answers").len();
    store.close().expect("the file is whole");
    rows
}
