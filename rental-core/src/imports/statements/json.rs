//! Reads the elements of a JSON array or of JSON Lines, one at a time.

use super::{
    failure::{Failed, Refused},
    input::{Input, MAX_RECORD},
};
use std::io::Read;

pub(super) struct Json<R> {
    input: Input<R>,
    /// Whether the elements are in one array.
    array: bool,
    count: u64,
    element: Vec<u8>,
}

impl<R: Read> Json<R> {
    pub(super) fn open(mut input: Input<R>) -> Result<Self, Failed> {
        let array = input.skip(blank)? == Some(b'[');
        if array {
            input.consume(1);
        }
        Ok(Self { input, array, count: 0, element: Vec::new() })
    }

    /// Reads the next element and its number, from 1.
    pub(super) fn next(&mut self) -> Result<Option<(u64, &[u8])>, Failed> {
        let mut first = self.input.skip(blank)?;
        if self.array {
            if first == Some(b']') {
                return self.end();
            }
            if self.count > 0 && first.is_some() {
                if first != Some(b',') {
                    return Err(self.broken("a comma or the end of the list was expected"));
                }
                self.input.consume(1);
                first = self.input.skip(blank)?;
            }
        }
        match first {
            Some(first) => self.take(first)?,
            None if self.array => return Err(self.broken("the file ends before the list does")),
            None => return Ok(None),
        }
        self.count += 1;
        Ok(Some((self.count, &self.element)))
    }

    fn end(&mut self) -> Result<Option<(u64, &[u8])>, Failed> {
        self.input.consume(1);
        self.array = false;
        match self.input.skip(blank)? {
            None => Ok(None),
            Some(_) => Err(self.broken("something follows the end of the list")),
        }
    }

    /// Copies one value, up to its closing brace, the end of its string or the end of its number.
    fn take(&mut self, first: u8) -> Result<(), Failed> {
        self.element.clear();
        let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
        let nested = matches!(first, b'{' | b'[');
        loop {
            let bytes = self.input.next_bytes()?;
            if bytes.is_empty() {
                // A number at the top level may end with the file. The caller rejects it.
                let open = nested || quoted;
                return if open { Err(self.broken("the file ends in the middle of it")) } else { Ok(()) };
            }
            let mut taken = 0;
            let mut done = false;
            for byte in bytes {
                let stops = !nested && !quoted && taken + self.element.len() > 0;
                if stops && (blank(*byte) || matches!(byte, b',' | b']' | b'}')) {
                    done = true;
                    break;
                }
                taken += 1;
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' if quoted => escaped = true,
                    b'"' => quoted = !quoted,
                    b'{' | b'[' if !quoted => depth += 1,
                    b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
                    _ => {}
                }
                if nested && depth == 0 {
                    done = true;
                    break;
                }
            }
            if self.element.len() + taken > MAX_RECORD {
                return Err(self.broken(&format!("it has more than {} KiB", MAX_RECORD / 1024)));
            }
            self.element.extend_from_slice(&bytes[..taken]);
            self.input.consume(taken);
            if done {
                return Ok(());
            }
        }
    }

    /// The error that ends the file here.
    fn broken(&self, why: &str) -> Failed {
        let (line, number) = (self.input.line(), self.count + 1);
        let expected = "expected a JSON array of objects, or one object in each line";
        Refused(format!("{expected}, but at object {number} (line {line}) {why}; download the file again")).into()
    }
}

fn blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}
