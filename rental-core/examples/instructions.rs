//! Runs the hot paths of the core for callgrind, which counts their instructions: see `.ci/instructions`.
//!
//! ```text
//! instructions        prints `PATH OPERATIONS` for each of callgrind's dumps, in their order
//! ```
//! Clock, ids and data are fixed, and redb keeps its file in memory. What still varies is small: hash maps with a random
//! state, and addresses. Each path performs [`WARM_UP`] operations, then [`ROUNDS`] times [`COUNTED`] inside [`counted`];
//! callgrind resets its counters when that function is entered and dumps them when it returns. The counters include all
//! threads, so the writer of redb is counted as well. Its idle commit may fall into a round, so the smallest round counts.

use redb::{StorageBackend, backends::InMemoryBackend};
use rental_core::{
    error::Error,
    operations::{self, Create, Intent, Update, edge::Edge, idempotency::IdempotencyKey},
    request::page::ListQuery,
    resources::{
        self, Collection, Resource,
        organization::{Organization, SYSTEM},
    },
    store::{Batch, Store, memory::Memory, redb::Redb},
    value::{OrganizationId, Timestamp},
};
use serde_json::{Value, json};
use std::{
    hint::black_box,
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::Thread,
};
use uuid::Uuid;

/// Operations before the counted ones: they fill what is computed once.
const WARM_UP: u64 = 8;
/// Operations of a round.
const COUNTED: u64 = 32;
/// Rounds of a path.
const ROUNDS: u64 = 5;
/// Vehicles and rentals before the first path runs.
const OBJECTS: u64 = 400;
/// Each of them has a full page of rentals.
const CUSTOMERS: u64 = 20;
const NOW: i64 = 1_795_288_412_000;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let parse = || {
        let raw = "limit=20&status=ACTIVE&customer=0190d0f2-7c3a-7cc0-8000-000000000002";
        black_box(ListQuery::parse(black_box(raw), collection("rental").spec)).map_err(told)?;
        Ok(())
    };
    run("parse/list_query", &mut |_| parse())?;
    measure("memory", &Fleet::new(Box::new(Memory::default()))?)?;
    let file = File::default();
    let mut fleet = Fleet::new(Box::new(Redb::on_backend(file.clone())?))?;
    // ClosedFile and opened again: redb makes an idle commit after the last write, which would run beside the first reads.
    fleet.store = Box::new(Memory::default());
    fleet.store = Box::new(Redb::on_backend(file)?);
    measure("redb", &fleet)
}

/// callgrind resets its counters when this is entered and dumps them when it returns.
#[inline(never)]
fn counted(first: u64, operation: &mut dyn FnMut(u64) -> Outcome<()>) -> Outcome<()> {
    (first..first + COUNTED).try_for_each(operation)
}

/// Counts one path. The operation gets its number, from 0.
fn run(path: &str, operation: &mut dyn FnMut(u64) -> Outcome<()>) -> Outcome<()> {
    (0..WARM_UP).try_for_each(&mut *operation)?;
    for round in 0..ROUNDS {
        counted(WARM_UP + round * COUNTED, operation)?;
        println!("{path} {COUNTED}");
    }
    Ok(())
}

fn measure(engine: &str, fleet: &Fleet) -> Outcome<()> {
    let path = |name: &str| format!("{engine}/{name}");
    let (vehicles, rentals) = (&fleet.vehicles, &fleet.rentals);
    run(&path("get_vehicle"), &mut |n| fleet.get("vehicle", pick(vehicles, n)))?;
    run(&path("get_missing_vehicle"), &mut |n| match fleet.get("vehicle", pick(rentals, n)) {
        Err(_) => Ok(()),
        Ok(()) => Err("a rental's id is the id of a vehicle".into()),
    })?;
    let customer = format!("customer={}", fleet.customers[0]);
    let deep = format!("starting_after={}", rentals[100]);
    for (name, object, query) in [
        ("list_vehicles", "vehicle", ""),
        ("list_rentals_by_status", "rental", "status=NEW"),
        ("list_rentals_by_customer", "rental", customer.as_str()),
        ("list_rentals_deep_page", "rental", deep.as_str()),
    ] {
        run(&path(name), &mut |_| fleet.list(object, query))?;
    }
    let bodies = prepared(&|n| vehicle(OBJECTS + n));
    run(&path("create_vehicle"), &mut |n| fleet.create("vehicle", &bodies[n as usize], None).map(drop))?;
    run(&path("create_vehicle_with_key"), &mut |n| {
        fleet.create("vehicle", &bodies[n as usize], Some(&format!("create-{n}"))).map(drop)
    })?;
    run(&path("replay_vehicle_with_key"), &mut |_| fleet.create("vehicle", &bodies[0], Some("create-0")).map(drop))?;
    let bodies = prepared(&|n| fleet.booking(n, "NEW", "2027-05"));
    run(&path("create_rental"), &mut |n| fleet.create("rental", &bodies[n as usize], None).map(drop))?;
    let bodies = prepared(&|n| fleet.booking(n, "APPROVED", "2027-03"));
    run(&path("create_rental_with_hold"), &mut |n| fleet.create("rental", &bodies[n as usize], None).map(drop))?;
    let bodies = prepared(&|n| json!({"booking_id": format!("U{n}")}));
    run(&path("update_rental"), &mut |n| fleet.update(pick(rentals, n), &bodies[n as usize], None))?;
    let bodies = prepared(&|n| json!({"booking_id": format!("V{n}")}));
    run(&path("update_rental_with_key"), &mut |n| {
        fleet.update(pick(rentals, n), &bodies[n as usize], Some(&format!("update-{n}")))
    })?;
    run(&path("update_rental_to_active"), &mut |n| fleet.update(pick(rentals, n), r#"{"status":"ACTIVE"}"#, None))
}

/// The bodies of a path's requests, made before its operations are counted.
fn prepared(body: &dyn Fn(u64) -> Value) -> Vec<String> {
    (0..WARM_UP + ROUNDS * COUNTED).map(|n| body(n).to_string()).collect()
}

/// Ids far apart from each other, so that a path does not read neighbours.
fn pick(ids: &[String], n: u64) -> &str {
    &ids[(n * 97 % OBJECTS) as usize]
}

fn vehicle(n: u64) -> Value {
    let (name, plate) = (format!("Vehicle {n}"), format!("AB{n:05}"));
    json!({"name": name, "make": "Tesla", "model": "Model 3", "year": 2023, "plate": plate, "daily_rate": 89.5})
}

/// An organization with objects in a store.
struct Fleet {
    store: Box<dyn Store>,
    edge: Fixed,
    organization: Organization,
    vehicles: Vec<String>,
    customers: Vec<String>,
    rentals: Vec<String>,
}

impl Fleet {
    fn new(store: Box<dyn Store>) -> Outcome<Self> {
        let organization = Organization { id: OrganizationId::from_u128(7), ..Organization::system() };
        let mut batch = Batch::default();
        batch.insert(Organization::key(SYSTEM, organization.id), resources::to_json(&organization)?);
        wait(store.commit(batch))?;
        let mut fleet = Self {
            store,
            edge: Fixed(AtomicU64::new(0)),
            organization,
            vehicles: Vec::new(),
            customers: Vec::new(),
            rentals: Vec::new(),
        };
        for n in 0..OBJECTS {
            fleet.vehicles.push(fleet.create("vehicle", &vehicle(n).to_string(), None)?);
        }
        for n in 0..CUSTOMERS {
            let customer = json!({"full_name": format!("Customer {n}"), "email": format!("c{n}@example.com")});
            fleet.customers.push(fleet.create("customer", &customer.to_string(), None)?);
        }
        for n in 0..OBJECTS {
            let rental = fleet.booking(n, "NEW", "2027-06");
            fleet.rentals.push(fleet.create("rental", &rental.to_string(), None)?);
        }
        Ok(fleet)
    }

    /// Rental `n` of four nights in `month`.
    fn booking(&self, n: u64, status: &str, month: &str) -> Value {
        let customer = &self.customers[(n % CUSTOMERS) as usize];
        json!({
            "vehicle_id": pick(&self.vehicles, n), "customer_id": customer, "status": status,
            "start_date": format!("{month}-01"), "end_date": format!("{month}-05"), "pickup_type": "pickup"
        })
    }

    fn get(&self, object: &str, id: &str) -> Outcome<()> {
        let found = wait(operations::get(&*self.store, self.organization.id, collection(object).spec, id));
        black_box(found.map_err(told)?);
        Ok(())
    }

    fn list(&self, object: &str, raw: &str) -> Outcome<()> {
        let spec = collection(object).spec;
        let query = ListQuery::parse(raw, spec).map_err(told)?;
        let page = wait(operations::list(&*self.store, self.organization.id, spec, &query));
        let page = page.map_err(told)?;
        if black_box(page).body.len() < 1000 { Err("the list is not full".into()) } else { Ok(()) }
    }

    /// Gives the id of the new object.
    fn create(&self, object: &str, body: &str, key: Option<&str>) -> Outcome<String> {
        let (collection, organization) = (collection(object), &self.organization);
        let intent = Create { collection, organization, body: body.as_bytes().into(), given: &[] };
        let answer = self.write(&intent, key, "POST", body.as_bytes())?;
        // Cut out instead of parsed: the harness shall add little to what is counted.
        Ok(answer.get(7..43).ok_or("the answer has no id")?.to_owned())
    }

    fn update(&self, id: &str, body: &str, key: Option<&str>) -> Outcome<()> {
        let (collection, organization) = (collection("rental"), &self.organization);
        let intent = Update { collection, organization, id, body: body.as_bytes().into(), expected: &|_| true };
        self.write(&intent, key, "PATCH", body.as_bytes()).map(drop)
    }

    fn write(&self, intent: &dyn Intent, key: Option<&str>, method: &str, body: &[u8]) -> Outcome<String> {
        let idempotency_key =
            key.map(|key| IdempotencyKey::new(key.as_bytes(), method, "/v1/objects", body)).transpose()?;
        let (organization, render) = (self.organization.id, &|_: &_| (500, "null".into()));
        let written = wait(operations::write(
            &*self.store,
            &self.edge,
            organization,
            idempotency_key.as_ref(),
            intent,
            (200, render),
        ));
        let written = written.map_err(told)?;
        match written.status {
            200 => Ok(String::from_utf8(written.body.to_vec())?),
            status => Err(format!("a write ended with {status}").into()),
        }
    }
}

/// A file in memory that outlives the store that has it open.
#[derive(Clone, Debug, Default)]
struct File(Arc<InMemoryBackend>);

impl StorageBackend for File {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}

/// A clock that stands still, and ids that rise.
struct Fixed(AtomicU64);

impl Edge for Fixed {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(NOW)
    }

    fn new_id(&self) -> Uuid {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        let millis = NOW as u128 + u128::from(number);
        Uuid::from_u128((millis << 80) | (7 << 76) | (2 << 62) | u128::from(number))
    }
}

fn told(error: Error) -> String {
    format!("{error:?}")
}

fn collection(object: &str) -> &'static Collection {
    let found = resources::api().find(|collection| collection.spec.object == object);
    found.unwrap_or_else(|| panic!("no resource is called {object}"))
}

/// Runs a future on this thread. A runtime would add its own instructions.
fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}
