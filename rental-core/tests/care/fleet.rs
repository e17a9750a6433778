//! A small fleet in a store, made by the same operations as any request.

use rental_core::{
    error::Error,
    operations::{self, Create, Edge, Intent, Update, idempotency::IdempotencyKey},
    resources::{self, Collection, invoice::Invoice, of, organization::Organization},
    store::{Key, Record, Store, redb::Redb},
    value::{OrganizationId, Timestamp},
};
use std::{
    future::Future,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};
use uuid::Uuid;

pub(crate) const CACHE: usize = 4 << 20;
const ORGANIZATIONS: Collection = of::<Organization>().create().done();
const INVOICES: Collection = of::<Invoice>().create().done();

pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime starts");
    runtime.block_on(future)
}

/// Time stands still, ids count.
#[derive(Default)]
pub(crate) struct Still(AtomicU64);

impl Still {
    /// Leaves ids out that others may have.
    pub(crate) fn skip(&self, ids: u64) {
        self.0.fetch_add(ids, Ordering::Relaxed);
    }
}

impl Edge for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_777_973_400_000)
    }

    fn new_id(&self) -> Uuid {
        let count = u128::from(self.0.fetch_add(1, Ordering::Relaxed));
        Uuid::from_u128((u128::from(self.now().millis()) << 80) | (0x7 << 76) | (0x2 << 62) | count)
    }
}

/// Does it, and gives the id.
pub(crate) fn write(store: &Redb, edge: &Still, organization: &Organization, intent: &dyn Intent) -> String {
    let idempotency_key = operation_key(edge);
    let render = |error: &Error| panic!("{error:?}");
    let written = wait(operations::write(store, edge, organization.id, Some(&idempotency_key), intent, (200, &render)));
    let object: serde_json::Value = serde_json::from_slice(&written.expect("it is made").body).expect("JSON");
    object["id"].as_str().expect("an id").to_owned()
}

fn operation_key(edge: &Still) -> IdempotencyKey {
    let name = edge.new_id().to_string();
    IdempotencyKey::new(name.as_bytes(), "POST", "/", b"").expect("a key")
}

pub(crate) fn create(store: &Redb, edge: &Still, organization: &Organization, row: &Collection, body: &str) -> String {
    write(
        store,
        edge,
        organization,
        &Create { collection: row, organization, body: body.as_bytes().into(), given: &[] },
    )
}

pub(crate) fn row(object: &str) -> &'static Collection {
    resources::api().find(|row| row.spec.object == object).expect("a public resource")
}

/// A store with this many rentals, of which every second holds its vehicle, and an invoice for every fifth.
pub(crate) fn fleet(path: &Path, rentals: usize) {
    let store = Redb::open(path, CACHE).expect("it opens");
    let edge = Still::default();
    let system = Organization::system();
    let organization = Organization {
        id: OrganizationId::parse(&create(&store, &edge, &system, &ORGANIZATIONS, r#"{"name":"Sunrise"}"#))
            .expect("an id"),
        ..Organization::system()
    };
    let vehicle = create(&store, &edge, &organization, row("vehicle"), r#"{"name":"White Tesla","daily_rate":89.5}"#);
    let customer = create(&store, &edge, &organization, row("customer"), r#"{"full_name":"Ada Lovelace"}"#);
    for n in 0..rentals {
        let status = ["NEW", "APPROVED"][n % 2];
        let (year, day) = (2026 + n / 300, n % 300);
        let (month, day) = (1 + day / 25, 1 + day % 25);
        let body = format!(
            r#"{{"vehicle_id":"{vehicle}","customer_id":"{customer}","start_date":"{year}-{month:02}-{day:02}","end_date":"{year}-{month:02}-{day:02}","status":"{status}"}}"#
        );
        let rental = create(&store, &edge, &organization, row("rental"), &body);
        if n % 5 == 0 {
            let body = format!(r#"{{"customer_id":"{customer}","lines":[{{"description":"Days","amount":{n}}}]}}"#);
            create(&store, &edge, &organization, &INVOICES, &body);
        }
        if n % 7 == 1 {
            let intent = Update {
                collection: row("rental"),
                organization: &organization,
                id: &rental,
                body: br#"{"status":"COMPLETED"}"#.into(),
                expected: &|_| true,
            };
            write(&store, &edge, &organization, &intent);
        }
    }
    store.close().expect("it closes");
}

/// Every row of a store.
pub(crate) fn dump(store: &Redb) -> Vec<Record> {
    store.snapshot().rows().expect("it can be read").map(|row| row.expect("a whole row")).collect()
}

pub(crate) fn dump_file(path: &Path) -> Vec<Record> {
    let store = Redb::open(path, CACHE).expect("it opens");
    let rows = dump(&store);
    store.close().expect("it closes");
    rows
}

pub(crate) fn get(store: &Redb, key: &Key) -> Result<Option<Record>, rental_core::store::StoreError> {
    wait(store.get(std::slice::from_ref(key))).map(|mut found| found.pop().flatten())
}
