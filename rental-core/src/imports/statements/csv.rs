//! Reads the records of a CSV file, one at a time, in memory of fixed size.
//!
//! `csv-core` parses into a slice, whose length is the limit of a record.

use super::{
    failure::{Failed, Refused},
    input::{Input, MAX_RECORD},
};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use encoding_rs::Encoding;
use std::io::Read;

/// More columns than any file of this kind has.
const MAX_COLUMNS: usize = 1_000;

pub(super) struct Csv<R> {
    input: Input<R>,
    parser: Reader,
    text: Box<[u8]>,
    ends: Box<[usize]>,
    /// The encoding of records that are not UTF-8.
    encoding: Option<&'static Encoding>,
    /// The present record in UTF-8, when it was not.
    decoded: (String, Vec<usize>),
}

/// The fields of one record, without their quotes.
pub(super) struct Record<'a> {
    /// The line of the file where the record begins, from 1.
    pub(super) line: u64,
    text: &'a [u8],
    ends: &'a [usize],
}

impl<'a> Record<'a> {
    /// The fields as text, with other characters in place of bytes that are not UTF-8.
    pub(super) fn lossy(&self) -> Vec<String> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(self.ends.iter().copied());
        ranges.map(|(start, end)| String::from_utf8_lossy(&self.text[start..end]).into_owned()).collect()
    }

    /// The fields as text; `None` when any is not UTF-8.
    pub(super) fn fields(&self) -> Option<Vec<&'a str>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(self.ends.iter().copied());
        ranges.map(|(start, end)| std::str::from_utf8(self.text.get(start..end)?).ok()).collect()
    }
}

impl<R: Read> Csv<R> {
    pub(super) fn open(input: Input<R>, delimiter: u8, encoding: Option<&'static Encoding>) -> Self {
        let parser = ReaderBuilder::new().delimiter(delimiter).build();
        // One byte more than the limit, because the parser reports a full slice even when the record fits exactly.
        let (text, ends) = (vec![0; MAX_RECORD + 1].into_boxed_slice(), vec![0; MAX_COLUMNS].into_boxed_slice());
        Self { input, parser, text, ends, encoding, decoded: (String::new(), Vec::new()) }
    }

    /// Reads the next record. Skips blank lines.
    pub(super) fn next(&mut self) -> Result<Option<Record<'_>>, Failed> {
        // The parser would skip blank lines too, but then the line of the record would be unknown.
        if self.input.skip(|byte| matches!(byte, b'\r' | b'\n'))?.is_none() {
            return Ok(None);
        }
        let line = self.input.line();
        let (mut length, mut count) = (0, 0);
        loop {
            let bytes = self.input.next_bytes()?;
            let (result, taken, written, fields) =
                self.parser.read_record(bytes, &mut self.text[length..], &mut self.ends[count..]);
            self.input.consume(taken);
            (length, count) = (length + written, count + fields);
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => {
                    return Err(Refused(format!(
                        "the record that begins in line {line} has more than {} KiB; is a quotation mark missing?",
                        MAX_RECORD / 1024
                    ))
                    .into());
                }
                ReadRecordResult::OutputEndsFull => {
                    return Err(Refused(format!(
                        "the record that begins in line {line} has more than {MAX_COLUMNS} fields; is it the right \
                         file?"
                    ))
                    .into());
                }
                ReadRecordResult::Record => return Ok(Some(self.record(line, length, count))),
                ReadRecordResult::End => return Ok(None),
            }
        }
    }

    /// The record that was read, in UTF-8 if its encoding is known.
    fn record(&mut self, line: u64, length: usize, count: usize) -> Record<'_> {
        let (text, ends) = (&self.text[..length], &self.ends[..count]);
        // Text of another encoding is practically never valid UTF-8, so a file that was saved as UTF-8 since is read too.
        let Some(encoding) = self.encoding.filter(|_| std::str::from_utf8(text).is_err()) else {
            return Record { line, text, ends };
        };
        let (decoded, decoded_ends) = &mut self.decoded;
        decoded.clear();
        decoded_ends.clear();
        let mut start = 0;
        for end in ends {
            let (cell, is_damaged) = encoding.decode_without_bom_handling(&text[start..*end]);
            // No text in this encoding either: as it is, it is refused.
            if is_damaged {
                return Record { line, text, ends };
            }
            decoded.push_str(&cell);
            decoded_ends.push(decoded.len());
            start = *end;
        }
        Record { line, text: decoded.as_bytes(), ends: decoded_ends }
    }
}
