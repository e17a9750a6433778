//! A PATCH reads the stored record once, and everything that it writes or returns is made of the one new value.

use rental_core::{
    Platform,
    error::Error,
    operations::{self, Create, Intent, Preparing, Update, Written, edge::Edge, idempotency::IdempotencyKey},
    platform::PlatformEdge,
    resources::{
        self, Collection, Object, Resource, RuleContext,
        event::{self, EventType},
        of,
        organization::{Organization, SYSTEM},
        vehicle::{self, Vehicle},
    },
    rows::key,
    schema::{Fields, IndexValue, ResourceSpec},
    store::{Batch, Span, Store, memory::Memory},
    value::{FieldValue, FromFields, Next, OrganizationId, Timestamp, VehicleId, kinds},
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use std::{
    cell::Cell,
    future::{Future, IntoFuture},
    sync::atomic::{AtomicU64, Ordering},
    task::{Context, Poll, Waker},
};
use uuid::Uuid;

thread_local! {
    static READINGS: Cell<usize> = const { Cell::new(0) };
    static WRITINGS: Cell<usize> = const { Cell::new(0) };
}

/// A vehicle that counts how often one is read from JSON and written as JSON.
#[derive(Clone, PartialEq)]
struct Counted(Vehicle);

impl<'de> Deserialize<'de> for Counted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        READINGS.set(READINGS.get() + 1);
        Vehicle::deserialize(deserializer).map(Self)
    }
}

impl Serialize for Counted {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        WRITINGS.set(WRITINGS.get() + 1);
        self.0.serialize(serializer)
    }
}

impl FromFields for Counted {
    fn from_fields(next: Next<'_, '_>) -> Result<Self, &'static str> {
        Vehicle::from_fields(next).map(Self)
    }

    fn set(&mut self, name: &'static str, value: &FieldValue) -> Result<(), &'static str> {
        self.0.set(name, value)
    }
}

impl Resource for Counted {
    const SPEC: &'static ResourceSpec = &vehicle::SPEC;
}

impl Object for Counted {
    type Kind = kinds::Vehicle;

    fn id(&self) -> VehicleId {
        self.0.id
    }

    fn index_value(&self, field: &str) -> Option<IndexValue<'_>> {
        self.0.index_value(field)
    }

    fn touch(&mut self, now: Timestamp) {
        self.0.touch(now);
    }
}

impl resources::Create for Counted {
    fn create(&mut self, context: &RuleContext<'_>) -> Result<Vec<EventType>, Error> {
        self.0.create(context)
    }
}

impl resources::Portable for Counted {}

impl resources::Update for Counted {
    fn events(&self, before: &Self, changed: bool, sent: &Fields) -> Vec<EventType> {
        self.0.events(&before.0, changed, sent)
    }
}

const VEHICLES: Collection = of::<Counted>().create().update().done();

#[derive(Default)]
struct Rising(AtomicU64);

impl Edge for Rising {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_767_225_600_000)
    }

    fn new_id(&self) -> Uuid {
        Uuid::from_u128((1_767_225_600_000 << 80) + u128::from(self.0.fetch_add(1, Ordering::Relaxed)))
    }
}

/// The memory store answers at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory store never waits"),
    }
}

/// Performs a write with an idempotency key. Gives the response, and how often an object was read and written.
fn write(
    store: &Memory,
    edge: &Rising,
    whose: &Organization,
    name: &str,
    intent: &dyn Intent,
) -> (Written, [usize; 2]) {
    READINGS.set(0);
    WRITINGS.set(0);
    let idempotency_key = IdempotencyKey::new(name.as_bytes(), "POST", "/", b"").expect("a valid key");
    let render: operations::Render<'_> = &|error: &Error| panic!("{error:?}");
    let written =
        now(operations::write(store, edge, whose.id, Some(&idempotency_key), intent, (200, render))).expect("a write");
    (written, [READINGS.get(), WRITINGS.get()])
}

/// An organization that the store has.
fn organization(store: &Memory) -> Organization {
    let whose = Organization { id: OrganizationId::from_u128(7), ..Organization::system() };
    let mut batch = Batch::default();
    batch.insert(Organization::key(SYSTEM, whose.id), "{}".into());
    now(store.commit(batch)).expect("it is committed");
    whose
}

#[test]
fn a_post_reads_no_object_and_a_patch_one_and_each_writes_one() {
    let (store, edge) = (Memory::default(), Rising::default());
    let whose = organization(&store);
    let body = br#"{"name":"Kia","daily_rate":40,"plate":"ABC123"}"#;
    let create = Create { collection: &VEHICLES, organization: &whose, body: body.into(), given: &[] };
    let (made, counts) = write(&store, &edge, &whose, "create", &create);
    assert_eq!(counts, [0, 1]);

    let id = String::from_utf8(made.body[7..43].to_vec()).unwrap();
    let body = br#"{"daily_rate":45.50,"plate":null}"#;
    let patch = Update { collection: &VEHICLES, organization: &whose, id: &id, body: body.into(), expected: &|_| true };
    let (changed, counts) = write(&store, &edge, &whose, "patch", &patch);
    assert_eq!(counts, [1, 1]);

    // The record, the event and the stored response have the bytes of the response.
    let places =
        [key::record(whose.id, &vehicle::SPEC, id.parse().unwrap()), key::idempotency_record(whose.id, "patch")];
    let found = now(store.get(&places)).unwrap();
    assert_eq!(found[0].as_ref().unwrap().value, changed.body);
    let tail = [b",\"body\":", &changed.body[..], b"}"].concat();
    assert!(found[1].as_ref().unwrap().value.ends_with(&tail));
    let newest = Span::newest_first(&key::records(whose.id, &event::SPEC));
    let events = now(store.scan(&newest, 1)).unwrap();
    let tail = [b",\"data\":", &changed.body[..], b"}"].concat();
    assert!(events[0].as_ref().unwrap().value.ends_with(&tail));
    let (again, counts) = write(&store, &edge, &whose, "patch", &patch);
    assert_eq!((again.replayed, again.body, counts), (true, changed.body, [0, 0]));
}

/// Performs the write of another intent, and asks for the object that it is about.
struct Asking<'a>(&'a dyn Intent);

impl Intent for Asking<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let prepared = self.0.prepare(store, edge).await?;
            assert_eq!(prepared.object::<Counted>()?.0.name, "Kia");
            Ok(prepared)
        })
    }
}

#[test]
fn an_intent_around_a_write_gets_its_object_without_reading_it_again() {
    let (store, edge) = (Memory::default(), Rising::default());
    let whose = organization(&store);
    let body = br#"{"name":"Kia"}"#.into();
    let create = Create { collection: &VEHICLES, organization: &whose, body, given: &[] };
    let (made, counts) = write(&store, &edge, &whose, "create", &Asking(&create));
    assert_eq!(counts, [0, 1]);
    let id = String::from_utf8(made.body[7..43].to_vec()).unwrap();
    for (name, body) in [("first", br#"{"daily_rate":45.50}"#), ("second", br#"{"daily_rate":45.5 }"#)] {
        let (organization, expected) = (&whose, &|_| true);
        let patch = Update { collection: &VEHICLES, organization, id: &id, body: body.into(), expected };
        let (_, counts) = write(&store, &edge, &whose, name, &Asking(&patch));
        assert_eq!(counts, [1, 1], "{name}");
    }
}

impl PlatformEdge for Rising {
    fn random_bytes(&self) -> Result<[u8; 32], Error> {
        Ok([7; 32])
    }
}

#[test]
fn a_platform_returns_the_object_that_was_written_and_reads_the_response_only_of_a_replay() {
    let platform = Platform::with_edge(Memory::default(), Rising::default());
    let fleet = now(platform.create_organization(json!({"name": "Sunrise"})).into_future()).unwrap();
    let counts = || [READINGS.take(), WRITINGS.take()];
    counts();
    let create = || fleet.create::<Counted>(json!({"name": "Kia", "daily_rate": 40})).idempotency_key("k");
    let made = now(create().into_future()).unwrap();
    assert_eq!((made.0.name.as_str(), made.revision(), counts()), ("Kia", 1, [0, 1]));
    let changed = now(fleet.update::<Counted>(made.0.id, json!({"daily_rate": 41})).into_future()).unwrap();
    assert_eq!((changed.0.daily_rate.unwrap().to_string().as_str(), changed.revision(), counts()), ("41", 2, [1, 1]));
    let replayed = now(create().into_future()).unwrap();
    assert_eq!((replayed.is_replayed(), counts()), (true, [1, 0]));
    assert!(replayed.into_object() == made.into_object());
}
