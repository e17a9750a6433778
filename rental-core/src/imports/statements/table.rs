//! Finds the header of a CSV file and reads the rows below it.

use super::{
    csv::Csv,
    failure::{Failed, Refused},
    header::{Header, normal},
    input::Input,
};
use encoding_rs::Encoding;
use std::{collections::HashSet, io::Read};

/// Most records above the header, such as the account and the period.
const MOST_ABOVE: usize = 50;
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
        Self { line: self.line + lines, ..self }
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

/// Finds the header in the first bytes of a file: the first record with at least half as many of the columns that are looked for as the
/// record with most of them. The first record is the header of a file that has none of them.
pub(super) fn find(head: &[u8], names: &[&str], encoding: Option<&'static Encoding>) -> Place {
    let names: HashSet<String> = names.iter().map(|name| normal(name)).collect();
    let score = |fields: &[String]| fields.iter().filter(|name| names.contains(&normal(name))).count();
    let scores = |delimiter: u8| -> Vec<(u64, usize)> {
        let Ok(input) = Input::open(head, None) else { return Vec::new() };
        let mut csv = Csv::open(input, delimiter, encoding);
        let next = || Some(csv.next().ok()??).map(|record| (record.line, score(&record.lossy())));
        std::iter::from_fn(next).take(MOST_ABOVE).collect()
    };
    let most = |scores: &[(u64, usize)]| scores.iter().map(|(_, score)| *score).max().unwrap_or_default();
    let all = DELIMITERS.map(|delimiter| (delimiter, scores(delimiter)));
    // `max_by_key` returns the last maximum, so a comma wins a tie.
    let best = all.iter().rev().max_by_key(|(_, scores)| most(scores)).filter(|(_, scores)| most(scores) > 0);
    let Some((delimiter, scores)) = best else { return Place { delimiter: most_frequent(head), line: 1 } };
    let first = scores.iter().find(|(_, score)| *score > 0 && score * 2 >= most(scores));
    Place { delimiter: *delimiter, line: first.map_or(1, |(line, _)| *line) }
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
