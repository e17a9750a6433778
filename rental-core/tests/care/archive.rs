//! Archives: what goes in comes out, and every kind of damage is told.

use proptest::prelude::*;
use rental_core::{
    store::{
        Key, Record,
        archive::{ArchiveError, Reader, Summary, Writer},
    },
    value::Timestamp,
};
use std::collections::BTreeMap;

pub(crate) fn packed(rows: &[Record]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), 2, "test 1.0", Timestamp::from_millis(1_000)).expect("memory takes it");
    for row in rows {
        writer.push(row).expect("memory takes it");
    }
    writer.finish().expect("memory takes it").0
}

fn unpacked(bytes: &[u8]) -> Result<(Vec<Record>, Summary), ArchiveError> {
    let mut reader = Reader::open(bytes)?;
    let mut rows = Vec::new();
    while let Some(frame) = reader.next_frame()? {
        rows.extend(frame);
    }
    Ok((rows, reader.summary().cloned().expect("the end was reached")))
}

fn row(key: &[u8], revision: u64, value: &[u8]) -> Record {
    Record { key: Key::from_bytes(key), revision, value: value.to_vec().into() }
}

fn three() -> Vec<Record> {
    vec![row(b"a", 1, b"one"), row(b"b", 0, b""), row(b"c", 3, br#"{"id":"three"}"#)]
}

#[test]
fn every_flipped_bit_is_found() {
    let whole = packed(&three());
    assert!(unpacked(&whole).is_ok());
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(unpacked(&bytes).is_err(), "bit {bit}");
    }
}

#[test]
fn an_archive_that_ends_anywhere_too_early_is_cut_off() {
    let whole = packed(&three());
    for length in 0..whole.len() {
        let found = unpacked(&whole[..length]);
        assert!(
            matches!(found, Err(ArchiveError::Truncated { offset, .. }) if offset <= length as u64),
            "{length}: {found:?}"
        );
    }
}

#[test]
fn what_follows_the_end_is_damage() {
    let mut bytes = packed(&three());
    bytes.push(0);
    assert!(matches!(unpacked(&bytes), Err(ArchiveError::Damaged { .. })));
}

#[test]
fn damage_is_told_with_its_frame_and_byte() {
    let rows: Vec<Record> = (0..9u8).map(|n| row(&[n], 1, &noise(n, 100_000))).collect();
    let whole = packed(&rows);
    let (_, summary) = unpacked(&whole).expect("it is whole");
    assert_eq!((summary.rows, summary.frames, summary.bytes), (9, 3, whole.len() as u64));
    let mut bytes = whole.clone();
    bytes[400_000] ^= 1;
    let told = unpacked(&bytes).expect_err("a flipped bit").to_string();
    assert!(told.contains("in frame 2, at byte 30"), "{told}");
}

#[test]
fn frames_that_are_gone_or_twice_there_are_found() {
    let rows: Vec<Record> = (0..9u8).map(|n| row(&[n], 1, &noise(n, 100_000))).collect();
    let whole = packed(&rows);
    let end = whole.len() - 57;
    let head = whole.iter().position(|byte| *byte == b'\n').expect("a line") + 5;
    let length = 13 + u32::from_be_bytes(whole[head + 5..head + 9].try_into().expect("four bytes")) as usize;
    let without_first = [&whole[..head], &whole[head + length..]].concat();
    assert!(matches!(unpacked(&without_first), Err(ArchiveError::Damaged { .. })));
    let twice = [&whole[..head + length], &whole[head..]].concat();
    assert!(matches!(unpacked(&twice), Err(ArchiveError::Damaged { .. })));
    let no_frames = [&whole[..head], &whole[end..]].concat();
    assert!(matches!(unpacked(&no_frames), Err(ArchiveError::Damaged { .. })));
}

#[test]
fn another_file_is_no_archive_and_a_later_version_is_named() {
    assert!(matches!(unpacked(b"redb\x1a\x0a"), Err(ArchiveError::NotAnArchive)));
    assert!(matches!(unpacked(&[b'r'; 5000]), Err(ArchiveError::NotAnArchive)));
    let mut line = b"rental-backup {\"format\":2,\"new\":true}\n".to_vec();
    line.extend_from_slice(&crc32fast::hash(&line).to_be_bytes());
    assert!(matches!(unpacked(&line), Err(ArchiveError::Newer(2))));
}

#[test]
fn rows_out_of_order_are_refused_by_the_writer() {
    let mut writer = Writer::new(Vec::new(), 2, "test", Timestamp::default()).expect("memory takes it");
    writer.push(&row(b"b", 1, b"x")).expect("the first row");
    assert!(writer.push(&row(b"a", 1, b"x")).is_err() && writer.push(&row(b"b", 1, b"x")).is_err());
}

/// Bytes that cannot be packed.
fn noise(seed: u8, length: usize) -> Vec<u8> {
    let mut state = u64::from(seed) + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    (0..length).map(|_| next()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_goes_in_comes_out(rows in proptest::collection::btree_map(proptest::collection::vec(any::<u8>(), 0..80), (any::<u64>(), any::<u8>(), prop_oneof![9 => 0usize..700, 1 => 0usize..300_000]), 0..40)) {
        let rows: BTreeMap<Vec<u8>, (u64, u8, usize)> = rows;
        let rows: Vec<Record> =
            rows.iter().map(|(key, (revision, seed, length))| row(key, *revision, &noise(*seed, *length))).collect();
        let bytes = packed(&rows);
        let (found, summary) = unpacked(&bytes).expect("it is whole");
        prop_assert_eq!(&found, &rows);
        prop_assert_eq!((summary.rows, summary.bytes), (rows.len() as u64, bytes.len() as u64));
    }

    #[test]
    fn any_bytes_are_an_error_and_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(unpacked(&bytes).is_err());
        let begun = [b"rental-backup ".as_slice(), &bytes].concat();
        prop_assert!(unpacked(&begun).is_err());
    }
}
