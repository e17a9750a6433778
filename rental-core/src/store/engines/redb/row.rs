//! The stored form of a row: a format byte, the revision, a checksum, the value. Index entries are empty.
//!
//! redb checks its page checksums only when it recovers a file or is asked to. So every read checks the checksum of the row, and the engine never
//! returns a damaged value: CRC-32 detects any single flipped bit and any burst of up to 32 bits.

use crate::store::{DamagedRow, Key, Record, Revision, Scanned};
use bytes::Bytes;

/// First byte of a stored value.
const FORMAT: u8 = 2;
/// Bytes before the value: format byte, revision, checksum.
const HEADER: usize = 1 + 8 + 4;

/// Decodes the bytes stored at `key`.
pub(super) fn decode(key: Key, stored: &[u8]) -> Scanned {
    let (revision, value) = split(&key, stored)?;
    Ok(Record { revision, value: Bytes::copy_from_slice(value), key })
}

/// Checks the checksum and splits the stored bytes into revision and value.
pub(super) fn split<'s>(key: &Key, stored: &'s [u8]) -> Result<(Revision, &'s [u8]), Box<DamagedRow>> {
    let damaged = |what: &str| DamagedRow::new(key.clone(), what);
    match stored.split_first() {
        None => Ok((0, stored)),
        Some((&FORMAT, _)) => {
            let (header, value) =
                stored.split_first_chunk::<HEADER>().ok_or_else(|| damaged("the row is cut short"))?;
            let [_, revision @ .., a, b, c, d] = *header;
            if u32::from_be_bytes([a, b, c, d]) != checksum(key, &revision, value) {
                return Err(damaged("the checksum does not match"));
            }
            Ok((u64::from_be_bytes(revision), value))
        }
        Some((format, _)) => Err(damaged(&format!("the row has the unknown format {format}"))),
    }
}

/// Encodes the bytes to store at `key`.
pub(super) fn encode(key: &Key, revision: Revision, value: &[u8]) -> Vec<u8> {
    if revision == 0 && value.is_empty() {
        return Vec::new();
    }
    let revision = revision.to_be_bytes();
    let mut stored = Vec::with_capacity(HEADER + value.len());
    stored.push(FORMAT);
    stored.extend_from_slice(&revision);
    stored.extend_from_slice(&checksum(key, &revision, value).to_be_bytes());
    stored.extend_from_slice(value);
    stored
}

/// The size of the value in these stored bytes, which are not checked.
pub(super) fn value_size(stored: &[u8]) -> usize {
    stored.len().saturating_sub(HEADER)
}

/// The checksum also covers the key, so it detects a row that is stored at a wrong key.
fn checksum(key: &Key, revision: &[u8; 8], value: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key.as_bytes());
    hasher.update(revision);
    hasher.update(value);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(bytes: &[u8]) -> Key {
        Key::from_bytes(bytes)
    }

    #[test]
    fn a_marker_is_empty() {
        assert_eq!(encode(&key(b"i"), 0, b""), b"");
        assert_eq!(split(&key(b"i"), b""), Ok((0, &b""[..])));
    }

    #[test]
    fn a_row_of_an_older_format_is_refused() {
        let old = [&[1][..], &7u64.to_be_bytes(), b"{}"].concat();
        assert!(matches!(split(&key(b"r"), &old), Err(row) if row.reason.contains("format 1")));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded_at_its_key_alone(at in proptest::collection::vec(any::<u8>(), 1..60), revision: u64, value in proptest::collection::vec(any::<u8>(), 0..700), other: u8) {
            let stored = encode(&key(&at), revision, &value);
            prop_assert_eq!(split(&key(&at), &stored), Ok((revision, value.as_slice())));
            let moved = [at.as_slice(), &[other]].concat();
            prop_assert!(stored.is_empty() || split(&key(&moved), &stored).is_err());
        }

        #[test]
        fn a_flipped_bit_anywhere_in_a_row_is_found(revision in 1u64.., value in proptest::collection::vec(any::<u8>(), 0..700), bit: prop::sample::Index) {
            let mut stored = encode(&key(b"r1"), revision, &value);
            let bit = bit.index(stored.len() * 8);
            stored[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(split(&key(b"r1"), &stored).is_err_and(|row| row.key == key(b"r1")));
        }
    }
}
