//! A backup: all rows of a store in one stream of bytes, in the same format for every engine.
//!
//! ```text
//! rental-backup {JSON header}\n  CRC-32 of this line
//! F  raw length  packed length  CRC-32  packed rows          a frame; any number of them
//! E  rows  frames  raw bytes  SHA-256 of everything before   the end; nothing follows
//! ```
//! Numbers are big-endian; lengths and CRCs have 4 bytes, counts 8. The CRC of a frame covers the rest of the frame, so it
//! locates damage. The SHA-256 also detects missing, repeated and reordered frames. Frames are LZ4 blocks, about a third
//! of the rows' size. LZ4 is as fast as a disk and needs no C library. Writer and reader need the memory of one frame.
//!
//! A row is key length, revision (8 bytes), value length, key, value. Keys ascend through the whole archive.

#[cfg(any(feature = "redb", feature = "postgres"))]
mod digest;
mod error;
mod layout;
mod reader;
mod writer;

#[cfg(any(feature = "redb", feature = "postgres"))]
pub(super) use digest::digest_row;
pub use error::ArchiveError;
pub(super) use layout::MAGIC;
pub use layout::{FORMAT, Header, Summary};
pub use reader::Reader;
pub use writer::Writer;
