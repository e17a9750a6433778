//! Reads a file through one buffer of fixed size. Recognizes files that are neither CSV nor JSON by their first bytes.

use super::{
    encoding::Utf8,
    failure::{Failed, Refused},
};
use encoding_rs::Encoding;
use std::io::{ErrorKind, Read};

/// Most bytes of one record. A row with every field at its limit has a tenth of it.
pub(super) const MAX_RECORD: usize = 64 * 1024;
/// Bytes that are read to recognize the kind of a file and to find its header.
const HEAD: usize = MAX_RECORD / 2;

pub(super) struct Input<R> {
    file: Utf8<R>,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// The line of the next byte, from 1. Lines end with LF, CR LF or CR, as records do.
    line: u64,
    after_return: bool,
}

impl<R: Read> Input<R> {
    /// Checks the head of the file and skips its byte order mark.
    /// `encoding` is the one that a mapping names.
    pub(super) fn open(file: R, encoding: Option<&'static Encoding>) -> Result<Self, Failed> {
        let buffer = vec![0; MAX_RECORD].into_boxed_slice();
        let file = Utf8::open(file, encoding).map_err(Failed::Read)?;
        let mut input = Self { file, buffer, start: 0, end: 0, line: 1, after_return: false };
        while input.end < HEAD && input.read_more()? {}
        if let Some(reason) = foreign(input.head()) {
            return Err(Refused(reason).into());
        }
        if input.head().starts_with(b"\xef\xbb\xbf") {
            input.consume(3);
        }
        Ok(input)
    }

    /// Whether the file begins like a JSON array or object.
    pub(super) fn is_json(&self) -> bool {
        matches!(self.head().trim_ascii_start().first(), Some(b'[' | b'{'))
    }

    /// The bytes that were read but not consumed. After [`Input::open`] these are the first 32 KiB or more, or the whole file.
    pub(super) fn head(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Skips so many lines.
    pub(super) fn skip_lines(&mut self, count: u64) -> Result<(), Failed> {
        while self.line <= count && self.skip(|byte| !matches!(byte, b'\r' | b'\n'))?.is_some() {
            self.consume(1);
        }
        if self.after_return && self.next_bytes()?.first() == Some(&b'\n') {
            self.consume(1);
        }
        Ok(())
    }

    /// Reads the next bytes. They are empty only at the end of the file.
    pub(super) fn next_bytes(&mut self) -> Result<&[u8], Failed> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            self.read_more()?;
        }
        Ok(self.head())
    }

    pub(super) fn consume(&mut self, count: usize) {
        let taken = &self.buffer[self.start..self.end.min(self.start + count)];
        for byte in taken {
            self.line += u64::from(*byte == b'\r' || *byte == b'\n' && !self.after_return);
            self.after_return = *byte == b'\r';
        }
        self.start += taken.len();
    }

    /// Skips bytes for which `skipped` holds and returns the first other one, which is not consumed.
    pub(super) fn skip(&mut self, skipped: fn(u8) -> bool) -> Result<Option<u8>, Failed> {
        loop {
            let bytes = self.next_bytes()?;
            let count = bytes.iter().take_while(|byte| skipped(**byte)).count();
            let found = bytes.get(count).copied();
            let ended = bytes.is_empty();
            self.consume(count);
            if found.is_some() || ended {
                return Ok(found);
            }
        }
    }

    /// Appends to the buffer; `false` at the end of the file.
    fn read_more(&mut self) -> Result<bool, Failed> {
        loop {
            match self.file.read(&mut self.buffer[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Failed::Read(error)),
            }
        }
    }
}

/// The error for a file with this head, if it is neither CSV nor JSON.
fn foreign(head: &[u8]) -> Option<String> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let tag = String::from_utf8_lossy(&text[..text.len().min(16)]).to_lowercase();
    let as_csv = "open it in a spreadsheet and save it as \"CSV UTF-8\"";
    let (looks_like, advice) = if text.is_empty() {
        ("is empty", "download it again")
    } else if head.starts_with(b"PK") {
        ("looks like an Excel workbook (.xlsx) or a ZIP archive", as_csv)
    } else if head.starts_with(b"\xd0\xcf\x11\xe0") {
        ("looks like an Excel workbook (.xls)", as_csv)
    } else if head.starts_with(b"%PDF") {
        ("looks like a PDF", "download the statement as CSV; the pages of a PDF cannot be imported")
    } else if head.starts_with(b"\x1f\x8b") {
        ("looks like a gzip archive", "unpack it first")
    } else if ["<!doctype", "<html", "<table", "<?xml", "<head", "<body"].iter().any(|start| tag.starts_with(start)) {
        ("looks like a web page (HTML or XML), perhaps a log-in page", "log in and download the CSV itself")
    } else if head.contains(&0) {
        ("has NUL bytes: it is a binary file", as_csv)
    } else {
        return None;
    };
    Some(format!("expected CSV text, but the file {looks_like}; {advice}"))
}
