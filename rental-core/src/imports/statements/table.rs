//! Finds the header of a CSV file and reads the rows below it.

use super::{
    csv::Csv,
    failure::{Failed, Refused},
    header::Header,
    input::Input,
    layout::Layout,
    mapping::Mapping,
};
use encoding_rs::Encoding;
use std::io::Read;

/// Most records above the header, such as the account and the period.
const MOST_ABOVE: usize = 50;
/// What a message adds if the header is not among them.
pub(super) const BELOW: &str =
    ". The first 50 lines were looked at; if the header is below them, write `skip_lines` in a mapping file";
/// Delimiters of columns.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

pub(super) struct Table<R> {
    pub(super) header: Header,
    /// The line of the header, from 1.
    pub(super) line: u64,
    csv: Csv<R>,
}

/// One row: its line in a CSV file or its number in a JSON file, and its values by column or what is wrong with it.
pub(super) type Fields<'a> = (u64, Result<Vec<&'a str>, String>);

/// Where a header is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    delimiter: u8,
    line: u64,
}

impl Place {
    /// The place below so many lines.
    pub(super) fn below(self, lines: u64) -> Self {
        Self { line: self.line.saturating_add(lines), ..self }
    }
}

impl<R: Read> Table<R> {
    /// Opens a file at its header.
    pub(super) fn open(input: Input<R>, place: Place, encoding: Option<&'static Encoding>) -> Result<Self, Failed> {
        let mut csv = Csv::open(input, place.delimiter, encoding);
        while let Some(record) = csv.next()? {
            if record.line < place.line {
                continue;
            }
            let Some(fields) = record.fields() else {
                return Err(Refused(format!(
                    "expected a header in UTF-8, but line {} is not; {}",
                    record.line,
                    not_utf_8()
                ))
                .into());
            };
            let (header, line) = (Header::read(&fields), record.line);
            return Ok(Self { header, line, csv });
        }
        Err(Refused("expected a header, but the file has blank lines only; download it again".into()).into())
    }

    pub(super) fn next(&mut self) -> Result<Option<Fields<'_>>, Failed> {
        let Some(record) = self.csv.next()? else { return Ok(None) };
        Ok(Some((record.line, record.fields().ok_or_else(|| format!("is not UTF-8 text; {}", not_utf_8())))))
    }
}

fn not_utf_8() -> &'static str {
    "name the `encoding` of the file in a mapping file, such as \"windows-1252\", or save it as \"CSV UTF-8\""
}

/// A record that can be the header.
struct Candidate {
    line: u64,
    /// How many of its fields are columns that are looked for.
    score: usize,
    /// Whether no column is missing.
    is_complete: bool,
}

/// Finds the header in the first bytes of a file: the first record with all columns, else the first one with at least half as many of
/// the columns that are looked for as the record with most of them. The first record is the header of a file that has none of them.
pub(super) fn find(head: &[u8], mapping: &Mapping) -> Place {
    let names = mapping.names();
    let candidate = |line: u64, fields: &[String]| {
        let header = Header::read(&fields.iter().map(String::as_str).collect::<Vec<_>>());
        let score = header.count_of(&names);
        Candidate { line, score, is_complete: score > 0 && Layout::find(mapping, &header).is_ok() }
    };
    let candidates = |delimiter: u8| -> Vec<Candidate> {
        let Ok(input) = Input::open(head, None) else { return Vec::new() };
        let mut csv = Csv::open(input, delimiter, mapping.encoding);
        let next = || Some(csv.next().ok()??).map(|record| candidate(record.line, &record.lossy()));
        std::iter::from_fn(next).take(MOST_ABOVE).collect()
    };
    let most = |found: &[Candidate]| found.iter().map(|one| one.score).max().unwrap_or_default();
    let all = DELIMITERS.map(|delimiter| (delimiter, candidates(delimiter)));
    // `max_by_key` returns the last maximum, so a comma wins a tie.
    let best = all.iter().rev().max_by_key(|(_, found)| most(found)).filter(|(_, found)| most(found) > 0);
    let Some((delimiter, found)) = best else { return of_none(head) };
    let half = || found.iter().find(|one| one.score > 0 && one.score * 2 >= most(found));
    let first = found.iter().find(|one| one.is_complete).or_else(half);
    Place { delimiter: *delimiter, line: first.map_or(1, |one| one.line) }
}

/// The header of a file without any of the columns: the first line, below the one that tells Excel the delimiter.
fn of_none(head: &[u8]) -> Place {
    let is_sep = head.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"sep="));
    let end = head.iter().position(|byte| *byte == b'\n').filter(|_| is_sep);
    Place { delimiter: most_frequent(end.map_or(head, |end| &head[end..])), line: if end.is_some() { 2 } else { 1 } }
}

/// Whether a file with these first bytes has more lines than are looked at.
pub(super) fn is_long(head: &[u8]) -> bool {
    head.iter().filter(|byte| **byte == b'\n').count() > MOST_ABOVE
}

/// The delimiter of the first line.
fn most_frequent(head: &[u8]) -> u8 {
    let head = head.trim_ascii_start();
    let line = head.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or(head);
    let count = |delimiter: &u8| {
        let mut quoted = false;
        let is_one = |byte: &&u8| {
            quoted ^= **byte == b'"';
            !quoted && *byte == delimiter
        };
        line.iter().filter(is_one).count()
    };
    DELIMITERS.into_iter().rev().max_by_key(|delimiter| count(delimiter)).unwrap_or(b',')
}
