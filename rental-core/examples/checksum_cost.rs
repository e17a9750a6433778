//! What the checksum of a row costs: gets of 600-byte records, beside the checksum alone.
//!
//! ```text
//! cargo run --release --locked -p rental-core --example checksum_cost
//! ```

use rental_core::store::{Batch, Key, Prior, Store, Write, redb::Redb};
use std::{
    hint::black_box,
    time::{Duration, Instant},
};

const RECORDS: u64 = 100_000;
const GETS: u64 = 2_000_000;

fn key(n: u64) -> Key {
    let scattered = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Key::from_bytes(&[&[b'r'; 18][..], &scattered.to_be_bytes(), &n.to_be_bytes()].concat())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let store = Redb::open(&directory.path().join("cost.redb"), 1 << 30)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let value = vec![b'x'; 600];
    let writes = (0..RECORDS).map(|n| Write::Put(key(n), 1, value.clone().into(), Prior::Any)).collect();
    runtime.block_on(store.commit(Batch { checks: Vec::new(), writes }))?;
    let keys: Vec<[Key; 1]> = (0..RECORDS).map(|n| [key(n)]).collect();
    let each = |took: Duration| took.as_nanos() as u64 / GETS;
    for round in 1..=3 {
        let began = Instant::now();
        for n in 0..GETS {
            let asked = &keys[(n.wrapping_mul(7919) % RECORDS) as usize];
            black_box(runtime.block_on(store.get(asked))?);
        }
        let get = each(began.elapsed());
        let began = Instant::now();
        for n in 0..GETS {
            let mut hasher = crc32fast::Hasher::new();
            hasher.update(black_box(keys[(n % RECORDS) as usize][0].as_bytes()));
            hasher.update(&black_box(n).to_be_bytes());
            hasher.update(black_box(&value));
            black_box(hasher.finalize());
        }
        println!("round {round}: a get takes {get} ns, of which the checksum {} ns", each(began.elapsed()));
    }
    Ok(())
}
