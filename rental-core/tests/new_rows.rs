//! Which puts are called new: those of a fresh object, so that an engine can insert them without looking.

use rental_core::{
    error::Error,
    operations::{self, Create, Update, edge::Edge, idempotency::IdempotencyKey},
    resources::{
        self, Collection, Resource,
        organization::{Organization, SYSTEM},
    },
    rows::key,
    store::{Answer, Batch, Commit, Key, Prior, Record, Scanned, Span, Store, Write, memory::Memory},
    value::{OrganizationId, Timestamp},
};
use std::{
    future::Future,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};
use uuid::Uuid;

/// The memory store answers at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory store never waits"),
    }
}

#[derive(Default)]
struct Counting(AtomicU64);

impl Edge for Counting {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_767_225_600_000)
    }

    fn new_id(&self) -> Uuid {
        Uuid::from_u128((1_767_225_600_000 << 80) + u128::from(self.0.fetch_add(1, Ordering::Relaxed)))
    }
}

/// Keeps the last batch.
#[derive(Default)]
struct Recording(Memory, Mutex<Batch>);

impl Store for Recording {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        self.0.get(keys)
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        self.0.scan(span, limit)
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        *self.1.lock().expect("it works") = batch.clone();
        self.0.commit(batch)
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.0.ready()
    }
}

fn collection(object: &str) -> &'static Collection {
    resources::api().find(|one| one.spec.object == object).expect("it works")
}

const RENDER: operations::Render<'_> = &|error: &Error| panic!("{error:?}");

fn organization() -> Organization {
    Organization { id: OrganizationId::from_u128(7), ..Organization::system() }
}

/// Creates an object; gives its id and the tags of the rows whose put is not called new.
fn create(store: &Recording, edge: &Counting, object: &str, body: &str) -> (String, String) {
    let organization = organization();
    let idempotency_key =
        IdempotencyKey::new(format!("{object}-{}", edge.new_id()).as_bytes(), "POST", "/", body.as_bytes())
            .expect("it works");
    let intent = Create {
        collection: collection(object),
        organization: &organization,
        body: body.as_bytes().into(),
        given: &[],
    };
    let written = now(operations::write(store, edge, organization.id, Some(&idempotency_key), &intent, (201, RENDER)))
        .expect("it works");
    assert!(written.status < 300, "{}", String::from_utf8_lossy(&written.body));
    let body: serde_json::Value = serde_json::from_slice(&written.body).expect("it works");
    (body["id"].as_str().expect("it works").to_owned(), not_new(store))
}

fn not_new(store: &Recording) -> String {
    let batch = store.1.lock().expect("it works");
    let tag = |write: &Write| match write {
        Write::Put(_, _, _, Prior::New) => None,
        Write::Put(key, ..) | Write::Delete(key) => Some(char::from(key.as_bytes()[0])),
    };
    batch.writes.iter().filter_map(tag).collect()
}

#[test]
fn everything_of_a_new_object_is_a_plain_insert() {
    let (store, edge) = (Recording::default(), Counting::default());
    let mut mark = Batch::default();
    mark.mark(key::subscribed(OrganizationId::from_u128(7)), Prior::New);
    mark.insert(Organization::key(SYSTEM, organization().id), "{}".into());
    now(store.commit(mark)).expect("it works");
    let vehicle = r#"{"name":"Kia","make":"Kia","model":"Rio","year":2024,"plate":"ABC123","daily_rate":40}"#;
    let (vehicle, others) = create(&store, &edge, "vehicle", vehicle);
    assert_eq!(others, "");
    let customer = r#"{"full_name":"Ada Lovelace","email":"ada@example.com","phone":"+15550100"}"#;
    let (customer, others) = create(&store, &edge, "customer", customer);
    assert_eq!(others, "");
    let rental = |start: &str, end: &str| {
        format!(
            r#"{{"vehicle_id":"{vehicle}","customer_id":"{customer}","status":"APPROVED","start_date":"{start}","end_date":"{end}"}}"#
        )
    };
    let (id, others) = create(&store, &edge, "rental", &rental("2026-01-10", "2026-01-12"));
    assert_eq!(others, "", "a hold and the vehicle's calendar are new as well");
    // The calendar is there by now.
    let (_, others) = create(&store, &edge, "rental", &rental("2026-02-10", "2026-02-12"));
    assert_eq!(others, "c");
    // Of a change only the event and its rows are new.
    let organization = organization();
    let body = br#"{"status":"CANCELLED"}"#;
    let expected = |_| true;
    let intent = Update {
        collection: collection("rental"),
        organization: &organization,
        id: &id,
        body: body.into(),
        expected: &expected,
    };
    now(operations::write(&store, &edge, organization.id, None, &intent, (200, RENDER))).expect("it works");
    let others = not_new(&store);
    assert!(others.contains('r') && others.contains('i') && others.contains('h'), "{others}");
    assert!(!others.contains('o'), "the outbox row of a new event is new: {others}");
}
