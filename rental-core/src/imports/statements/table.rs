//! Reads the rows of a CSV file with a header.

use super::{
    csv::Csv,
    failure::{Failed, Refused},
    header::Header,
    input::Input,
};
use std::io::Read;

pub(super) struct Table<R> {
    pub(super) header: Header,
    csv: Csv<R>,
    header_line: u64,
    rows: u64,
    /// Whether a first row with another number of fields than the header is one invalid row, as later ones are.
    forgiving: bool,
}

/// One row: its line in a CSV file or its number in a JSON file, and its values by column or what is wrong with it.
pub(super) type Fields<'a> = (u64, Result<Vec<&'a str>, String>);

impl<R: Read> Table<R> {
    pub(super) fn open(input: Input<R>) -> Result<Self, Failed> {
        let mut csv = Csv::open(input);
        let Some(record) = csv.next()? else {
            return Err(
                Refused("expected a header, but the file has blank lines only; download it again".into()).into()
            );
        };
        let (header, header_line) = (Header::read(&record)?, record.line);
        Ok(Self { header, csv, header_line, rows: 0, forgiving: false })
    }

    /// Accepts a first row with another number of fields as one invalid row. Without this it is an error of the file: if
    /// the header lacks a name, every value would belong to a wrong column.
    pub(super) fn forgiving(mut self) -> Self {
        self.forgiving = true;
        self
    }

    pub(super) fn next(&mut self) -> Result<Option<Fields<'_>>, Failed> {
        let Some(record) = self.csv.next()? else { return Ok(None) };
        let (found, expected) = (record.count(), self.header.count());
        self.rows += 1;
        if found != expected && self.rows == 1 && !self.forgiving {
            return Err(Refused(format!(
                "the header in line {} names {expected} columns, but the first record, in line {}, has {found} fields, \
                 so no value can be told; export the file again, or correct its header",
                self.header_line, record.line
            ))
            .into());
        }
        let fields = if found == expected {
            record.fields().ok_or_else(|| "is not UTF-8 text; save the file as \"CSV UTF-8\"".to_owned())
        } else {
            Err(format!("has {found} fields where the header names {expected} columns; is a quotation mark missing?"))
        };
        Ok(Some((record.line, fields)))
    }
}
