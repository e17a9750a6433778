//! The layout of an archive: its parts, their limits, and the checksum of a frame.

use crate::value::Timestamp;
use serde::{Deserialize, Serialize};

/// The version of the archive format that this program writes and reads.
pub const FORMAT: u64 = 1;
/// First bytes of every archive.
pub(in crate::store) const MAGIC: &[u8] = b"rental-backup ";
/// Most bytes of the first line.
pub(super) const MAX_LINE: usize = 1024;
/// The writer closes a frame when its rows have at least this many bytes.
pub(super) const FRAME: usize = 256 << 10;
/// Most bytes of a key, and of a value below. This program writes far smaller ones.
pub(super) const MAX_KEY: usize = 64 << 10;
pub(super) const MAX_VALUE: usize = 64 << 20;
/// Most bytes of rows in a frame.
pub(super) const MAX_FRAME: usize = FRAME + ROW + MAX_KEY + MAX_VALUE;
/// Bytes of a row without its key and value.
pub(super) const ROW: usize = 4 + 8 + 4;
pub(super) const FRAME_MARK: u8 = b'F';
pub(super) const END_MARK: u8 = b'E';

/// The first line of an archive.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Header {
    /// The version of the archive format, see [`FORMAT`].
    pub format: u64,
    /// The schema version of the rows.
    pub schema_version: u64,
    /// Name and version of the program that wrote the archive.
    pub created_by: String,
    /// The time at which the backup began.
    pub created_at: Timestamp,
}

/// The totals of an archive.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Summary {
    /// Number of rows in all frames.
    pub rows: u64,
    /// Number of compressed frames.
    pub frames: u64,
    /// Size of all rows before compression, in bytes.
    pub raw_bytes: u64,
    /// Size of the archive, in bytes.
    pub bytes: u64,
    /// SHA-256 of the archive except its last 32 bytes, in hex.
    pub sha256: String,
}

/// The CRC-32 of a frame: of all its bytes except the CRC itself.
pub(super) fn frame_checksum(head: &[u8], packed: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(packed);
    hasher.finalize()
}
