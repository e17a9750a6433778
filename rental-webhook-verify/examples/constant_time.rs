//! What `constant-time.sh` runs under callgrind: calls that differ only in what must not change their cost.
//!
//! callgrind counts the instructions inside `measured_*` and writes one count for each call. The first call of each
//! series warms up (the CPU's features are looked up once) and is dropped by the script.

use std::env;
use std::hint::black_box;
use std::process::ExitCode;

use hmac::{Hmac, KeyInit, Mac};
use rental_webhook_verify::{MAX_SIGNATURES, Verifier};
use sha2::Sha256;

const SECRETS: [&str; 4] =
    ["whsec_secret_number_0", "whsec_secret_number_1", "whsec_secret_number_2", "whsec_secret_number_3"];
const BODY: &[u8] = br#"{"id":"evt_1","type":"rental.created","created":1700000000,"data":{}}"#;
const T: &str = "1700000000";
const NOW: u64 = 1_700_000_000;

type Tag = [u8; 32];

#[inline(never)]
fn measured_verify(secrets: &[&str], header: &str) -> bool {
    Verifier::new(secrets).verify(header, BODY, NOW).is_ok()
}

/// The control: `==` on slices, here of the hex digits as hand-written receivers compare them. (32 bytes the C library
/// may compare in a single vector instruction, and then there is nothing to count.)
#[inline(never)]
fn measured_slices(expected: &[u8], presented: &[u8]) -> bool {
    expected == presented
}

/// The control for a comparison that someone writes as a loop.
#[inline(never)]
fn measured_bytes(expected: &[u8], presented: &[u8]) -> bool {
    expected.iter().zip(presented).all(|(expected, presented)| expected == presented)
}

/// The control for several signatures: stops at the first that matches.
#[inline(never)]
fn measured_any(expected: &[u8], presented: &[Tag]) -> bool {
    presented.iter().any(|tag| tag == expected)
}

fn tag(secret: &str) -> Tag {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes any key");
    mac.update(&[T.as_bytes(), b".", BODY].concat());
    mac.finalize().into_bytes().into()
}

fn hex(tag: &Tag) -> String {
    tag.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn header(tags: &[Tag]) -> String {
    tags.iter().fold(format!("t={T}"), |header, tag| header + ",v1=" + &hex(tag))
}

/// The good tag with one wrong byte. Decoding the presented signature may take longer for a letter than for a digit:
/// whoever sent it knows it. So that this does not blur the count, the wrong digit is of the same sort as the good one.
fn wrong_at(position: usize) -> Tag {
    let mut wrong = tag(SECRETS[0]);
    wrong[position] ^= 0x01; // 0-1, 2-3, .. 8-9, a-b, .. e-f
    wrong
}

/// Only one of the tags is good, at `index`; the others are wrong.
fn good_at(index: usize) -> Vec<Tag> {
    let mut tags = vec![wrong_at(0); MAX_SIGNATURES];
    tags[index] = tag(SECRETS[0]);
    tags
}

/// The secrets with the one that signs at `index`.
fn signing_at(index: usize) -> [&'static str; 4] {
    let mut secrets = SECRETS;
    secrets.swap(0, index);
    secrets
}

/// The first is done twice: the script drops the warm-up.
fn series(len: usize) -> impl Iterator<Item = usize> {
    (0..1).chain(0..len)
}

fn main() -> ExitCode {
    let good = tag(SECRETS[0]);
    match env::args().nth(1).as_deref() {
        Some("wrong-byte") => series(32).map(|at| header(&[wrong_at(at)])).for_each(|header| {
            assert!(!measured_verify(black_box(&SECRETS[..1]), black_box(&header)));
        }),
        Some("which-signature") => series(MAX_SIGNATURES).map(|at| header(&good_at(at))).for_each(|header| {
            assert!(measured_verify(black_box(&SECRETS[..1]), black_box(&header)));
        }),
        Some("which-secret") => series(SECRETS.len()).map(signing_at).for_each(|secrets| {
            assert!(measured_verify(black_box(&secrets), black_box(&header(&[good]))));
        }),
        Some("control-slices") => series(32).map(|at| hex(&wrong_at(at))).for_each(|wrong| {
            assert!(!measured_slices(black_box(hex(&good).as_bytes()), black_box(wrong.as_bytes())));
        }),
        Some("control-bytes") => series(32).map(wrong_at).for_each(|wrong| {
            assert!(!measured_bytes(black_box(&good), black_box(&wrong)));
        }),
        Some("control-which-signature") => series(MAX_SIGNATURES).map(good_at).for_each(|tags| {
            assert!(measured_any(black_box(&good), black_box(&tags)));
        }),
        _ => {
            eprintln!("usage: constant_time SERIES, as in constant-time.sh");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
