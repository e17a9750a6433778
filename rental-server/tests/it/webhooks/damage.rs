//! A damaged row harms only itself: the server starts, delivers and cleans up for everything else (decisions, Second round).

use super::{PRIVATE, act, hook, hook_at, metric, observed, one_event, wait_for};
use crate::{
    events_in_store::stop,
    support::{Organization, Server, flip, receiver::Receiver},
};
use rental_core::{
    operations::idempotency::{self, IdempotencyKey},
    resources::{Resource, delivery::Delivery, event},
    rows::key,
    store::{Batch, Commit, Key, Prior, Store, Write, redb::Redb},
    value::{DeliveryId, EndpointId, EventId, OrganizationId, Timestamp},
    webhooks::deletion,
};
use serde_json::{Value, json};
use std::path::Path;
use uuid::Uuid;

const DAMAGED: &str = "rental_damaged_rows_total";
/// In the log line of a row that is skipped.
const SKIPPED: &str = "a row of the store is damaged";

/// Runs on the file of a server that has stopped.
pub(crate) fn on_file<T>(directory: &Path, act: impl AsyncFnOnce(&Redb) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
    let store = Redb::open(&directory.join("store.redb"), 16 << 20).expect("the server closed it");
    let done = runtime.block_on(act(&store));
    store.close().expect("the file is whole");
    done
}

/// Puts rows as no server would.
pub(crate) fn put(directory: &Path, rows: Vec<(Key, &[u8])>) {
    let write = |(key, value): (Key, &[u8])| Write::Put(key, 1, value.to_vec().into(), Prior::Any);
    let batch = Batch { checks: Vec::new(), writes: rows.into_iter().map(write).collect() };
    assert_eq!(on_file(directory, async |store| store.commit(batch).await), Ok(Commit::Applied));
}

fn again<'s>(server: &'s Server, organization: &(String, String, String)) -> Organization<'s> {
    let (id, read, write) = organization.clone();
    Organization { server, id, read, write }
}

fn keys(organization: Organization<'_>) -> (String, String, String) {
    (organization.id.clone(), organization.read.clone(), organization.write.clone())
}

/// The `n`th id of a moment.
fn id_at(millis: u64, n: u64) -> Uuid {
    Uuid::from_u128((u128::from(millis) << 80) | (0x7 << 76) | (0x2 << 62) | u128::from(n))
}

fn wait_for_damage(server: &Server, rows: f64) {
    wait_for(
        "damaged rows",
        || (metric(server, DAMAGED) >= rows).then_some(()),
        || metric(server, DAMAGED).to_string(),
    );
}

#[test]
fn a_flipped_bit_in_an_endpoint_keeps_no_other_from_its_deliveries() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[PRIVATE]);
    let (one, other) = (server.organization(), server.organization());
    let (beside, elsewhere) = (Receiver::start(), Receiver::start());
    let broken = hook_at(&one, &format!("{}?break-me-here", beside.url()), json!({}));
    hook(&one, &beside);
    hook(&other, &elsewhere);
    let (one, other) = (keys(one), keys(other));
    stop(server);
    flip(&directory.path().join("store.redb"), "break-me-here");

    let server = Server::start_on_file(directory.path(), &[PRIVATE]).expecting_errors("damaged");
    let (one, other) = (again(&server, &one), again(&server, &other));
    one_event(&one);
    one_event(&other);
    assert!(beside.wait_for(1).iter().all(|seen| !seen.line.contains("here")));
    elsewhere.wait_for(1);
    // Its reader is told; it is logged and counted once, however often it is met.
    let read = server.admin("GET", &format!("/admin/v1/webhook_endpoints/{}", broken.id), &Value::Null);
    assert_eq!(read.status, 500);
    (0..5).for_each(|_| one_event(&one));
    beside.wait_for(6);
    assert_eq!(metric(&server, DAMAGED), 1.0);
    let log = server.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("it is skipped")).collect();
    assert!(lines.len() == 1 && lines[0].contains(&format!("webhook_endpoint {}", broken.id)), "{lines:#?}");
}

#[test]
fn damaged_rows_at_the_head_of_the_outbox_and_of_what_is_due_hold_nothing_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[PRIVATE]);
    let organization = server.organization();
    let receiver = Receiver::start();
    let hook = hook(&organization, &receiver);
    let organization = keys(organization);
    stop(server);
    let endpoint = EndpointId::parse(&hook.id).expect("an id");
    let owner = OrganizationId::parse(&organization.0).expect("an id");
    // More than the relay and a lane read at a time, and all of them before what is sound.
    // Of the same organization, of another one, and with a key that this version does not write.
    let mut rows: Vec<(Key, &[u8])> =
        (0..550).map(|n| (key::outbox(owner, EventId::from_uuid(id_at(1, n))), b"?".as_slice())).collect();
    let other = OrganizationId::from_uuid(id_at(1, 0));
    rows.extend((0..40).map(|n| (key::outbox(other, EventId::from_uuid(id_at(1, n))), b"?".as_slice())));
    rows.extend(
        (0..10).map(|n| (Key::from_bytes(&[b"o", id_at(1, n).as_bytes().as_slice()].concat()), b"?".as_slice())),
    );
    rows.extend((0..200).map(|n| (key::due(endpoint, 0, 1, DeliveryId::from_uuid(id_at(2, n))), b"?".as_slice())));
    // Deliveries that are no JSON.
    let deliveries: Vec<DeliveryId> = (0..20).map(|n| DeliveryId::from_uuid(id_at(3, n))).collect();
    rows.extend(deliveries.iter().map(|id| (Delivery::key(owner, *id), b"{".as_slice())));
    rows.extend(deliveries.iter().map(|id| (key::due(endpoint, 0, 1, *id), owner.as_bytes().as_slice())));
    put(directory.path(), rows);

    let server = Server::start_on_file(directory.path(), &[PRIVATE]).expecting_errors("damaged");
    let organization = again(&server, &organization);
    one_event(&organization);
    receiver.wait_for(1);
    wait_for_damage(&server, 820.0);
    (0..5).for_each(|_| one_event(&organization));
    receiver.wait_for(6);
    assert_eq!(metric(&server, DAMAGED), 820.0, "each is counted once");
    let lines = server.log().lines().filter(|line| line.contains("it is skipped")).count();
    assert!(lines <= 100, "{lines} lines");
}

#[test]
fn what_has_expired_goes_though_damaged_rows_lie_before_it() {
    /// In 2020.
    const LONG_AGO: u64 = 1_577_836_800_000;
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[]);
    let organization = server.organization();
    let id = OrganizationId::parse(&organization.id).expect("an id");
    drop(organization);
    stop(server);
    let then = Timestamp::from_millis(LONG_AGO.cast_signed());
    let events = [0, 1].map(|n| event::key(id, EventId::from_uuid(id_at(LONG_AGO, n))));
    put(directory.path(), vec![(events[0].clone(), b"{"), (events[1].clone(), br#"{"type":"lead.received"}"#)]);
    let names: Vec<String> = (0..300).map(|n| format!("key-{n:03}")).collect();
    let mut answers = Batch::default();
    for name in &names {
        let idempotency_key = IdempotencyKey::new(name.as_bytes(), "POST", "/v1/leads", b"").expect("a key");
        idempotency::remember(&mut answers, id, &idempotency_key, None, (201, None, &"{}".into()), then);
    }
    assert_eq!(on_file(directory.path(), async |store| store.commit(answers).await), Ok(Commit::Applied));
    // The first, and one that is read with the second step, when the first is committed.
    let stored: Vec<Key> = names.iter().map(|name| key::idempotency_record(id, name)).collect();
    put(directory.path(), vec![(stored[0].clone(), b"{"), (stored[290].clone(), b"{")]);

    let server = Server::start_on_file(directory.path(), &[]).expecting_errors(SKIPPED);
    wait_for_damage(&server, 3.0);
    stop(server);
    let wanted = [events.as_slice(), &[stored[0].clone(), stored[1].clone(), stored[255].clone()]].concat();
    let there = on_file(directory.path(), async |store| store.get(&wanted).await).expect("the store answers");
    let there: Vec<bool> = there.iter().map(Option::is_some).collect();
    assert_eq!(there, [true, false, true, false, false], "damaged rows stay, what has expired behind them is gone");
}

/// Rows whose checksums are wrong. The rows of the test above have the right ones, and do not parse.
#[test]
fn what_has_expired_goes_though_bits_of_rows_before_it_are_flipped() {
    /// In 2020.
    const LONG_AGO: u64 = 1_577_836_800_000;
    const BROKEN: &[u8] = b"break-me-here";
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[]);
    let organization = server.organization();
    let id = OrganizationId::parse(&organization.id).expect("an id");
    drop(organization);
    stop(server);
    let events = [0, 1].map(|n| event::key(id, EventId::from_uuid(id_at(LONG_AGO, n))));
    let delivery = Delivery::key(id, DeliveryId::from_uuid(id_at(LONG_AGO, 2)));
    // Before all of the following ones.
    let expiry = key::idempotency_expiry(LONG_AGO, id, "key-000");
    let mut answers = Batch::default();
    let names: Vec<String> = (0..300).map(|n| format!("key-{n:03}")).collect();
    for name in &names {
        let idempotency_key = IdempotencyKey::new(name.as_bytes(), "POST", "/v1/leads", b"").expect("a key");
        let then = Timestamp::from_millis(LONG_AGO.cast_signed());
        idempotency::remember(&mut answers, id, &idempotency_key, None, (201, None, &"{}".into()), then);
    }
    assert_eq!(on_file(directory.path(), async |store| store.commit(answers).await), Ok(Commit::Applied));
    let stored: Vec<Key> = names.iter().map(|name| key::idempotency_record(id, name)).collect();
    let rows = vec![
        (events[0].clone(), BROKEN),
        (events[1].clone(), br#"{"type":"lead.received"}"#.as_slice()),
        (delivery, BROKEN),
        (expiry.clone(), BROKEN),
        // Read with the second step, when the first is committed.
        (stored[290].clone(), BROKEN),
    ];
    put(directory.path(), rows);
    flip(&directory.path().join("store.redb"), "break-me-here");

    let server = Server::start_on_file(directory.path(), &[]).expecting_errors("damaged");
    wait_for_damage(&server, 4.0);
    let removed = r#"rental_retention_removed_total{object="event"}"#;
    wait_for(
        "the end of the sweep",
        || (metric(&server, removed) >= 1.0).then_some(()),
        || metric(&server, removed).to_string(),
    );
    stop(server);
    let wanted = [events.as_slice(), &[expiry, stored[0].clone(), stored[1].clone()]].concat();
    let there = on_file(directory.path(), async |store| {
        let mut there = Vec::new();
        for place in &wanted {
            // A damaged row is there.
            there.push(!matches!(store.get(std::slice::from_ref(place)).await.as_deref(), Ok([None])));
        }
        there
    });
    assert_eq!(there, [true, false, true, false, false], "damaged rows stay, what has expired behind them is gone");
}

#[test]
fn a_flipped_bit_in_an_outbox_row_ends_no_sweep_and_keeps_its_event() {
    /// In 2020.
    const LONG_AGO: u64 = 1_577_836_800_000;
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[PRIVATE]);
    // A sweep begins with the newest organization.
    let (older, newer) = (server.organization(), server.organization());
    hook(&newer, &Receiver::start());
    let [older, newer] = [keys(older), keys(newer)].map(|(id, ..)| OrganizationId::parse(&id).expect("an id"));
    stop(server);
    let [first, second] = [0, 1].map(|n| EventId::from_uuid(id_at(LONG_AGO, n)));
    let events = [event::key(newer, first), event::key(newer, second), event::key(older, first)];
    let event = br#"{"type":"lead.received"}"#.as_slice();
    let mut rows: Vec<(Key, &[u8])> = events.iter().map(|place| (place.clone(), event)).collect();
    rows.push((key::outbox(newer, first), b"break-me-here"));
    put(directory.path(), rows);
    flip(&directory.path().join("store.redb"), "break-me-here");

    let server = Server::start_on_file(directory.path(), &[PRIVATE]).expecting_errors("damaged");
    let removed = r#"rental_retention_removed_total{object="event"}"#;
    wait_for(
        "the end of the sweep",
        || (metric(&server, removed) >= 2.0).then_some(()),
        || metric(&server, removed).to_string(),
    );
    assert_eq!(metric(&server, DAMAGED), 1.0);
    stop(server);
    let there = on_file(directory.path(), async |store| store.get(&events).await).expect("the store answers");
    let there: Vec<bool> = there.iter().map(Option::is_some).collect();
    assert_eq!(there, [true, false, false], "the event that may still be sent stays");
}

#[test]
fn a_damaged_task_with_the_id_of_an_endpoint_does_not_keep_it_from_being_deleted() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[PRIVATE]);
    let organization = server.organization();
    let hook = hook(&organization, &Receiver::start());
    act(&server, &hook, "disable", &json!({})).ok();
    one_event(&organization);
    let organization = keys(organization);
    stop(server);
    let endpoint = EndpointId::parse(&hook.id).expect("an id");
    put(directory.path(), vec![(key::task(deletion::task_id(endpoint)), b"?")]);
    let server = Server::start_on_file(directory.path(), &[PRIVATE]).expecting_errors("damaged");
    server.admin("DELETE", &format!("/admin/v1/webhook_endpoints/{}", hook.id), &Value::Null).ok();
    let organization = again(&server, &organization);
    wait_for(
        "the end of its delivery",
        || observed(&organization, "deliveries", "").iter().all(|one| one["status"] == "failed").then_some(()),
        || format!("{:?}", observed(&organization, "deliveries", "")),
    );
}

#[test]
fn a_damaged_organization_is_left_out_of_the_list_and_the_others_are_listed() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_on_file(directory.path(), &[]);
    let make = |name: &str| {
        let made = server.admin("POST", "/admin/v1/organizations", &json!({"name": name})).ok();
        made["id"].as_str().expect("an id").to_owned()
    };
    let [oldest, damaged, newest] = ["Moonlight", "break-me-here", "Sunshine"].map(make);
    stop(server);
    flip(&directory.path().join("store.redb"), "break-me-here");

    let server = Server::start_on_file(directory.path(), &[]).expecting_errors("damaged");
    let page = |query: &str| {
        let page = server.admin("GET", &format!("/admin/v1/organizations?{query}"), &Value::Null).ok();
        let ids =
            page["data"].as_array().expect("a list").iter().map(|one| one["id"].as_str().unwrap_or("").to_owned());
        (ids.collect::<Vec<_>>(), page["next_cursor"].as_str().map(ToOwned::to_owned))
    };
    assert_eq!(page("limit=100"), (vec![newest.clone(), oldest.clone()], None));
    let (first, cursor) = page("limit=1");
    assert_eq!(first, [newest]);
    let rest = page(&format!("limit=1&starting_after={}", cursor.expect("there is more")));
    assert_eq!(rest, (vec![oldest], None));
    assert_eq!(metric(&server, DAMAGED), 1.0);
    assert!(server.log().contains(&format!("organization {damaged}")), "the log names it");
    let read = server.admin("GET", &format!("/admin/v1/organizations/{damaged}"), &Value::Null);
    assert_eq!(read.status, 500, "its reader is told");
}
