//! A backup: all rows of a store in one stream of bytes, whichever engine they come from.
//!
//! ```text
//! rental-backup {JSON header}\n  CRC-32 of this line
//! F  raw length  packed length  CRC-32  packed rows          a frame; any number of them
//! E  rows  frames  raw bytes  SHA-256 of everything before   the end; nothing follows
//! ```
//! Numbers are big-endian; lengths and CRCs have 4 bytes, counts 8. The CRC of a frame covers all else of it, so damage is
//! found where it is; the SHA-256 also finds frames that are gone, twice there or elsewhere. Frames are LZ4 blocks: about
//! a third of the size at the speed of a disk, without a C library. Writing and reading need the memory of one frame.
//!
//! A row is key length, revision (8 bytes), value length, key, value; keys rise through the whole archive.

use crate::{
    store::{Key, Record, Revision},
    value::Timestamp,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io::{self, ErrorKind, Read, Write};

/// The version of this layout.
pub const FORMAT: u64 = 1;
/// What an archive begins with.
const MAGIC: &[u8] = b"rental-backup ";
/// Longest first line.
const MAX_LINE: usize = 1024;
/// A frame is closed once its rows have so many bytes.
const FRAME: usize = 256 << 10;
/// Longest key and value: far beyond what this program writes.
const MAX_KEY: usize = 64 << 10;
const MAX_VALUE: usize = 64 << 20;
/// Most bytes of rows in a frame.
const MAX_FRAME: usize = FRAME + ROW + MAX_KEY + MAX_VALUE;
/// Bytes of a row beside key and value.
const ROW: usize = 4 + 8 + 4;
const FRAME_MARK: u8 = b'F';
const END_MARK: u8 = b'E';

/// The first line.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Header {
    /// [`FORMAT`].
    pub format: u64,
    /// The version of keys and values.
    pub schema_version: u64,
    /// The program that wrote it, with its version.
    pub created_by: String,
    /// When.
    pub created_at: Timestamp,
}

/// What an archive holds.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Summary {
    /// Rows.
    pub rows: u64,
    /// Frames.
    pub frames: u64,
    /// Bytes of all rows before they were packed.
    pub raw_bytes: u64,
    /// Bytes of the archive.
    pub bytes: u64,
    /// SHA-256 of all but its last 32 bytes, in hex.
    pub sha256: String,
}

/// What is wrong with an archive. Frames count from 1.
#[derive(Debug)]
pub enum ArchiveError {
    /// It does not begin like one.
    NotAnArchive,
    /// A later version wrote it.
    Newer(u64),
    /// It ends too early.
    Truncated {
        /// In this frame.
        frame: u64,
        /// After so many bytes.
        offset: u64,
    },
    /// Bytes are not what was written.
    Damaged {
        /// In this frame.
        frame: u64,
        /// The frame, or the part of it, begins here.
        offset: u64,
        /// How that shows.
        what: &'static str,
    },
    /// It was not read to its end.
    Unread,
    /// It cannot be read.
    Io(io::Error),
}

impl std::fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotAnArchive => f.write_str("this is no backup: it does not begin with `rental-backup`"),
            Self::Newer(format) => {
                write!(f, "the backup has format {format}, this program knows {FORMAT}: use the version that wrote it")
            }
            Self::Truncated { frame, offset } => {
                write!(f, "the backup is cut off in frame {frame}, after {offset} bytes")
            }
            Self::Damaged { frame, offset, what } => {
                write!(f, "the backup is damaged in frame {frame}, at byte {offset}: {what}")
            }
            Self::Unread => f.write_str("the backup was not read to its end"),
            Self::Io(error) => write!(f, "the backup cannot be read: {error}"),
        }
    }
}

impl std::error::Error for ArchiveError {}

/// Adds a row to a digest, by which what was written is compared with what is read back.
#[cfg(any(feature = "redb", feature = "postgres"))]
pub(super) fn digest_row(digest: &mut Sha256, record: &Record) {
    for part in [record.key.as_bytes(), &record.revision.to_be_bytes(), &record.value] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
}

/// Writes an archive. Each frame goes out in one call of `write_all`.
pub struct Writer<W> {
    out: W,
    hash: Sha256,
    frame: Vec<u8>,
    last: Option<Key>,
    summary: Summary,
}

impl<W: Write> Writer<W> {
    /// Begins an archive.
    ///
    /// # Errors
    /// `out` takes nothing.
    pub fn new(out: W, schema_version: u64, created_by: &str, created_at: Timestamp) -> io::Result<Self> {
        let header = Header { format: FORMAT, schema_version, created_by: created_by.to_owned(), created_at };
        let mut line = MAGIC.to_vec();
        serde_json::to_writer(&mut line, &header)?;
        line.push(b'\n');
        if line.len() > MAX_LINE {
            return Err(io::Error::new(ErrorKind::InvalidInput, "the name of the program is too long"));
        }
        line.extend_from_slice(&crc32fast::hash(&line).to_be_bytes());
        let mut writer = Self { out, hash: Sha256::new(), frame: Vec::new(), last: None, summary: Summary::default() };
        writer.put(&line)?;
        Ok(writer)
    }

    /// Adds a row; keys must rise. Says whether a frame went out.
    ///
    /// # Errors
    /// `out` takes no more, or the row is out of order or larger than any row may be.
    pub fn push(&mut self, record: &Record) -> io::Result<bool> {
        let Record { key, revision, value } = record;
        let bad =
            |what| Err(io::Error::new(ErrorKind::InvalidInput, format!("row {}: {what}", hex::encode(key.as_bytes()))));
        if self.last.as_ref().is_some_and(|last| last >= key) {
            return bad("the row is out of order");
        }
        let (Some(key_length), Some(value_length)) =
            (bounded(key.as_bytes().len(), MAX_KEY), bounded(value.len(), MAX_VALUE))
        else {
            return bad("the row is too large for a backup");
        };
        self.frame.extend_from_slice(&key_length.to_be_bytes());
        self.frame.extend_from_slice(&revision.to_be_bytes());
        self.frame.extend_from_slice(&value_length.to_be_bytes());
        self.frame.extend_from_slice(key.as_bytes());
        self.frame.extend_from_slice(value);
        self.last = Some(key.clone());
        self.summary.rows += 1;
        let full = self.frame.len() >= FRAME;
        if full {
            self.flush_frame()?;
        }
        Ok(full)
    }

    /// Writes the end.
    ///
    /// # Errors
    /// `out` takes no more.
    pub fn finish(mut self) -> io::Result<(W, Summary)> {
        if !self.frame.is_empty() {
            self.flush_frame()?;
        }
        let mut end = vec![END_MARK];
        for count in [self.summary.rows, self.summary.frames, self.summary.raw_bytes] {
            end.extend_from_slice(&count.to_be_bytes());
        }
        self.hash.update(&end);
        let sha256: [u8; 32] = self.hash.clone().finalize().into();
        end.extend_from_slice(&sha256);
        self.out.write_all(&end)?;
        self.out.flush()?;
        self.summary.bytes += end.len() as u64;
        self.summary.sha256 = hex::encode(sha256);
        Ok((self.out, self.summary))
    }

    fn flush_frame(&mut self) -> io::Result<()> {
        let packed = lz4_flex::block::compress(&self.frame);
        // Neither can be too long: a frame is closed after the row that fills it, and LZ4 adds less than one percent.
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes();
        let mut out = Vec::with_capacity(13 + packed.len());
        out.push(FRAME_MARK);
        out.extend_from_slice(&length(&self.frame));
        out.extend_from_slice(&length(&packed));
        let crc = frame_checksum(&out, &packed);
        out.extend_from_slice(&crc.to_be_bytes());
        out.extend_from_slice(&packed);
        self.summary.frames += 1;
        self.summary.raw_bytes += self.frame.len() as u64;
        self.frame.clear();
        self.put(&out)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.summary.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}

fn bounded(length: usize, most: usize) -> Option<u32> {
    u32::try_from(length).ok().filter(|_| length <= most)
}

fn frame_checksum(head: &[u8], packed: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(packed);
    hasher.finalize()
}

/// Reads an archive frame by frame. What it gave is right only once the end was reached: see [`Reader::summary`].
pub struct Reader<R> {
    from: R,
    hash: Sha256,
    header: Header,
    last: Option<Key>,
    seen: Summary,
    end: Option<Summary>,
}

impl<R: Read> Reader<R> {
    /// Reads the first line.
    ///
    /// # Errors
    /// It is no archive, one of a later version, or its beginning is damaged.
    pub fn open(from: R) -> Result<Self, ArchiveError> {
        let header =
            Header { format: 0, schema_version: 0, created_by: String::new(), created_at: Timestamp::default() };
        let mut reader = Self { from, hash: Sha256::new(), header, last: None, seen: Summary::default(), end: None };
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') && line.len() < MAX_LINE {
            let mut byte = [0];
            reader.fill(&mut byte)?;
            line.push(byte[0]);
            if !line.starts_with(&MAGIC[..line.len().min(MAGIC.len())]) {
                return Err(ArchiveError::NotAnArchive);
            }
        }
        let mut crc = [0; 4];
        reader.fill(&mut crc)?;
        if crc != crc32fast::hash(&line).to_be_bytes() {
            return Err(reader.damaged(0, "the checksum of the first line does not match"));
        }
        /// What every version has.
        #[derive(Deserialize)]
        struct Any {
            format: u64,
        }
        let unknown = || ArchiveError::Damaged { frame: 0, offset: 0, what: "the first line has another shape" };
        let json = &line[MAGIC.len()..];
        let any: Any = serde_json::from_slice(json).map_err(|_| unknown())?;
        if any.format != FORMAT {
            return Err(ArchiveError::Newer(any.format));
        }
        reader.header = serde_json::from_slice(json).map_err(|_| unknown())?;
        Ok(reader)
    }

    /// What the first line says.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What the end says, once it was reached and everything was found as it was written.
    #[must_use]
    pub fn summary(&self) -> Option<&Summary> {
        self.end.as_ref()
    }

    /// How many rows and bytes were read so far.
    #[must_use]
    pub fn so_far(&self) -> &Summary {
        &self.seen
    }

    /// The rows of the next frame; `None` once all were read and the end is right.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn next_frame(&mut self) -> Result<Option<Vec<Record>>, ArchiveError> {
        if self.end.is_some() {
            return Ok(None);
        }
        let offset = self.seen.bytes;
        let mut mark = [0];
        self.fill(&mut mark)?;
        match mark[0] {
            FRAME_MARK => self.frame(offset).map(Some),
            END_MARK => self.finish(offset).map(|()| None),
            _ => Err(self.damaged(offset, "neither a frame nor the end begins here")),
        }
    }

    /// Reads all that is left, for its checksums alone. `progress` is told after each frame.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn verify(&mut self, progress: &mut dyn FnMut(&Summary)) -> Result<Summary, ArchiveError> {
        while self.next_frame()?.is_some() {
            progress(&self.seen);
        }
        self.end.clone().ok_or(ArchiveError::Unread)
    }

    fn frame(&mut self, offset: u64) -> Result<Vec<Record>, ArchiveError> {
        let mut head = [FRAME_MARK, 0, 0, 0, 0, 0, 0, 0, 0];
        self.fill(&mut head[1..])?;
        let mut crc = [0; 4];
        self.fill(&mut crc)?;
        let number = |at: usize| usize::try_from(u32_at(&head, at)).unwrap_or(usize::MAX);
        let (raw_length, packed_length) = (number(1), number(5));
        if raw_length > MAX_FRAME || packed_length > lz4_flex::block::get_maximum_output_size(MAX_FRAME) {
            return Err(self.damaged(offset, "the frame is longer than any"));
        }
        // Grows with what is there, so that a damaged length asks for no memory.
        let mut packed = Vec::new();
        let read = (&mut self.from).take(packed_length as u64).read_to_end(&mut packed).map_err(ArchiveError::Io)?;
        self.took(&packed);
        if read < packed_length {
            return Err(ArchiveError::Truncated { frame: self.seen.frames + 1, offset: self.seen.bytes });
        }
        if crc != frame_checksum(&head, &packed).to_be_bytes() {
            return Err(self.damaged(offset, "the checksum does not match"));
        }
        let raw = lz4_flex::block::decompress(&packed, raw_length).ok().filter(|raw| raw.len() == raw_length);
        let Some(raw) = raw else { return Err(self.damaged(offset, "the frame cannot be unpacked")) };
        let Some(records) = self.records(&raw) else { return Err(self.damaged(offset, "the rows do not fit")) };
        self.seen.frames += 1;
        self.seen.raw_bytes += raw_length as u64;
        Ok(records)
    }

    fn records(&mut self, mut rest: &[u8]) -> Option<Vec<Record>> {
        let mut records = Vec::new();
        while !rest.is_empty() {
            let (head, behind) = rest.split_first_chunk::<ROW>()?;
            let revision = Revision::from_be_bytes(head[4..12].try_into().ok()?);
            let length = |at: usize| usize::try_from(u32_at(head, at)).ok();
            let (key, behind) = behind.split_at_checked(length(0)?)?;
            let (value, behind) = behind.split_at_checked(length(12)?)?;
            let key = Key::from_bytes(key);
            if self.last.as_ref().is_some_and(|last| *last >= key) {
                return None;
            }
            self.last = Some(key.clone());
            self.seen.rows += 1;
            records.push(Record { key, revision, value: Bytes::copy_from_slice(value) });
            rest = behind;
        }
        Some(records)
    }

    fn finish(&mut self, offset: u64) -> Result<(), ArchiveError> {
        let mut counts = [0; 24];
        self.fill(&mut counts)?;
        let expected: [u8; 32] = self.hash.clone().finalize().into();
        let mut sha256 = [0; 32];
        self.fill(&mut sha256)?;
        if sha256 != expected {
            return Err(self.damaged(offset, "the SHA-256 of the whole does not match"));
        }
        let seen = [self.seen.rows, self.seen.frames, self.seen.raw_bytes].map(u64::to_be_bytes).concat();
        if seen != counts {
            return Err(self.damaged(offset, "the counts do not match"));
        }
        let mut more = [0];
        if self.from.read(&mut more).map_err(ArchiveError::Io)? != 0 {
            return Err(self.damaged(self.seen.bytes, "something follows the end"));
        }
        self.seen.sha256 = hex::encode(sha256);
        self.end = Some(self.seen.clone());
        Ok(())
    }

    fn fill(&mut self, out: &mut [u8]) -> Result<(), ArchiveError> {
        self.from.read_exact(out).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => {
                ArchiveError::Truncated { frame: self.seen.frames + 1, offset: self.seen.bytes }
            }
            _ => ArchiveError::Io(error),
        })?;
        self.took(out);
        Ok(())
    }

    fn took(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.seen.bytes += bytes.len() as u64;
    }

    fn damaged(&self, offset: u64, what: &'static str) -> ArchiveError {
        ArchiveError::Damaged { frame: self.seen.frames + 1, offset, what }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(u32::MAX, u32::from_be_bytes)
}
