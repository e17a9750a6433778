//! The deletion of an organization leaves a store as if the organization had never existed, except for audit entries.

use super::{Between, Fixed, commit, endpoint_object, keys, later, next_step, rows, task};
use rental_core::{
    check::Audit,
    erasing::CustomerErasure,
    error::Error,
    imports::organization::{Contents, contents, last_change},
    operations::{self, Create, IssueApiKey, NewApiKey, edge::Edge as _, idempotency::IdempotencyKey},
    resources::{
        self, Collection, Resource, audit_entry, effects,
        invoice::Invoice,
        of,
        organization::{Organization, SYSTEM},
        row_words::in_words,
        to_json,
        toll::Toll,
        webhook_endpoint::WebhookEndpoint,
    },
    rows::{
        Tag,
        calendar_feed::ImportedFeed,
        key,
        outbox::{self, OutboxEvent},
        recheck::{Marked, Recheck},
        vehicle_feed::{Token, VehicleFeed},
    },
    store::{Answer, Batch, Commit, Key, Prior, Record, Scanned, Span, Store, get_one, memory::Memory},
    tasks::{Step, Task, Work, organization_deletion as deletion, organization_hold, step},
    value::{
        AuditEntryId, CalendarFeedId, CustomerId, EndpointId, EventId, OrganizationId, ServerId, Timestamp, VehicleId,
    },
    webhooks::fan_out,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, atomic::AtomicU64},
};

const LEAVING: OrganizationId = OrganizationId::from_u128(7);
const STAYING: OrganizationId = OrganizationId::from_u128(9);
const INVOICES: Collection = of::<Invoice>().create().done();
const TOLLS: Collection = of::<Toll>().create().done();

fn organization(id: OrganizationId) -> Organization {
    Organization { id, ..Organization::system() }
}

fn collection(object: &str) -> &'static Collection {
    let own = [&INVOICES, &TOLLS].into_iter().chain(resources::api());
    own.into_iter().find(|one| one.spec.object == object && one.create.is_some()).unwrap()
}

/// Creates an object with an idempotency key.
async fn create(store: &Memory, edge: &Fixed, whose: &Organization, object: &str, body: Value) -> String {
    let body = body.to_string();
    let name = edge.new_id().to_string();
    let idempotency_key = IdempotencyKey::new(name.as_bytes(), "POST", "/", body.as_bytes()).unwrap();
    let intent =
        Create { collection: collection(object), organization: whose, body: body.as_bytes().into(), given: &[] };
    let render = |error: &Error| panic!("{error:?}");
    let written = operations::write(store, edge, whose.id, Some(&idempotency_key), &intent, (200, &render)).await;
    let made: Value = serde_json::from_slice(&written.unwrap().body).unwrap();
    made["id"].as_str().unwrap().to_owned()
}

/// Adds a webhook endpoint with its secrets and its owner.
async fn add_endpoint(store: &Memory, whose: OrganizationId, id: EndpointId) -> WebhookEndpoint {
    let endpoint = WebhookEndpoint { organization_id: whose, ..endpoint_object(id) };
    let mut batch = Batch::default();
    batch.insert(WebhookEndpoint::key(SYSTEM, id), to_json(&endpoint).unwrap());
    effects::index_keys(SYSTEM, &endpoint).into_iter().for_each(|entry| batch.mark(entry, Prior::New));
    batch.insert(key::secrets(id), "[]".into());
    batch.insert(key::subscribed(whose), "".into());
    batch.insert(key::owner(id), ServerId::from_u128(1).as_bytes().to_vec().into());
    assert_eq!(commit(store, batch).await, Commit::Applied);
    endpoint
}

/// Makes deliveries of everything in the outbox.
async fn fan_out(store: &Memory, edge: &Fixed, endpoint: &WebhookEndpoint) {
    let waiting = rows(store, &key::outbox_rows()).await;
    let waiting: Vec<OutboxEvent> = waiting.iter().map(|row| outbox::read(row).unwrap()).collect();
    let waiting: Vec<OutboxEvent> =
        waiting.into_iter().filter(|event| event.organization == endpoint.organization_id).collect();
    let endpoints = [(endpoint.organization_id, vec![endpoint.clone()])].into();
    let (batch, _) = fan_out::plan(&waiting, &endpoints, edge).unwrap();
    assert_eq!(commit(store, batch).await, Commit::Applied);
}

/// Adds an organization with rows of every kind.
async fn add_organization(store: &Memory, edge: &Fixed, id: OrganizationId) {
    let (whose, system) = (organization(id), Organization::system());
    let mut batch = Batch::default();
    batch.insert(Organization::key(SYSTEM, id), to_json(&whose).unwrap());
    assert_eq!(commit(store, batch).await, Commit::Applied);
    let endpoint = add_endpoint(store, id, EndpointId::from_uuid(id.uuid())).await;
    for number in 0..3u8 {
        let random: [u8; 32] = std::array::from_fn(|at| if at == 0 { number } else { id.as_bytes()[15] });
        let (new, body) = (NewApiKey::new(&random), json!({"organization_id": id, "scope": "read"}).to_string());
        let name = format!("{id}-{number}");
        let idempotency_key = IdempotencyKey::new(name.as_bytes(), "POST", "/", b"").unwrap();
        let (intent, render) = (IssueApiKey::new(&new, &system, body.as_bytes()), |error: &Error| panic!("{error:?}"));
        operations::write(store, edge, SYSTEM, Some(&idempotency_key), &intent, (200, &render)).await.unwrap();
    }
    let vehicle = json!({"name": "Kia", "plate": "ABC123", "plate_state": "NY", "daily_rate": 40});
    let vehicle = create(store, edge, &whose, "vehicle", vehicle).await;
    let ada = json!({"full_name": "Ada Lovelace", "email": "ada@example.com"});
    let customer = create(store, edge, &whose, "customer", ada).await;
    let rental = json!({"vehicle_id": vehicle, "customer_id": customer, "status": "APPROVED", "start_date": "2026-01-10", "end_date": "2026-01-12"});
    create(store, edge, &whose, "rental", rental).await;
    let toll =
        json!({"amount": 4.5, "agency": "MTA", "vehicle_id": vehicle, "customer_id": customer, "transaction_id": "T1"});
    let toll = create(store, edge, &whose, "toll", toll).await;
    let invoice = json!({"customer_id": customer, "lines": [{"toll_id": toll}]});
    create(store, edge, &whose, "invoice", invoice).await;
    fan_out(store, edge, &endpoint).await;
    for _ in 0..2 * deletion::BATCH {
        create(store, edge, &whose, "lead", json!({"customer_id": customer, "raw_data": {"message": "hello"}})).await;
    }
    let mut batch = Batch::default();
    batch.insert(key::logo(id), b"\x89PNG\r\n\x1a\n"[..].into());
    let vehicle = VehicleId::parse(&vehicle).unwrap();
    let token = Token::new(id, vehicle, &[7; 32]).0;
    batch.insert(key::vehicle_feed(id, vehicle), VehicleFeed::new(&token, edge.now()).value());
    let removed = ImportedFeed { removed: true, ..ImportedFeed::new(None, edge.now()) };
    batch.insert(key::calendar_feed(id, CalendarFeedId::from_uuid(edge.new_id())), to_json(&removed).unwrap());
    batch.insert(key::recheck(id, Marked::vehicle(vehicle)), Recheck::of_all().value());
    batch.mark(key::erased(id, &resources::vehicle::SPEC, edge.new_id()), Prior::New);
    assert_eq!(commit(store, batch).await, Commit::Applied);
}

/// Every row by its key, without audit entries and what finds them.
async fn without_audit(store: &Memory) -> BTreeMap<Key, Record> {
    let own = [key::records(SYSTEM, &audit_entry::SPEC), {
        let entry = key::records(SYSTEM, &audit_entry::SPEC);
        Key::from_bytes(&[&[Tag::IndexEntry as u8], &entry.as_bytes()[1..]].concat())
    }];
    let is_audit = |key: &Key| own.iter().any(|prefix| key.as_bytes().starts_with(prefix.as_bytes()));
    let all = rows(store, &Span::everything()).await;
    all.into_iter().filter(|row| !is_audit(&row.key)).map(|row| (row.key.clone(), row)).collect()
}

/// The store has these rows and no others, except for audit entries.
async fn assert_has(store: &Memory, expected: &BTreeMap<Key, Record>) {
    let found = without_audit(store).await;
    let left: Vec<String> = found.keys().filter(|key| !expected.contains_key(key)).map(in_words).collect();
    assert_eq!(left, Vec::<String>::new(), "rows are left");
    let lost: Vec<String> =
        expected.iter().filter(|(key, row)| found.get(key) != Some(row)).map(|(key, _)| in_words(key)).collect();
    assert_eq!(lost, Vec::<String>::new(), "rows of others are gone or changed");
}

/// What a check of the store finds.
async fn problems(store: &Memory) -> Vec<String> {
    let all: BTreeMap<Key, Record> =
        rows(store, &Span::everything()).await.into_iter().map(|row| (row.key.clone(), row)).collect();
    let get = |key: &Key| Ok(all.get(key).cloned());
    let mut audit = Audit::new(&get);
    all.values().for_each(|row| audit.row(row));
    audit.finish().listed.iter().map(|problem| format!("{problem:?}")).collect()
}

/// The store of [`STAYING`], and what is in it.
async fn other() -> (Memory, Fixed, BTreeMap<Key, Record>) {
    let (store, edge) = (Memory::default(), Fixed(AtomicU64::new(1 << 40)));
    add_organization(&store, &edge, STAYING).await;
    assert_eq!(problems(&store).await, Vec::<String>::new());
    let before = without_audit(&store).await;
    (store, edge, before)
}

async fn begin(store: &Memory, edge: &Fixed) -> Commit {
    let record = store.get(&[Organization::key(SYSTEM, LEAVING)]).await.unwrap().pop().flatten().unwrap();
    let ids = (AuditEntryId::from_uuid(edge.new_id()), "req_1", later());
    let deletion::Begun { mut batch, state } = deletion::begin(store, &record, LEAVING, ids).await.unwrap();
    Task::organization_deletion(state, later()).begin(&mut batch).unwrap();
    commit(store, batch).await
}

#[tokio::test]
async fn a_deletion_leaves_the_store_as_if_the_organization_had_never_existed() {
    let (store, edge, before) = other().await;
    add_organization(&store, &edge, LEAVING).await;
    let added: BTreeSet<u8> = without_audit(&store)
        .await
        .keys()
        .filter(|key| !before.contains_key(key))
        .map(|key| key.as_bytes()[0])
        .collect();
    let elsewhere = [Tag::Marker, Tag::Bell, Tag::Heartbeat, Tag::Task, Tag::Usage];
    let kinds: BTreeSet<u8> = Tag::ALL.iter().filter(|tag| !elsewhere.contains(tag)).map(|tag| *tag as u8).collect();
    assert_eq!(added, kinds, "the organization has rows of every kind");
    assert_eq!(begin(&store, &edge).await, Commit::Applied);
    // Nothing but the row of the task is kept from one step to the next, as after a kill.
    let mut steps = 0;
    while let Some(record) = task(&store).await {
        assert_eq!(problems(&store).await, Vec::<String>::new(), "after {steps} steps");
        let left = rows(&store, &Span::everything()).await.len();
        next_step(&store, &record).await;
        let gone = left - rows(&store, &Span::everything()).await.len().min(left);
        assert!(gone <= 3 * deletion::BATCH, "a step is bounded: {gone}");
        steps += 1;
    }
    assert!(steps > 10, "{steps}");
    assert_has(&store, &before).await;
    assert_eq!(problems(&store).await, Vec::<String>::new());
    let entry = rows(&store, &Span::under(key::records(SYSTEM, &audit_entry::SPEC))).await.pop().unwrap();
    let entry: Value = serde_json::from_slice(&entry.value).unwrap();
    assert_eq!((&entry["action"], &entry["organization_id"]), (&json!(deletion::FINISHED), &json!(LEAVING)));
    assert!(entry["details"]["rows"].as_u64().unwrap() > 1000, "{entry}");
}

#[tokio::test]
async fn damaged_rows_do_not_stop_a_deletion() {
    let (store, edge, before) = other().await;
    add_organization(&store, &edge, LEAVING).await;
    let mut damage = Batch::default();
    for tag in [Tag::Record, Tag::IdempotencyRecord, Tag::Outbox, Tag::Due, Tag::Identity, Tag::Secrets] {
        let all = without_audit(&store).await;
        let victim =
            all.values().rev().find(|row| row.key.as_bytes()[0] == tag as u8 && !before.contains_key(&row.key));
        damage.put(victim.unwrap().key.clone(), "nonsense".into(), Prior::Any);
    }
    assert_eq!(commit(&store, damage).await, Commit::Applied);
    assert_eq!(begin(&store, &edge).await, Commit::Applied);
    while let Some(record) = task(&store).await {
        let mut damaged = Vec::new();
        step(&store, &record, (&keys(), later()), &mut damaged).await.unwrap();
        assert_eq!(damaged, []);
    }
    assert_has(&store, &before).await;
}

#[tokio::test]
async fn nothing_is_written_for_an_organization_that_was_deleted_after_the_write_was_prepared() {
    let (store, edge, before) = other().await;
    add_organization(&store, &edge, LEAVING).await;
    // The deletion and all its steps happen between the reads and the commit of the write.
    let leaving = organization(LEAVING);
    let record = store.get(&[Organization::key(SYSTEM, LEAVING)]).await.unwrap().pop().flatten().unwrap();
    let ids = (AuditEntryId::from_uuid(edge.new_id()), "req_1", later());
    let deletion::Begun { mut batch, state } = deletion::begin(&store, &record, LEAVING, ids).await.unwrap();
    Task::organization_deletion(state, later()).begin(&mut batch).unwrap();
    let contended = Between(&store, Mutex::new(Some(batch)));
    let intent =
        Create { collection: collection("lead"), organization: &leaving, body: b"{}".as_slice().into(), given: &[] };
    let idempotency_key = IdempotencyKey::new(b"late", "POST", "/", b"").unwrap();
    let render = |error: &Error| panic!("{error:?}");
    let late = operations::write(&contended, &edge, LEAVING, Some(&idempotency_key), &intent, (200, &render)).await;
    assert_eq!(late.unwrap_err(), Error::NotFound { object: "organization" });
    while let Some(record) = task(&store).await {
        next_step(&store, &record).await;
    }
    assert_has(&store, &before).await;
}

#[tokio::test]
async fn an_endpoint_that_is_created_while_a_deletion_begins_makes_it_begin_again() {
    let (store, edge, _) = other().await;
    let mut batch = Batch::default();
    batch.insert(Organization::key(SYSTEM, LEAVING), to_json(&organization(LEAVING)).unwrap());
    assert_eq!(commit(&store, batch).await, Commit::Applied);
    let record = store.get(&[Organization::key(SYSTEM, LEAVING)]).await.unwrap().pop().flatten().unwrap();
    let ids = (AuditEntryId::from_uuid(edge.new_id()), "req_1", later());
    let begun = deletion::begin(&store, &record, LEAVING, ids).await.unwrap();
    add_endpoint(&store, LEAVING, EndpointId::from_u128(5)).await;
    assert_eq!(commit(&store, begun.batch).await, Commit::Stale(key::subscribed(LEAVING)));
    assert_eq!(begin(&store, &edge).await, Commit::Applied);
    let left = [WebhookEndpoint::key(SYSTEM, EndpointId::from_u128(5)), key::secrets(EndpointId::from_u128(5))];
    assert_eq!(store.get(&left).await.unwrap(), [None, None]);
}

#[tokio::test]
async fn due_rows_of_an_endpoint_that_was_deleted_before_go_too() {
    let (store, edge, before) = other().await;
    add_organization(&store, &edge, LEAVING).await;
    let earlier = EndpointId::from_u128(77);
    let mut batch = Batch::default();
    batch.insert(WebhookEndpoint::key(SYSTEM, earlier), "{}".into());
    fan_out::add(&mut batch, LEAVING, earlier, (EventId::from_uuid(edge.new_id()), "lead.received"), &edge).unwrap();
    // Its check sees the store before the batch.
    batch.checks.clear();
    batch.delete(WebhookEndpoint::key(SYSTEM, earlier));
    assert_eq!(commit(&store, batch).await, Commit::Applied);
    assert_eq!(begin(&store, &edge).await, Commit::Applied);
    while let Some(record) = task(&store).await {
        assert_ne!(next_step(&store, &record).await, Step::Overtaken);
    }
    assert_has(&store, &before).await;
}

async fn hold(store: &Memory) -> Result<(), Error> {
    organization_hold::hold(store, LEAVING, later()).await
}

/// Tries to create a lead.
async fn write_lead(store: &dyn Store, edge: &Fixed) -> Result<(), Error> {
    let (whose, render) = (organization(LEAVING), |error: &Error| panic!("{error:?}"));
    let collection = collection("lead");
    let intent = Create { collection, organization: &whose, body: b"{}"[..].into(), given: &[] };
    operations::write(store, edge, LEAVING, None, &intent, (200, &render)).await.map(drop)
}

#[tokio::test]
async fn while_a_deletion_is_decided_writes_wait_also_those_prepared_before() {
    let (store, edge, _) = other().await;
    add_organization(&store, &edge, LEAVING).await;
    hold(&store).await.unwrap();
    assert_eq!(problems(&store).await, Vec::<String>::new());
    assert!(matches!(write_lead(&store, &edge).await, Err(Error::Unavailable(_))));
    assert!(matches!(hold(&store).await, Err(Error::Unavailable(_))), "one request decides at a time");
    // Others write.
    create(&store, &edge, &organization(STAYING), "lead", json!({})).await;
    organization_hold::release(&store, LEAVING).await.unwrap();
    write_lead(&store, &edge).await.unwrap();
    // The hold begins between the reads and the commit of the write.
    let row = {
        hold(&store).await.unwrap();
        let row = task(&store).await.unwrap();
        organization_hold::release(&store, LEAVING).await.unwrap();
        row
    };
    let mut batch = Batch::default();
    batch.insert(row.key, row.value);
    let between = Between(&store, Mutex::new(Some(batch)));
    assert!(matches!(write_lead(&between, &edge).await, Err(Error::Unavailable(_))));
}

#[tokio::test]
async fn a_hold_becomes_the_deletion_or_ends() {
    let (store, edge, before) = other().await;
    add_organization(&store, &edge, LEAVING).await;
    hold(&store).await.unwrap();
    // The request may be at work.
    let record = task(&store).await.unwrap();
    let step_at = async |now: u64| {
        step(&store, &record, (&keys(), Timestamp::from_millis(now.try_into().unwrap())), &mut Vec::new())
            .await
            .unwrap()
    };
    assert_eq!(step_at(later().millis() + 30_000).await, Step::Overtaken);
    assert_eq!(task(&store).await.unwrap(), record, "nothing is written");
    // The server of the request was killed.
    assert_eq!(step_at(later().millis() + 30_001).await, Step::Done);
    assert!(matches!(organization_hold::extend(&store, LEAVING, later()).await, Err(Error::Unavailable(_))));
    write_lead(&store, &edge).await.unwrap();
    let place = Organization::key(SYSTEM, LEAVING);
    let organization = store.get(std::slice::from_ref(&place)).await.unwrap().pop().flatten().unwrap();
    let delete = async || {
        let ids = (AuditEntryId::from_uuid(edge.new_id()), "req_1", later());
        let mut begun = deletion::begin(&store, &organization, LEAVING, ids).await.unwrap();
        let task = Task::organization_deletion(begun.state, later());
        organization_hold::replace_hold(&store, &task, &mut begun.batch).await?;
        Ok::<_, Error>(commit(&store, begun.batch).await)
    };
    assert!(matches!(delete().await, Err(Error::Unavailable(_))), "without a hold a write may have come in between");
    hold(&store).await.unwrap();
    assert_eq!(delete().await.unwrap(), Commit::Applied);
    organization_hold::release(&store, LEAVING).await.unwrap();
    while let Some(record) = task(&store).await {
        next_step(&store, &record).await;
    }
    assert_has(&store, &before).await;
}

/// A store in which an export takes its snapshot after a write was prepared, and before it is committed.
struct ExportedBetween<'m>(&'m Memory, Mutex<Option<Contents>>);

impl Store for ExportedBetween<'_> {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        self.0.get(keys)
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        self.0.scan(span, limit)
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        Box::pin(async move {
            let exported = contents(self.0, LEAVING).await.unwrap();
            *self.1.lock().unwrap() = Some(exported);
            self.0.commit(batch).await
        })
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.0.ready()
    }
}

#[tokio::test]
async fn a_write_that_is_committed_after_an_export_is_missed_by_times_and_found_by_contents() {
    let (store, edge, _) = other().await;
    add_organization(&store, &edge, LEAVING).await;
    let whose = organization(LEAVING);
    let slow = ExportedBetween(&store, Mutex::default());
    // A new object.
    write_lead(&slow, &edge).await.unwrap();
    let exported = slow.1.lock().unwrap().take().unwrap();
    assert!(last_change(&store, &whose).await.unwrap() < later(), "its times are those of before the export");
    let present = contents(&store, LEAVING).await.unwrap();
    assert_eq!(present.records, exported.records + 1);
    assert_ne!(present.sha256, exported.sha256);
    // A change of an object: the number of records stays.
    let task = erasure(&store).await;
    next_step(&slow, &task).await;
    let exported = slow.1.lock().unwrap().take().unwrap();
    let present = contents(&store, LEAVING).await.unwrap();
    assert_eq!(present.records, exported.records);
    assert_ne!(present.sha256, exported.sha256);
    // Nothing was written since.
    assert_eq!(contents(&store, LEAVING).await.unwrap(), present);
    create(&store, &edge, &organization(STAYING), "lead", json!({})).await;
    assert_eq!(contents(&store, LEAVING).await.unwrap(), present, "writes of others do not count");
}

/// Begins a task that erases the only customer of [`LEAVING`]; its first step rewrites the leads.
async fn erasure(store: &Memory) -> Record {
    let customers = rows(store, &Span::under(key::records(LEAVING, &resources::customer::SPEC))).await;
    let customer = CustomerId::from_uuid(customers[0].key.id().unwrap());
    let mut state = CustomerErasure::new(LEAVING, customer, Vec::new());
    state.phase = "leads".to_owned();
    let id = rental_core::value::TaskId::from_uuid(customer.uuid());
    let task = Task { id, work: Work::CustomerErasure(state), created_at: later() };
    let mut batch = Batch::default();
    task.begin(&mut batch).unwrap();
    assert_eq!(commit(store, batch).await, Commit::Applied);
    get_one(store, &key::task(id)).await.unwrap().unwrap()
}

#[tokio::test]
async fn an_erasure_waits_while_a_deletion_is_decided() {
    let (store, edge, _) = other().await;
    add_organization(&store, &edge, LEAVING).await;
    let task = erasure(&store).await;
    let before = contents(&store, LEAVING).await.unwrap();
    hold(&store).await.unwrap();
    assert_eq!(next_step(&store, &task).await, Step::Overtaken);
    assert_eq!(contents(&store, LEAVING).await.unwrap(), before);
    organization_hold::release(&store, LEAVING).await.unwrap();
    assert_eq!(next_step(&store, &task).await, Step::Continue);
    assert_ne!(contents(&store, LEAVING).await.unwrap(), before);
}

#[tokio::test]
async fn a_hold_that_is_extended_lasts_longer() {
    let (store, edge, _) = other().await;
    add_organization(&store, &edge, LEAVING).await;
    hold(&store).await.unwrap();
    let much_later = Timestamp::from_millis(49_000);
    organization_hold::extend(&store, LEAVING, much_later).await.unwrap();
    let record = task(&store).await.unwrap();
    let outcome = step(&store, &record, (&keys(), much_later), &mut Vec::new()).await.unwrap();
    assert_eq!(outcome, Step::Overtaken, "nobody forgot it");
    assert!(matches!(write_lead(&store, &edge).await, Err(Error::Unavailable(_))));
}
