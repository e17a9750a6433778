#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rental_fuzz::store_crashes::check(data));
