//! What holds for any bytes: no panic, every row counted once, memory that does not grow with the file.

use crate::{
    SETTINGS, TOLL_FORMATS, VIOLATION_FORMATS, fixture, read_tolls, read_violations, refusal, tolls, violations,
};
use proptest::prelude::*;
use rental_core::imports::statements::{Failed, Mapping, Row, TOLLS};
use std::io::{self, Read};

const FIXTURES: [(&str, &str); 12] = [
    ("generic.csv", "generic"),
    ("ezpass-ny.csv", "ezpass-ny"),
    ("ezpass-ny-fleet.csv", "ezpass-ny-fleet"),
    ("ezpass-nj.csv", "ezpass-nj"),
    ("ezpass-nj-plaza-id.tsv", "ezpass-nj"),
    ("ezpass-pa.csv", "ezpass-pa"),
    ("sunpass.csv", "sunpass"),
    ("nyc-open-data.csv", "nyc-open-data"),
    ("nyc-open-data.json", "nyc-open-data"),
    ("nyc-fiscal-year.jsonl", "nyc-open-data"),
    ("nyc-fleet.csv", "nyc-fleet"),
    ("nyc-fleet-one-field-more.csv", "nyc-fleet"),
];

/// Every format reads the bytes to their end; whatever is recorded keeps its bounds.
fn survive(bytes: &[u8]) {
    let bounded =
        |text: &Option<rental_core::value::Text>| text.as_ref().is_none_or(|text| text.chars().count() <= 255);
    for (format, _) in TOLL_FORMATS {
        for row in tolls(bytes, Some(format), None, &SETTINGS).into_iter().flatten() {
            if let Ok((_, Row::Record(toll))) = row {
                assert!(!toll.amount.is_zero() && !toll.agency.is_empty());
                assert!([&toll.plaza, &toll.plate, &toll.transaction_id, &toll.plate_state].into_iter().all(bounded));
            }
        }
    }
    for (format, _) in VIOLATION_FORMATS {
        for row in violations(bytes, Some(format), &SETTINGS).into_iter().flatten() {
            if let Ok((_, Row::Record(violation))) = row {
                assert!(!violation.summons_number.is_empty());
                assert!([&violation.plate, &violation.violation].into_iter().all(bounded));
            }
        }
    }
}

/// A reader that gives its bytes in pieces of uneven size.
struct Pieces<'a>(&'a [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.1 = self.1 % 7 + 1;
        let count = self.1.min(self.0.len()).min(into.len());
        into[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        survive(&bytes);
    }

    #[test]
    fn no_change_to_a_file_makes_a_reader_panic(
        which in 0..FIXTURES.len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), 0u8..3, prop::sample::select(b"\"',;\t\r\n-$()[]{}\\:0 9E+/AP\0\xff\xc3".to_vec())), 1..6),
    ) {
        let mut bytes = fixture(FIXTURES[which].0);
        for (place, kind, byte) in changes {
            let at = place.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => { bytes.remove(at); }
            }
        }
        survive(&bytes);
    }

    #[test]
    fn no_text_makes_a_mapping_panic(text in "\\PC{0,80}") {
        let _ = Mapping::parse(&text, TOLLS.has_issuer);
    }

    #[test]
    fn every_row_of_a_file_is_one_row_at_its_line(
        rows in proptest::collection::vec(("[A-Z0-9]{0,4}", "[$-]{0,2}[0-9]{0,3}[.]?[0-9]{0,3}", "[a-z \",\n]{0,6}", 0usize..2), 0..40),
        end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
    ) {
        let mut text = format!("agency,amount,plate,plaza{end}");
        let (mut line, mut lines) = (2, Vec::new());
        for (agency, amount, plaza, blank) in rows {
            for _ in 0..blank {
                text += end;
                line += 1;
            }
            lines.push(line);
            line += 1 + plaza.matches('\n').count() as u64;
            text += &format!("{agency},{amount},P,\"{}\"{end}", plaza.replace('"', "\"\""));
        }
        let found = read_tolls(text.as_bytes(), None, None, &SETTINGS).unwrap();
        prop_assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), lines);
    }
}

#[test]
fn the_size_of_what_a_reader_gives_at_once_does_not_matter() {
    for (file, format) in FIXTURES {
        let bytes = fixture(file);
        if format.starts_with("nyc") {
            let whole = read_violations(&bytes, Some(format)).map_err(|failed| failed.to_string());
            let pieces = violations(Pieces(&bytes, 0), Some(format), &SETTINGS);
            let pieces = pieces.and_then(Iterator::collect).map_err(|failed| failed.to_string());
            assert_eq!(whole, pieces, "{file}");
        } else {
            let whole = read_tolls(&bytes, Some(format), None, &SETTINGS).unwrap();
            let pieces = tolls(Pieces(&bytes, 0), Some(format), None, &SETTINGS).unwrap();
            assert_eq!(whole, pieces.collect::<Result<Vec<_>, _>>().unwrap(), "{file}");
        }
    }
}

#[test]
fn line_ends_a_byte_order_mark_and_a_last_line_without_end_change_nothing() {
    let plain = String::from_utf8(fixture("ezpass-nj.csv")).unwrap();
    let rows = |text: &str| read_tolls(text.as_bytes(), Some("ezpass-nj"), None, &SETTINGS).unwrap();
    let expected = rows(&plain);
    assert_eq!(rows(&plain.replace('\n', "\r\n")), expected);
    assert_eq!(rows(&format!("\u{feff}{plain}")), expected);
    assert_eq!(rows(plain.trim_end()), expected);
    assert_eq!(rows(&plain.replace(',', ";")), expected);
    assert_eq!(rows(&plain.replace(',', "\t")), expected);
}

#[test]
fn a_row_that_is_not_utf_8_is_reported_and_does_not_stop_the_others() {
    let rows = read_tolls(b"agency,amount,plate\nA,1,P\nA,1,M\xfc\nA,1,P\n", None, None, &SETTINGS).unwrap();
    assert!(matches!(&rows[1], (3, Row::Invalid(why, _)) if why.contains("UTF-8")));
    assert!(matches!(rows[2], (4, Row::Record(_))));
    let rows = violations(
        &b"{\"summons_number\":1,\"plate\":\"\xfc\",\"amount_due\":1}\n{\"summons_number\":1,\"plate\":\"P\",\"amount_due\":1}"[..],
        None,
        &SETTINGS,
    );
    let rows: Vec<_> = rows.unwrap().collect::<Result<_, _>>().unwrap();
    assert!(matches!((&rows[0].1, &rows[1].1), (Row::Invalid(..), Row::Record(_))));
}

#[test]
fn a_first_row_of_the_generic_format_with_another_number_of_fields_is_only_bad_itself() {
    let rows = read_tolls(b"agency,amount,plate\nA,1\nA,1,P\n", None, None, &SETTINGS).unwrap();
    assert!(matches!((&rows[0].1, &rows[1].1), (Row::Invalid(..), Row::Record(_))), "{rows:?}");
}

#[test]
fn quotes_and_braces_within_json_texts_end_nothing() {
    let file = br#"[{"summons_number":"1","plate":"P","amount_due":"1","violation":"a \" } ] , [ { \\"},
        {"summons_number":"2","plate":"P","amount_due":"1"}]"#;
    let rows = read_violations(file, None).unwrap();
    assert_eq!(rows.len(), 2);
    assert!(
        matches!(&rows[0].1, Row::Record(row) if row.violation.as_deref() == Some("a \" } ] , [ { \\")),
        "{rows:?}"
    );
}

#[test]
fn a_member_that_is_there_twice_is_invalid_and_of_two_names_the_first_counts() {
    let file = br#"{"summons_number":"1","plate":"P","plate":"Q","amount_due":"1"}
        {"summons_number":"1","plate_id":"Q","plate":"P","amount_due":"1"}
        {"summons_number":"1","plate":"P","plate_id":"Q","amount_due":"1"}"#;
    let rows = read_violations(file, None).unwrap();
    assert!(matches!(&rows[0].1, Row::Invalid(why, _) if why.contains("twice")), "{rows:?}");
    for (_, row) in &rows[1..] {
        assert!(matches!(row, Row::Record(row) if row.plate.as_deref() == Some("P")), "{rows:?}");
    }
}

/// A head, then one byte without end; counts what was taken of it.
struct Endless<'a> {
    head: &'a [u8],
    byte: u8,
    taken: &'a mut u64,
}

impl Read for Endless<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.head.read(into)?;
        into[count..].fill(self.byte);
        *self.taken += into.len() as u64;
        assert!(*self.taken < 5_000_000, "it is not read without end");
        Ok(into.len())
    }
}

#[test]
fn a_record_without_end_is_refused_before_it_fills_the_memory() {
    for (head, byte) in [
        (&b"agency,amount,plate\nA,1,\"never closed "[..], b'x'),
        (b"agency,amount,plate\nA,1,\"", b'\n'),
        (b"agency,amount,plate\nA,1,", b','),
        (b"agency", b'y'),
    ] {
        let mut taken = 0;
        let read = tolls(Endless { head, byte, taken: &mut taken }, None, None, &SETTINGS);
        let sentence = refusal(read.and_then(Iterator::collect::<Result<Vec<_>, _>>));
        assert!(sentence.contains("begins in line"), "{sentence}");
        assert!(taken < 300_000, "{taken} bytes");
    }
    for head in [&b"[{\"plate\":\""[..], b"[{\"plate\":[[", b"{\"plate\":7"] {
        for byte in *b"x[7" {
            let mut taken = 0;
            let read = violations(Endless { head, byte, taken: &mut taken }, None, &SETTINGS);
            let sentence = refusal(read.and_then(Iterator::collect::<Result<Vec<_>, _>>));
            assert!(sentence.contains("64 KiB"), "{sentence}");
            assert!(taken < 300_000, "{taken} bytes");
        }
    }
}

#[test]
fn a_record_of_64_kib_is_read_and_a_longer_one_refuses_the_file() {
    let file = |length: usize| format!("agency,amount,plate\nA,1,{}\nA,1,P\n", "x".repeat(length - 2));
    let rows = read_tolls(file(64 * 1024).as_bytes(), None, None, &SETTINGS).unwrap();
    assert!(matches!((&rows[0].1, &rows[1].1), (Row::Invalid(why, _), Row::Record(_)) if why.contains("255")));
    refusal(read_tolls(file(64 * 1024 + 1).as_bytes(), None, None, &SETTINGS));
}

#[test]
fn an_error_of_the_reader_is_passed_on_and_ends_the_rows() {
    struct Broken<'a>(&'a [u8]);
    impl Read for Broken<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() { Err(io::Error::other("disk")) } else { self.0.read(into) }
        }
    }
    let head = format!("agency,amount,plate\n{}", "A,1,P\n".repeat(20_000));
    let mut reader = tolls(Broken(head.as_bytes()), None, None, &SETTINGS).unwrap();
    assert!(reader.by_ref().any(|row| matches!(row, Err(Failed::Read(error)) if error.to_string() == "disk")));
    assert!(reader.next().is_none());
}
