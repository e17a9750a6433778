//! The page for operators says what the readers do.

use crate::{SETTINGS, TOLL_FORMATS, VIOLATION_FORMATS, read_tolls};
use rental_core::imports::statements::{Mapping, Row, TOLLS};

fn page() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/imports.md");
    std::fs::read_to_string(path).expect("the page is there")
}

#[test]
fn the_page_names_every_format() {
    for (name, _) in TOLL_FORMATS.iter().chain(VIOLATION_FORMATS) {
        assert!(page().contains(&format!("| `{name}`")), "{name}");
    }
}

#[test]
fn the_mapping_of_the_page_reads_a_file() {
    let page = page();
    let (_, rest) = page.split_once("```json\n").expect("an example");
    let mapping = Mapping::parse(rest.split_once("```").expect("its end").0, TOLLS.has_issuer).expect("a mapping");
    let file = "Trans ID,Transaction Date,Transaction Time,Exit Plaza,Entry Plaza,Tag/Plate,State,Amount,Transaction Type\n\
                1,6/3/2026,8:20 PM,,North,ABC 123,TX,$1.50,Toll\n2,6/3/2026,8:20 PM,,,,,$20,OPENING BALANCE\n\
                3,6/3/2026,8:20 PM,,,,,$20,Credit Card Payment\n";
    let rows = read_tolls(file.as_bytes(), None, Some(&mapping), &SETTINGS).expect("it is read");
    assert!(matches!(&rows[0].1, Row::Record(toll) if toll.plate.as_deref() == Some("ABC123")), "{rows:?}");
    assert!(matches!((&rows[1].1, &rows[2].1), (Row::Skipped(..), Row::Skipped(..))), "{rows:?}");
}
