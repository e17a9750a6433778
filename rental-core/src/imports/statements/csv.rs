//! Reads the records of a CSV file, one at a time, in memory of fixed size.
//!
//! `csv-core` parses into a slice, whose length is the limit of a record. The delimiter is the most frequent one in the
//! header line: comma, semicolon or TAB.

use super::{
    failure::{Failed, Refused},
    input::{Input, MAX_RECORD},
};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use std::io::Read;

/// More columns than any file of this kind has.
const MAX_COLUMNS: usize = 1_000;

pub(super) struct Csv<R> {
    input: Input<R>,
    parser: Reader,
    text: Box<[u8]>,
    ends: Box<[usize]>,
}

/// The fields of one record, without their quotes.
pub(super) struct Record<'a> {
    /// The line of the file where the record begins, from 1.
    pub(super) line: u64,
    text: &'a [u8],
    ends: &'a [usize],
}

impl<'a> Record<'a> {
    /// The number of fields.
    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    /// The fields as text; `None` when any is not UTF-8.
    pub(super) fn fields(&self) -> Option<Vec<&'a str>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(self.ends.iter().copied());
        ranges.map(|(start, end)| std::str::from_utf8(self.text.get(start..end)?).ok()).collect()
    }
}

impl<R: Read> Csv<R> {
    pub(super) fn open(input: Input<R>) -> Self {
        let parser = ReaderBuilder::new().delimiter(delimiter(input.head())).build();
        // One byte more than the limit, because the parser reports a full slice even when the record fits exactly.
        let (text, ends) = (vec![0; MAX_RECORD + 1].into_boxed_slice(), vec![0; MAX_COLUMNS].into_boxed_slice());
        Self { input, parser, text, ends }
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
                ReadRecordResult::Record => {
                    return Ok(Some(Record { line, text: &self.text[..length], ends: &self.ends[..count] }));
                }
                ReadRecordResult::End => return Ok(None),
            }
        }
    }
}

/// The delimiter of the first line.
fn delimiter(head: &[u8]) -> u8 {
    let head = head.trim_ascii_start();
    let line = head.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or(head);
    let mut counts = [(b',', 0), (b'\t', 0), (b';', 0)];
    let mut quoted = false;
    for byte in line {
        quoted ^= *byte == b'"';
        for (separator, count) in &mut counts {
            *count += usize::from(!quoted && byte == separator);
        }
    }
    // `max_by_key` returns the last maximum, so a comma wins a tie.
    counts.iter().rev().max_by_key(|(_, count)| *count).map_or(b',', |(separator, _)| *separator)
}
