//! Writes an archive.

use super::layout::{
    END_MARK, FORMAT, FRAME, FRAME_MARK, Header, MAGIC, MAX_KEY, MAX_LINE, MAX_VALUE, Summary, frame_checksum,
};
use crate::{
    store::{Key, Record},
    value::Timestamp,
};
use sha2::{Digest, Sha256};
use std::io::{self, ErrorKind, Write};

/// Writes an archive. Each frame is written by one call of `write_all`.
pub struct Writer<W> {
    out: W,
    hash: Sha256,
    frame: Vec<u8>,
    last: Option<Key>,
    summary: Summary,
}

impl<W: Write> Writer<W> {
    /// Starts an archive: writes its first line. `created_by` is the name and version of the program.
    ///
    /// # Errors
    /// `out` cannot be written, or `created_by` is too long.
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

    /// Adds a row, whose key must be greater than the one before. Returns whether a frame was written.
    ///
    /// # Errors
    /// `out` cannot be written, or the row is out of order or too large.
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

    /// Writes the last frame and the end of the archive.
    ///
    /// # Errors
    /// `out` cannot be written.
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
        // Both lengths fit into 4 bytes: a frame ends with the row that fills it, and LZ4 adds less than one percent.
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
