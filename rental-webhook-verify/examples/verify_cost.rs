//! What verifying costs beside the HMAC that nobody can do without.
//!
//! `cargo run --release --example verify_cost`: for bodies of some sizes the time of one bare HMAC-SHA256 over `<t>.<body>`,
//! of one `verify`, and the first divided by the second (1 would be free; the aim is 0.9 at 1 KiB).

use std::hint::black_box;
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use rental_webhook_verify::verify;
use sha2::Sha256;

const SECRET: &[u8] = b"whsec_5f2b8c1e9a7d4036c1d8e0b7a6f54932";
const T: &str = "1700000000";
const NOW: u64 = 1_700_000_000;
const ROUNDS: usize = 201;

fn bare(secret: &[u8], body: &[u8]) -> Option<[u8; 32]> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
    mac.update(T.as_bytes());
    mac.update(b".");
    mac.update(body);
    Some(mac.finalize().into_bytes().into())
}

fn time(calls: u32, mut call: impl FnMut()) -> Duration {
    let start = Instant::now();
    for _ in 0..calls {
        call();
    }
    start.elapsed() / calls
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn main() {
    println!("body bytes   HMAC ns   verify ns   HMAC / verify");
    for size in [0, 100, 1024, 16 * 1024] {
        let body = vec![b'x'; size];
        let tag: String = bare(SECRET, &body).unwrap_or_default().iter().map(|byte| format!("{byte:02x}")).collect();
        let header = format!("t={T},v1={tag}");
        let calls = 2_000_000 / (u32::try_from(size).unwrap_or(u32::MAX) + 2000);
        // In turn, so that a change of the machine's speed meets both.
        let (hmac, whole): (Vec<_>, Vec<_>) = (0..ROUNDS)
            .map(|_| {
                let hmac = time(calls, || {
                    black_box(bare(black_box(SECRET), black_box(&body)));
                });
                let whole = time(calls, || {
                    let verdict = verify(black_box(SECRET), black_box(&header), black_box(&body), black_box(NOW));
                    assert_eq!(verdict, Ok(()));
                });
                (hmac, whole)
            })
            .unzip();
        let (hmac, whole) = (median(hmac), median(whole));
        let ratio = hmac.as_secs_f64() / whole.as_secs_f64();
        println!("{size:>10} {:>9} {:>11} {ratio:>15.3}", hmac.as_nanos(), whole.as_nanos());
    }
}
