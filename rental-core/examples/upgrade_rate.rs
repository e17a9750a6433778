//! How many rows an upgrade writes per second: a store of schema version 2 with many rentals, in a new file or in an empty
//! database.
//!
//! ```text
//! cargo run --release --locked -p rental-core --example upgrade_rate -- [RENTALS] [DIRECTORY | URL]
//! ```

use bytes::Bytes;
use rental_core::{
    resources::{
        Resource,
        organization::{Organization, SYSTEM},
        rental,
    },
    rows::key,
    store::{self, Absent, Access, Batch, Engine, Environment, Key, Opening, Prior, SCHEMA_VERSION, Write},
    upgrade::{Step, Upgrade, survey},
    value::OrganizationId,
};
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use uuid::Uuid;

const CACHE: usize = 256 << 20;
const BATCH: usize = 4000;
/// 2026-01-01, and a rental every second from then on.
const FIRST: u64 = 1_767_225_600_000;

struct Surroundings;

impl Environment for Surroundings {
    fn variable(&self, name: &str) -> Option<OsString> {
        std::env::var_os(name)
    }

    fn file(&self, path: &Path) -> Result<Vec<u8>, String> {
        std::fs::read(path).map_err(|error| error.to_string())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let rentals: u64 = args.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let target = args.next().unwrap_or_else(|| std::env::temp_dir().display().to_string());
    // The folder is removed at the end.
    let (_folder, url) = match target.contains("://") {
        true => (None, target),
        false => {
            let folder = tempfile::tempdir_in(PathBuf::from(target))?;
            let url = format!("redb:{}", folder.path().join("rental.redb").display());
            (Some(folder), url)
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let place = store::place(&url).map_err(|wrong| format!("{wrong:?}"))?;
    runtime.block_on(async {
        let (writer, patience) = (id(FIRST, u64::from(std::process::id())), Duration::from_secs(60));
        let opening =
            Opening { cache_bytes: CACHE, absent: Absent::Create, writer, patience, environment: &Surroundings };
        let store = place.open(Access::Present, &opening).await?;
        fill(store.as_ref(), rentals).await?;
        let started = Instant::now();
        let counted = survey(store.as_ref(), &mut |_| {}).await?;
        println!("{} rows{}; counted in {:.1} s", counted.rows, size(place.file()), seconds(started));
        let started = Instant::now();
        let (written, longest) = upgrade(store.as_ref()).await?;
        let took = seconds(started);
        println!(
            "{written} rows written in {took:.1} s: {:.0} rows/s; longest batch {} ms{}",
            written as f64 / took,
            longest.as_millis(),
            size(place.file())
        );
        Ok(store.close().await?)
    })
}

fn size(file: Option<&Path>) -> String {
    let bytes = file.and_then(|path| std::fs::metadata(path).ok()).map(|file| file.len());
    bytes.map_or_else(String::new, |bytes| format!("; {} MB in the file", bytes >> 20))
}

fn seconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}

async fn upgrade(store: &dyn Engine) -> Result<(u64, Duration), Box<dyn std::error::Error>> {
    let mut upgrade = Upgrade::begin(store).await?.ok_or("it is of the present version")?;
    let mut longest = Duration::ZERO;
    loop {
        let started = Instant::now();
        let step = upgrade.step().await?;
        longest = longest.max(started.elapsed());
        if step == Step::Done {
            return Ok((upgrade.progress().written, longest));
        }
    }
}

fn id(millis: u64, count: u64) -> Uuid {
    Uuid::from_u128((u128::from(millis) << 80) | (0x7 << 76) | (0x2 << 62) | u128::from(count))
}

/// Rows as the last program of version 2 wrote them.
async fn fill(store: &dyn Engine, rentals: u64) -> Result<(), Box<dyn std::error::Error>> {
    let organization = OrganizationId::from_uuid(id(FIRST, 0));
    let mut batch = Batch::default();
    let head = format!(
        r#"{{"id":"{organization}","object":"organization","name":"Large","plan":"pro","default_currency":"USD","booking_policy":"open","time_zone":"America/New_York","created_at":"2026-01-01T00:00:00.000Z","updated_at":"2026-01-01T00:00:00.000Z"}}"#
    );
    put(&mut batch, Organization::key(SYSTEM, organization), 1, head.into());
    for number in 0..rentals {
        let millis = FIRST + number * 1000;
        let (rental, customer, vehicle) = (id(millis, number), id(FIRST, number % 50_000), id(FIRST, number % 10_000));
        let status = ["NEW", "CANCELLED", "COMPLETED"][usize::try_from(number % 3)?];
        let at = rental_core::value::Timestamp::from_millis(i64::try_from(millis)?);
        let json = format!(
            r#"{{"id":"{rental}","object":"rental","booking_id":"BK-{number}","customer_id":"{customer}","vehicle_id":"{vehicle}","start_date":null,"end_date":null,"rental_days":null,"pickup_type":"pickup","delivery_location":null,"final_price":358,"currency":"USD","status":"{status}","damage_at_return":false,"activated_at":null,"completed_at":null,"created_at":"{at}","updated_at":"{at}"}}"#
        );
        put(&mut batch, key::record(organization, &rental::SPEC, rental), 1, json.into());
        for (number, values) in [
            (1, vec![status.as_bytes()]),
            (2, vec![customer.as_bytes().as_slice()]),
            (3, vec![status.as_bytes(), customer.as_bytes().as_slice()]),
        ] {
            put(&mut batch, entry(organization, number, &values, rental), 0, Bytes::new());
        }
        if batch.writes.len() >= BATCH {
            store.commit(std::mem::take(&mut batch)).await?;
        }
    }
    store.commit(batch).await?;
    if !store.change_version(SCHEMA_VERSION, 2, Batch::default()).await? {
        return Err("the version did not change".into());
    }
    Ok(())
}

fn put(batch: &mut Batch, key: Key, revision: u64, value: Bytes) {
    batch.writes.push(Write::Put(key, revision, value, Prior::New));
}

/// An index entry, byte by byte: no present description says what version 2 was.
fn entry(organization: OrganizationId, index: u8, values: &[&[u8]], rental: Uuid) -> Key {
    let mut bytes = [&b"i"[..], organization.as_bytes(), &[3, index]].concat();
    for value in values {
        bytes.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        bytes.extend_from_slice(value);
    }
    bytes.extend_from_slice(rental.as_bytes());
    Key::from_bytes(&bytes)
}
