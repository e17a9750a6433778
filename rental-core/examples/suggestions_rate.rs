//! How many unattached tolls per second get their suggestions, and in how much memory: a new file with many rentals and
//! tolls, read in pages of 100 as `rental-cli tolls suggest` reads it.
//!
//! ```text
//! cargo run --release --locked -p rental-core --example suggestions_rate -- [TOLLS] [RENTALS] [DIRECTORY]
//! ```

use rental_core::{
    attachments::Deriving,
    fleet::attribution::Verdict,
    operations::{self, edge::Edge},
    resources::{
        Resource,
        customer::Customer,
        organization::{Organization, SYSTEM},
        parse,
        rental::Rental,
        toll::Toll,
        unattached_look_up,
        vehicle::Vehicle,
    },
    store::{Batch, Commit, Store, Write, all_sound, redb::Redb},
    value::{CustomerId, Date, OrganizationId, RentalId, Timestamp, TollId, VehicleId},
};
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};
use uuid::Uuid;

const CACHE: usize = 256 << 20;
/// Objects of one batch while the store is filled: large, because each batch waits for the disk once.
const BATCH: u64 = 20_000;
const PAGE: usize = 100;
const VEHICLES: u64 = 2_000;
/// Not a multiple of the number of vehicles, so that the rentals of a vehicle are of many customers.
const CUSTOMERS: u64 = 40_001;
/// 2020-01-01: the first day of the first rental of each vehicle.
const FIRST: i64 = 1_577_836_800_000;
const DAY: i64 = 86_400_000;
/// Days from the beginning of a rental to that of the next one.
const TURN: i64 = 4;
const ORGANIZATION: OrganizationId = OrganizationId::from_u128(7);

type Failed = Box<dyn std::error::Error>;

struct Ids(AtomicU64);

impl Edge for Ids {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(FIRST)
    }

    fn new_id(&self) -> Uuid {
        Uuid::from_u128(1 << 100 | u128::from(self.0.fetch_add(1, Ordering::Relaxed)))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let mut args = std::env::args().skip(1);
    let tolls: u64 = args.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let rentals: u64 = args.next().map_or(Ok(200_000), |text| text.parse())?;
    let folder = tempfile::tempdir_in(args.next().map_or_else(std::env::temp_dir, PathBuf::from))?;
    let store = Redb::open(&folder.path().join("rental.redb"), CACHE)?;
    let started = Instant::now();
    let owner = fill(&store, tolls, rentals).await?;
    println!("{tolls} tolls, {rentals} rentals, {VEHICLES} vehicles recorded in {:.1} s", seconds(started));
    // The kernel forgets the highest use of memory until now.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let before = memory("VmRSS");
    let (started, busy) = (Instant::now(), processor_seconds());
    let [clear, unclear, nobody] = judge_all(&store, &owner).await?;
    let took = seconds(started);
    let judged = clear + unclear + nobody;
    println!("{judged} judged in {took:.1} s: {:.0} tolls/s", judged as f64 / took);
    println!("{:.1} s of a processor, the rest was waiting", processor_seconds() - busy);
    println!("{clear} clear, {unclear} unclear, {nobody} with nobody");
    println!(
        "resident memory: {before} MB before the run, {} MB at most during it; page cache {} MB",
        memory("VmHWM"),
        CACHE >> 20
    );
    Ok(())
}

fn seconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}

/// How long this thread, which also reads the file, has had a processor; 0 where that is not known.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or_default() / 1e9
}

/// A value of `/proc/self/status` in MB; 0 where there is none.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) >> 10
}

/// Judges all unattached tolls, page by page. Returns the number of each verdict.
async fn judge_all(store: &dyn Store, owner: &Organization) -> Result<[u64; 3], Failed> {
    let look_up = unattached_look_up();
    let (prefix, mut span) = (look_up.prefix(owner.id, Toll::SPEC), look_up.span(owner.id, Toll::SPEC));
    let (mut counts, started) = ([0; 3], Instant::now());
    loop {
        let found = all_sound(store.scan(&span, PAGE).await?)?;
        let Some(last) = found.last().and_then(|record| record.key.id()) else { return Ok(counts) };
        let mut deriving = Deriving::new(store, owner);
        for record in &found {
            let toll: Toll = parse(&record.key, &record.value)?;
            let derived = deriving.derive(&toll).await?;
            counts[match derived.verdict {
                Verdict::Clear(_) => 0,
                Verdict::Unclear(..) => 1,
                Verdict::Nobody(..) => 2,
            }] += 1;
        }
        let judged: u64 = counts.iter().sum();
        if judged % 100_000 < found.len() as u64 {
            println!("  {judged} judged, {:.0} tolls/s", judged as f64 / seconds(started));
        }
        span = span.before_id(&prefix, last);
    }
}

/// Records vehicles, rentals one after another, and tolls on days of rentals and between them.
async fn fill(store: &dyn Store, tolls: u64, rentals: u64) -> Result<Organization, Failed> {
    let owner: Organization = serde_json::from_value(json!({
        "id": ORGANIZATION, "object": "organization", "name": "Large", "plan": "pro", "default_currency": "USD",
        "time_zone": "America/New_York", "booking_policy": "exclusive", "invoice_language": "en", "tax_included": false, "created_at": time(0),
        "updated_at": time(0),
    }))?;
    let mut batch = Batch::default();
    batch.insert(Organization::key(SYSTEM, ORGANIZATION), serde_json::to_vec(&owner)?.into());
    store.commit(batch).await?;
    insert::<Vehicle>(store, &owner, VEHICLES, vehicle).await?;
    insert::<Customer>(store, &owner, CUSTOMERS, customer).await?;
    insert::<Rental>(store, &owner, rentals, rental).await?;
    let turns = (rentals / VEHICLES).max(1);
    insert::<Toll>(store, &owner, tolls, |number| toll(number, turns)).await?;
    Ok(owner)
}

async fn insert<T: Resource>(
    store: &dyn Store,
    owner: &Organization,
    count: u64,
    make: impl Fn(u64) -> Value,
) -> Result<(), Failed> {
    let (edge, started) = (Ids(AtomicU64::new(1)), Instant::now());
    let mut batch = Batch::default();
    for number in 0..count {
        let object: T = serde_json::from_value(make(number))?;
        let one = operations::insert(store, &edge, owner, object, Batch::default()).await?.batch;
        batch.checks.extend(one.checks);
        batch.writes.extend(one.writes);
        if number % BATCH == BATCH - 1 || number == count - 1 {
            let commit = store.commit(in_order(std::mem::take(&mut batch))).await?;
            if commit != Commit::Applied {
                return Err(format!("{commit:?}").into());
            }
            println!("  {} of {count} {} recorded after {:.1} s", number + 1, T::SPEC.plural, seconds(started));
        }
    }
    Ok(())
}

/// The batch with its writes in the order of their keys, which the file takes much faster. Of the marks of one vehicle, which
/// nothing reads here, any one stays.
fn in_order(mut batch: Batch) -> Batch {
    let key = |write: &Write| match write {
        Write::Put(key, ..) | Write::Delete(key) => key.clone(),
    };
    batch.writes.sort_by_cached_key(key);
    batch.writes.dedup_by_key(|write| key(write));
    batch
}

fn time(millis: i64) -> Timestamp {
    Timestamp::from_millis(FIRST + millis)
}

fn plate(vehicle: u64) -> String {
    format!("CAR{vehicle:05}")
}

fn vehicle(number: u64) -> Value {
    json!({
        "id": VehicleId::from_u128(1 << 64 | u128::from(number)), "object": "vehicle", "name": "Car", "plate": plate(number),
        "currency": "USD", "status": "available", "organization_id": ORGANIZATION, "created_at": time(0), "updated_at": time(0),
    })
}

fn customer_id(number: u64) -> CustomerId {
    CustomerId::from_u128(3 << 64 | u128::from(number))
}

fn customer(number: u64) -> Value {
    json!({
        "id": customer_id(number), "object": "customer", "full_name": "Ada Lovelace", "email": null, "phone": null,
        "preferred_language": "en", "language_chosen": false, "source_channel": null, "notes": null, "erased_at": null, "created_at": time(0),
        "updated_at": time(0),
    })
}

/// The rentals of a vehicle follow each other, with a day between them.
fn rental(number: u64) -> Value {
    let (vehicle, turn) = (number % VEHICLES, i64::try_from(number / VEHICLES).unwrap_or(0));
    let date = |days: i64| Date::from_day_number(time((turn * TURN + days) * DAY).day_number());
    json!({
        "id": RentalId::from_u128(2 << 64 | u128::from(number)), "object": "rental", "booking_id": null,
        "customer_id": customer_id(number % CUSTOMERS),
        "vehicle_id": VehicleId::from_u128(1 << 64 | u128::from(vehicle)), "start_date": date(0), "end_date": date(TURN - 1),
        "rental_days": TURN - 1, "pickup_type": null, "delivery_location": null, "final_price": 100, "currency": "USD",
        "status": "COMPLETED", "damage_at_return": false, "activated_at": null, "completed_at": null,
        "vehicle_changed_at": null, "earlier_vehicles": [],
        "time_zone": "America/New_York", "amount_billed": 0, "invoice_ids": [], "created_at": time(0), "updated_at": time(0),
    })
}

/// Tolls of all vehicles at any hour of all rentals.
fn toll(number: u64, turns: u64) -> Value {
    let vehicle = number % VEHICLES;
    let hours = number.wrapping_mul(2_654_435_761) % (turns * TURN as u64 * 24);
    json!({
        "id": TollId::from_u128(4 << 64 | u128::from(number)), "object": "toll", "amount": 6.94, "currency": "USD",
        "agency": "MTAB&T", "transaction_id": number.to_string(), "plaza": "RKB", "plate": plate(vehicle), "plate_state": "NY",
        "occurred_at": time(hours as i64 * 3_600_000 + number as i64 % 3_600_000),
        "vehicle_id": VehicleId::from_u128(1 << 64 | u128::from(vehicle)),
        "amount_billed": 0, "invoice_ids": [], "created_at": time(0), "updated_at": time(0),
    })
}
