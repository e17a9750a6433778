//! `cargo build --release --locked --manifest-path rental-webhook-verify/no-std-check/Cargo.toml`
//!
//! A static library with a panic handler of its own and no allocator. It compiles only while nothing beneath it links
//! `std` (whose panic handler would be a second one, error E0152) or `alloc` ("no global memory allocator found").

#![no_std]

use core::ffi::{c_char, c_int};
use core::panic::PanicInfo;

use rental_webhook_verify::verify;

/// Refers to `verify`, so that its code is generated and not only checked.
#[unsafe(no_mangle)]
pub extern "C" fn webhook_verifies(now_unix_seconds: u64, last_byte: c_char) -> c_int {
    let header = "t=1700000000,v1=d95c6b7477fbd7e9f90b1b0ef5f9c7ac25abca5382460e0d988c2b2a5b71b990";
    let mut body = *br#"{"id":"evt_test_webhook","object":"event"}"#;
    if let Some(last) = body.last_mut() {
        *last = last_byte.to_ne_bytes()[0];
    }
    c_int::from(verify(b"whsec_test_secret", header, &body, now_unix_seconds).is_ok())
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}
