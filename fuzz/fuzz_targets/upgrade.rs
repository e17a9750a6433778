#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rental_fuzz::upgrade::check(data));
