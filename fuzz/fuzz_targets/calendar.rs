#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rental_fuzz::calendar::check(data));
