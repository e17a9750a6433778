//! Follows a chunked body (RFC 9112, 7.1), to know where it ends, and refuses what proxies read in several ways.
//!
//! hyper takes a bare line feed in the trailer for a part of a line, so that the next request becomes a part of the trailer.

/// Most digits of the size of a chunk.
const MOST_DIGITS: u32 = 16;

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Part {
    /// The size of a chunk, with so many digits before it.
    Size {
        size: u64,
        digits: u32,
    },
    /// What follows the size on its line.
    Extension {
        size: u64,
    },
    /// The line feed of that line.
    SizeEnds {
        size: u64,
    },
    /// The bytes of a chunk.
    Data {
        left: u64,
    },
    /// The carriage return behind a chunk, then its line feed.
    DataReturns,
    DataEnds,
    /// A line of the trailer.
    Trailer {
        is_empty: bool,
    },
    /// The line feed of a line of the trailer.
    TrailerEnds {
        is_empty: bool,
    },
}

/// How far a chunked body was read.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Chunks(Part);

/// What the next bytes of a connection are.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Follows {
    /// All belong to the body.
    Body,
    /// The body ended before this one.
    Ended(usize),
    /// The body is broken at this one.
    Broken(usize),
}

impl Chunks {
    pub(super) const fn new() -> Self {
        Self(Part::Size { size: 0, digits: 0 })
    }

    pub(super) fn follow(&mut self, bytes: &[u8]) -> Follows {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            if let Part::Data { left } = self.0 {
                let taken = left.min((bytes.len() - at) as u64);
                self.0 = if taken == left { Part::DataReturns } else { Part::Data { left: left - taken } };
                at += usize::try_from(taken).unwrap_or(usize::MAX);
                continue;
            }
            match after(self.0, *byte) {
                Some(Some(next)) => self.0 = next,
                Some(None) => return Follows::Ended(at + 1),
                None => return Follows::Broken(at),
            }
            at += 1;
        }
        Follows::Body
    }
}

/// The part after this byte: `Some(None)` at the end of the body, `None` when the byte cannot be there.
fn after(part: Part, byte: u8) -> Option<Option<Part>> {
    let next = match (part, byte) {
        (Part::Size { size, digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') if digits < MOST_DIGITS => {
            let digit = char::from(byte).to_digit(16)?;
            Part::Size { size: (size << 4) | u64::from(digit), digits: digits + 1 }
        }
        (Part::Size { size, digits: 1.. }, b';' | b' ' | b'\t') => Part::Extension { size },
        (Part::Size { size, digits: 1.. } | Part::Extension { size }, b'\r') => Part::SizeEnds { size },
        (Part::Extension { size }, byte) if is_text(byte) => Part::Extension { size },
        (Part::SizeEnds { size: 0 }, b'\n') => Part::Trailer { is_empty: true },
        (Part::SizeEnds { size }, b'\n') => Part::Data { left: size },
        (Part::DataReturns, b'\r') => Part::DataEnds,
        (Part::DataEnds, b'\n') => Part::Size { size: 0, digits: 0 },
        (Part::Trailer { is_empty }, b'\r') => Part::TrailerEnds { is_empty },
        (Part::Trailer { .. }, byte) if is_text(byte) => Part::Trailer { is_empty: false },
        (Part::TrailerEnds { is_empty: false }, b'\n') => Part::Trailer { is_empty: true },
        (Part::TrailerEnds { is_empty: true }, b'\n') => return Some(None),
        _ => return None,
    };
    Some(Some(next))
}

/// Whether a byte may be a part of a line: no control character but the tab.
const fn is_text(byte: u8) -> bool {
    byte == b'\t' || !byte.is_ascii_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks what is found, however the bytes are cut.
    #[track_caller]
    fn check(body: &str, expected: &Follows) {
        for cut in 0..=body.len() {
            let (first, second) = body.as_bytes().split_at(cut);
            let mut chunks = Chunks::new();
            let found = match (chunks.follow(first), cut) {
                (Follows::Body, _) => match chunks.follow(second) {
                    Follows::Body => Follows::Body,
                    Follows::Ended(at) => Follows::Ended(cut + at),
                    Follows::Broken(at) => Follows::Broken(cut + at),
                },
                (found, _) => found,
            };
            assert_eq!(found, *expected, "{body:?} cut at {cut}");
        }
    }

    #[test]
    fn a_chunked_body_ends_with_its_trailer() {
        check("3\r\na\nb\r\n00C ;a=\"b\"\r\n123456789abc\r\n0\r\n\r\nGET", &Follows::Ended(39));
        check("0\r\nX: y\r\nZ: \u{e4}\r\n\r\nGET", &Follows::Ended(18));
        check("ffffffffffffffff\r\nabc", &Follows::Body);
        check("0\r\n\r", &Follows::Body);
    }

    #[test]
    fn what_proxies_read_in_several_ways_is_broken() {
        for body in [
            "0x",
            "+",
            "-",
            ";",
            "\r",
            "1\n",
            "1;a\n",
            "1;a\0",
            "1\rx",
            "1\r\nab",
            "1\r\na\n",
            "1\r\na\rx",
            "0000000000000000c",
        ] {
            check(body, &Follows::Broken(body.len() - 1));
        }
        for trailer in ["X: y\n", "X: y\r\nZ\n", "\n", "X: \0", "X: y\rz", "\rx"] {
            let body = format!("0\r\n{trailer}");
            check(&format!("{body}\r\n\r\nGET"), &Follows::Broken(body.len() - 1));
        }
    }
}
