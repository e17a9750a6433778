//! A store with every kind of object of a person.

use super::{IN_LEADS, KEPT, SECRETS};
use rental_core::{
    error::Error,
    operations::{self, Create, Edge, Intent, Prepared, Update, erased::erased_key, idempotency::IdempotencyKey},
    resources::{
        self, Collection, Resource,
        audit_entry::AuditEntry,
        delivery::{Attempt, Delivery, DeliveryStatus},
        effects::index_keys,
        event,
        organization::{Organization, SYSTEM},
        to_json,
    },
    rows::key,
    schema::ResourceSpec,
    store::{Answer, Batch, Commit, Key, Prior, Record, Scanned, Span, Store, StoreError, memory::Memory},
    tasks::{self, Step, erasing::Erase},
    value::{CustomerId, Id, OrganizationId, Timestamp},
    webhooks::secret::{MasterKey, MasterKeys},
};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

const BASE: u64 = 1_767_225_600_000;
/// The idempotency key of the request that made the person.
pub(crate) const PERSON: &str = "key-of-the-person";

const fn nth(n: u64) -> u128 {
    ((BASE + n) as u128) << 80 | 7 << 76 | 2 << 62 | n as u128
}

/// The organization: the first object of the store.
pub(crate) const ORGANIZATION: OrganizationId = OrganizationId::from_u128(nth(0));

/// Ids and times that rise.
#[derive(Default)]
pub(crate) struct Counting(AtomicU64);

impl Edge for Counting {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis((BASE + self.0.load(Ordering::Relaxed)) as i64)
    }

    fn new_id(&self) -> Uuid {
        Uuid::from_u128(nth(self.0.fetch_add(1, Ordering::Relaxed)))
    }
}

pub(crate) struct World {
    pub(crate) store: Memory,
    pub(crate) edge: Counting,
    pub(crate) organization: Organization,
    pub(crate) vehicle: String,
}

pub(crate) async fn rows(store: &dyn Store, span: &Span) -> Vec<Record> {
    store.scan(span, usize::MAX).await.unwrap().into_iter().map(|row| row.unwrap()).collect()
}

/// Does one step of a task.
pub(crate) async fn step(store: &dyn Store, record: &Record) -> Step {
    try_step(store, record).await.unwrap()
}

pub(crate) async fn try_step(store: &dyn Store, record: &Record) -> Result<Step, Error> {
    let keys = MasterKeys::new(vec![MasterKey::new(&[7; 32])]).unwrap();
    let now = Timestamp::from_millis((BASE + 1_000_000) as i64);
    tasks::step(store, record, (&keys, now), &mut Vec::new()).await
}

/// Whether an idempotency key has a stored response.
pub(crate) async fn keep_key(store: &dyn Store, name: &str) -> bool {
    store.get(&[key::idempotency_record(ORGANIZATION, name)]).await.unwrap()[0].is_some()
}

/// A store that commits nothing.
struct Dead<'m>(&'m Memory);

impl Store for Dead<'_> {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        self.0.get(keys)
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        self.0.scan(span, limit)
    }

    fn commit(&self, _: Batch) -> Answer<'_, Commit> {
        Box::pin(std::future::ready(Err(StoreError::Unavailable("killed".into()))))
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.0.ready()
    }
}

pub(crate) fn spec(object: &str) -> &'static ResourceSpec {
    resources::spec_of(object).unwrap()
}

pub(crate) fn collection(object: &str) -> &'static Collection {
    let all = resources::api().filter(|one| one.create.is_some()).chain(resources::recorded());
    all.into_iter().find(|one| one.spec.object == object).unwrap()
}

fn changing(object: &str) -> &'static Collection {
    resources::api().find(|one| one.spec.object == object).unwrap()
}

impl World {
    pub(crate) async fn new() -> Self {
        let (store, edge) = (Memory::default(), Counting::default());
        let entry = resources::RESOURCES.iter().find(|entry| entry.spec.object == "organization").unwrap();
        let (collection, body) = (entry.operator.as_ref().unwrap(), br#"{"name":"Navy"}"#);
        let system = Organization::system();
        let intent = Create { collection, organization: &system, body: body.into(), given: &[] };
        let prepared = intent.prepare(&store, &edge).await.unwrap();
        let organization: Organization = serde_json::from_slice(&prepared.body).unwrap();
        assert_eq!(store.commit(prepared.batch).await, Ok(Commit::Applied));
        assert_eq!(organization.id, ORGANIZATION);
        let mut world = Self { store, edge, organization, vehicle: String::new() };
        let vehicle = world.create("vehicle", json!({"name": "White Tesla", "daily_rate": 10})).await;
        world.vehicle = vehicle["id"].as_str().unwrap().to_owned();
        world
    }

    pub(crate) async fn write(&self, key: Option<&IdempotencyKey>, intent: &dyn Intent) -> Result<Value, Error> {
        let render = |_: &Error| (400, bytes::Bytes::from_static(b"{}"));
        let written = operations::write(&self.store, &self.edge, ORGANIZATION, key, intent, (200, &render)).await?;
        Ok(serde_json::from_slice(&written.body).unwrap())
    }

    pub(crate) async fn prepare_create(&self, object: &str, body: &Value) -> Result<Prepared, Error> {
        let body = body.to_string();
        let collection = collection(object);
        let intent = Create { collection, organization: &self.organization, body: (&body).into(), given: &[] };
        intent.prepare(&self.store, &self.edge).await
    }

    pub(crate) async fn prepare_update(&self, object: &str, id: &str, body: &Value) -> Result<Prepared, Error> {
        let body = body.to_string();
        let (collection, organization) = (changing(object), &self.organization);
        let intent = Update { collection, organization, id, body: (&body).into(), expected: &|_| true };
        intent.prepare(&self.store, &self.edge).await
    }

    async fn made(&self, prepared: Result<Prepared, Error>) -> Value {
        let Prepared { batch, body, .. } = prepared.unwrap();
        assert!(batch.is_empty() || self.store.commit(batch).await == Ok(Commit::Applied));
        serde_json::from_slice(&body).unwrap()
    }

    pub(crate) async fn create(&self, object: &str, body: Value) -> Value {
        self.made(self.prepare_create(object, &body).await).await
    }

    pub(crate) async fn record(&self, object: &str, body: Value) -> Value {
        self.create(object, body).await
    }

    pub(crate) async fn create_with_key(&self, object: &str, body: &Value, name: &str) -> Value {
        let text = body.to_string();
        let key = IdempotencyKey::new(name.as_bytes(), "POST", object, text.as_bytes()).unwrap();
        let collection = collection(object);
        let intent = Create { collection, organization: &self.organization, body: (&text).into(), given: &[] };
        self.write(Some(&key), &intent).await.unwrap()
    }

    pub(crate) async fn update(&self, object: &str, id: &str, body: Value) -> Value {
        self.made(self.prepare_update(object, id, &body).await).await
    }

    /// How a PATCH is refused.
    pub(crate) async fn refusal(&self, object: &str, id: &str, body: Value) -> &'static str {
        match self.prepare_update(object, id, &body).await {
            Err(Error::Conflict(_)) => "conflict",
            Err(_) => "another error",
            Ok(_) => "not at all",
        }
    }

    /// The field for which a POST is refused.
    pub(crate) async fn creation_refused(&self, object: &str, body: Value) -> String {
        match self.prepare_create(object, &body).await {
            Err(Error::Invalid(errors)) => errors.listed()[0].param.clone(),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn get(&self, object: &str, id: &str) -> Value {
        let record = operations::get(&self.store, ORGANIZATION, spec(object), id).await.unwrap();
        serde_json::from_slice(&record.value).unwrap()
    }

    /// The id of an object of the person.
    pub(crate) async fn one_of(&self, object: &str, person: &str) -> String {
        let all = rows(&self.store, &Span::under(key::records(ORGANIZATION, spec(object)))).await;
        let all = all.iter().map(|row| serde_json::from_slice::<Value>(&row.value).unwrap());
        let mut own = all.filter(|one| one["customer_id"] == json!(person));
        own.next().unwrap()["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn erase(&self, person: &str) -> Value {
        self.write(None, &Erase { organization: &self.organization, id: person }).await.unwrap()
    }

    pub(crate) async fn erase_in_other(&self, person: &str) -> Result<Value, &'static str> {
        let other = Organization { id: OrganizationId::from_u128(5), ..self.organization.clone() };
        match self.write(None, &Erase { organization: &other, id: person }).await {
            Err(Error::NotFound { object }) => Err(object),
            other => Ok(other.unwrap()),
        }
    }

    pub(crate) async fn overwrite(&self, record: &Record, text: &str) {
        let mut batch = Batch::default();
        batch.replace(record.key.clone(), record.revision, text.to_owned().into());
        assert_eq!(self.store.commit(batch).await, Ok(Commit::Applied));
    }

    /// A step whose commit never happens.
    pub(crate) async fn refused(&self, record: &Record) {
        assert!(try_step(&Dead(&self.store), record).await.is_err());
    }

    /// A person, with everything that the store can know about one.
    pub(crate) async fn person(&self) -> String {
        let [name, email, phone, language, channel, notes, booking, place] = SECRETS;
        let body = json!({
            "full_name": name, "email": email, "phone": phone, "preferred_language": language,
            "source_channel": channel, "notes": notes,
        });
        let made = self.create_with_key("customer", &body, PERSON).await;
        let person = made["id"].as_str().unwrap().to_owned();
        let rental = json!({
            "customer_id": person, "vehicle_id": self.vehicle, "booking_id": booking, "delivery_location": place,
            "start_date": "2026-06-01", "end_date": "2026-06-05", "status": "APPROVED",
        });
        let rental = self.create_with_key("rental", &rental, "key-of-the-rental").await;
        self.update("rental", rental["id"].as_str().unwrap(), json!({"status": "ACTIVE"})).await;
        self.create("lead", json!({"customer_id": person, "raw_data": {"text": IN_LEADS[0]}})).await;
        self.create("lead", json!({"raw_data": {"text": IN_LEADS[1], "mail": format!("From:\n{email}\n")}})).await;
        for _ in 0..2 {
            let lines = json!([{"description": KEPT, "amount": 5}]);
            self.record("invoice", json!({"customer_id": person, "lines": lines})).await;
        }
        self.record("toll", json!({"amount": 1, "agency": "MTA", "customer_id": person})).await;
        let violation = json!({"summons_number": "1", "issuer": "NYC", "amount_due": 5, "customer_id": person});
        self.record("violation", violation).await;
        self.delivery("customer.created", name).await;
        self.audit_entry(&person).await;
        person
    }

    /// A delivery of the oldest event that contains a word, whose receiver answered with the name.
    pub(crate) async fn delivery(&self, of: &str, name: &str) {
        let events = rows(&self.store, &Span::under(key::records(ORGANIZATION, &event::SPEC))).await;
        let event = events.iter().find(|row| !super::found(std::slice::from_ref(row), of).is_empty());
        let (id, now) = (Id::from_uuid(event.unwrap().key.id().unwrap()), self.edge.now());
        let mut delivery =
            Delivery::new(Id::from_uuid(self.edge.new_id()), Id::from_u128(1), (id, "customer.created"), now);
        delivery.status = DeliveryStatus::Delivered;
        let response = Some(format!("thanks for {name}"));
        delivery.log.push(Attempt { at: now, duration_ms: 1, status: Some(200), error: None, response });
        self.insert(ORGANIZATION, &delivery).await;
    }

    async fn insert<T: Resource>(&self, organization: OrganizationId, object: &T) {
        let mut batch = Batch::default();
        batch.insert(T::key(organization, object.id()), to_json(object).unwrap());
        index_keys(organization, object).into_iter().for_each(|place| batch.mark(place, Prior::New));
        assert_eq!(self.store.commit(batch).await, Ok(Commit::Applied));
    }

    /// What an operator sent to record an invoice.
    async fn audit_entry(&self, person: &str) {
        let body = json!({"customer_id": person, "lines": [{"description": KEPT, "amount": 5}]}).to_string();
        let entry = AuditEntry {
            id: Id::from_uuid(self.edge.new_id()),
            object: "audit_entry".into(),
            action: "recordInvoice".into(),
            actor: Some("root".into()),
            actor_id: None,
            address: None,
            organization_id: Some(ORGANIZATION),
            resource_id: None,
            path: "/x".into(),
            details: AuditEntry::details(body.as_bytes()),
            request_id: "req".into(),
            created_at: self.edge.now(),
        };
        self.insert(SYSTEM, &entry).await;
    }

    /// The row of an erased person.
    pub(crate) async fn mark_of(&self, person: &str) -> Option<Record> {
        let place = erased_key(ORGANIZATION, CustomerId::parse(person).unwrap());
        self.store.get(&[place]).await.unwrap().pop().flatten()
    }
}
