//! Text that is not UTF-8: UTF-16 is converted while it is read, any other encoding record by record.

use encoding_rs::{CoderResult, Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use std::io::Read;

/// Bytes that are converted at once.
const PIECE: u64 = 64 * 1024;

/// The encoding with this name, such as `windows-1252`, `iso-8859-1` or `utf-16`.
pub(super) fn named(name: &str) -> Option<&'static Encoding> {
    Encoding::for_label(name.as_bytes()).filter(|found| found.is_ascii_compatible() != is_utf_16(found))
}

fn is_utf_16(encoding: &'static Encoding) -> bool {
    encoding == UTF_16LE || encoding == UTF_16BE
}

/// A file as UTF-8 where it is UTF-16, which a byte order mark or the zeros of its ASCII characters tell. Other files are passed on as
/// they are.
pub(super) struct Utf8<R> {
    file: R,
    /// `None` for other files, and at the end.
    decoder: Option<Decoder>,
    /// Bytes that were read and are not passed on yet.
    bytes: Vec<u8>,
    ended: bool,
}

impl<R: Read> Utf8<R> {
    /// `said` is the encoding that a mapping names.
    pub(super) fn open(mut file: R, said: Option<&'static Encoding>) -> std::io::Result<Self> {
        let mut bytes = Vec::new();
        file.by_ref().take(64).read_to_end(&mut bytes)?;
        let utf_16 = utf_16_of(&bytes).or_else(|| said.filter(|said| is_utf_16(said)));
        Ok(Self { file, decoder: utf_16.map(Encoding::new_decoder_with_bom_removal), bytes, ended: false })
    }
}

/// The UTF-16 that a file with these first bytes is in.
fn utf_16_of(bytes: &[u8]) -> Option<&'static Encoding> {
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return (encoding != UTF_8).then_some(encoding);
    }
    let are_zero = |first: usize| bytes.len() >= 4 && bytes.iter().skip(first).step_by(2).all(|byte| *byte == 0);
    match (are_zero(0), are_zero(1)) {
        (false, true) => Some(UTF_16LE),
        (true, false) => Some(UTF_16BE),
        _ => None,
    }
}

impl<R: Read> Read for Utf8<R> {
    /// `into` has room for at least one character.
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        while let Some(decoder) = &mut self.decoder {
            let (result, taken, written, _) = decoder.decode_to_utf8(&self.bytes, into, self.ended);
            self.bytes.drain(..taken);
            if self.ended && result == CoderResult::InputEmpty {
                self.decoder = None;
            }
            if written > 0 {
                return Ok(written);
            }
            let before = self.bytes.len();
            self.file.by_ref().take(PIECE).read_to_end(&mut self.bytes)?;
            self.ended = self.bytes.len() == before;
        }
        if self.bytes.is_empty() {
            return self.file.read(into);
        }
        let count = self.bytes.len().min(into.len());
        into[..count].copy_from_slice(&self.bytes[..count]);
        self.bytes.drain(..count);
        Ok(count)
    }
}
