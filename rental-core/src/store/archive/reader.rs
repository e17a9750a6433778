//! Reads an archive and finds damage in it.

use super::{
    error::ArchiveError,
    layout::{END_MARK, FORMAT, FRAME_MARK, Header, MAGIC, MAX_FRAME, MAX_LINE, ROW, Summary, frame_checksum},
};
use crate::{
    store::{Key, Record, Revision},
    value::Timestamp,
};
use bytes::Bytes;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::io::{ErrorKind, Read};

/// Reads an archive frame by frame. The archive as a whole is verified only at its end; see [`Reader::summary`].
pub struct Reader<R> {
    from: R,
    hash: Sha256,
    header: Header,
    last: Option<Key>,
    seen: Summary,
    end: Option<Summary>,
}

impl<R: Read> Reader<R> {
    /// Reads and checks the first line of the archive.
    ///
    /// # Errors
    /// The source is no archive, has a newer format, cannot be read, or its first line is damaged.
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
        /// The member that every version of the format has.
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

    /// The first line of the archive.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The totals of the archive; `None` until the reader reached the end and every checksum matched.
    #[must_use]
    pub fn summary(&self) -> Option<&Summary> {
        self.end.as_ref()
    }

    /// Reads the rows of the next frame; `None` after the last frame, when the end is correct.
    ///
    /// # Errors
    /// The archive is damaged or cannot be read.
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

    /// Reads and checks the rest of the archive. Calls `progress` with the totals so far after each frame.
    ///
    /// # Errors
    /// The archive is damaged or cannot be read.
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
        // The buffer grows with the bytes that arrive, so a damaged length cannot allocate much memory.
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
