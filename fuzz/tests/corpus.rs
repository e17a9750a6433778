//! Every committed input, and everything that a fuzzer found on this machine, without a fuzzer.

use std::{fs, path::Path};

fn run(target: &str, check: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut inputs = 0;
    for entry in fs::read_dir(&directory).expect("every target has seeds") {
        let path = entry.expect("a file").path();
        println!("{}", path.display());
        check(&fs::read(path).expect("bytes"));
        inputs += 1;
    }
    assert!(inputs >= 4, "{target} has only {inputs} inputs");
}

macro_rules! targets {
    ($($target:ident),*) => {$(
        #[test]
        fn $target() {
            run(stringify!($target), rental_fuzz::$target::check);
        }
    )*};
}

targets!(
    archive,
    body,
    calendar,
    cursor,
    deliveries,
    holds,
    idempotency_header,
    import_tolls,
    import_violations,
    key_order,
    money,
    query,
    raw_http,
    signature,
    store_crashes,
    upgrade,
    webhook_url
);
