//! The library's face: what `Platform` and `Fleet` promise beside the rules that the server's tests check.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests do")]

mod platform {
    mod keys;
    mod reads;
    mod stores;
    mod writes;
}

use rental_core::{
    Platform,
    error::Error,
    operations::edge::Edge,
    platform::{Fleet, PlatformEdge, Stored},
    resources::{customer::Customer, vehicle::Vehicle},
    store::{Answer, Batch, Commit, Key, Record, Scanned, Span, Store, memory::Memory},
    value::Timestamp,
};
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::runtime::{Builder, Runtime};
use uuid::Uuid;

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).build().expect("a runtime starts")
}

/// Runs `test` on a memory store and on a file.
fn on_each<T: Future<Output = ()>>(test: impl Fn(Platform) -> T) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = Platform::open_file(directory.path().join("fleet.redb")).expect("it opens");
    for platform in [Platform::in_memory(), file] {
        runtime().block_on(test(platform));
    }
}

async fn fleet(platform: &Platform) -> Fleet {
    platform.create_organization(json!({"name": "Sunrise Rentals"})).await.unwrap()
}

async fn vehicle(fleet: &Fleet) -> Stored<Vehicle> {
    fleet.create::<Vehicle>(json!({"name": "Van", "daily_rate": 60})).await.unwrap()
}

async fn customer(fleet: &Fleet) -> Stored<Customer> {
    fleet.create::<Customer>(json!({"full_name": "Ada Lovelace", "email": "ada+fleet@example.com"})).await.unwrap()
}

/// A clock that a test sets, with ids of its time.
#[derive(Clone, Default)]
struct Clock(Arc<Hands>);

#[derive(Default)]
struct Hands {
    hours: AtomicU64,
    ids: AtomicU64,
}

impl Clock {
    fn advance_hours(&self, hours: u64) {
        self.0.hours.fetch_add(hours, Ordering::SeqCst);
    }

    /// 2027-01-01 and the hours since.
    fn millis(&self) -> u64 {
        1_798_761_600_000 + self.0.hours.load(Ordering::SeqCst) * 3_600_000
    }
}

impl Edge for Clock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.millis() as i64)
    }

    fn new_id(&self) -> Uuid {
        let mut digits = [0; 10];
        digits[2..].copy_from_slice(&self.0.ids.fetch_add(1, Ordering::SeqCst).to_be_bytes());
        uuid::Builder::from_unix_timestamp_millis(self.millis(), &digits).into_uuid()
    }
}

impl PlatformEdge for Clock {
    fn random_bytes(&self) -> Result<[u8; 32], Error> {
        Ok([self.0.ids.fetch_add(1, Ordering::SeqCst) as u8; 32])
    }
}

/// A store of somebody else's.
struct Shared(Arc<Memory>);

impl Store for Shared {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Answer<'a, Vec<Option<Record>>> {
        self.0.get(keys)
    }

    fn scan<'a>(&'a self, span: &'a Span, limit: usize) -> Answer<'a, Vec<Scanned>> {
        self.0.scan(span, limit)
    }

    fn commit(&self, batch: Batch) -> Answer<'_, Commit> {
        self.0.commit(batch)
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.0.ready()
    }
}
