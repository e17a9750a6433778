//! Makes text from servers and files safe for terminals and spreadsheets.

use std::{
    borrow::Cow,
    fmt::Write as _,
    io::{self, Write},
};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Escapes control and formatting characters, so that no value can break a row, move the cursor or reorder the text.
pub(crate) fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, char| {
        if char.is_control() || is_format(char) {
            out.extend(char.escape_default())
        } else {
            out.push(char)
        }
        out
    })
}

/// Escapes, as JSON does, the characters of a document that terminals obey. A JSON value stays the same. Tabs and ends of
/// lines stay in other documents too.
pub(crate) fn printable_document(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let ends_line = |at: usize| bytes.get(at + 1) == Some(&b'\n');
    escaped(text, |at, char| match char {
        '\n' | '\t' => false,
        '\r' => !ends_line(at),
        _ => char.is_control() || is_format(char),
    })
}

/// The same for text of this program, which colours lines by control characters below DEL: in its values they are escaped.
pub(crate) fn printable_styled(text: &str) -> Cow<'_, str> {
    escaped(text, |_, char| char >= '\u{7f}' && (char.is_control() || is_format(char)))
}

/// The text, in which the characters that a terminal would obey are written as in JSON.
fn escaped(text: &str, is_unsafe: impl Fn(usize, char) -> bool) -> Cow<'_, str> {
    if !text.char_indices().any(|(at, char)| is_unsafe(at, char)) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (at, char) in text.char_indices() {
        if is_unsafe(at, char) {
            for unit in char.encode_utf16(&mut [0; 2]) {
                // Writing to a string does not fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(char);
        }
    }
    out.into()
}

/// A cell of tab-separated values. A spreadsheet runs a text that begins with `=`, `+`, `-` or `@` as a formula; an
/// apostrophe in front keeps it a text. Numbers and phone numbers stay as they are: they do nothing.
pub(crate) fn tsv_cell(text: &str) -> Cow<'_, str> {
    let harmless = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match text.strip_prefix(['=', '+', '-', '@']) {
        Some(rest) if !(text.starts_with(['+', '-']) && harmless(rest)) => format!("'{text}").into(),
        _ => text.into(),
    }
}

/// Whether a character is invisible and changes how the text around it is shown: marks and overrides of the writing
/// direction, line separators, tags. Joiners are none of them, because scripts and emoji need them.
fn is_format(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Lines of JSON on their way to a terminal, escaped by [`printable_document`].
pub(crate) struct JsonLines<W> {
    to: W,
    /// The beginning of a line.
    held: Vec<u8>,
}

impl<W: Write> JsonLines<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to, held: Vec::new() }
    }

    fn write_held(&mut self, until: usize) -> io::Result<()> {
        let rest = self.held.split_off(until);
        let lines = std::mem::replace(&mut self.held, rest);
        self.to.write_all(printable_document(&String::from_utf8_lossy(&lines)).as_bytes())
    }
}

impl<W: Write> Write for JsonLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        let complete = self.held.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.write_held(complete)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_held(self.held.len())?;
        self.to.flush()
    }
}

/// The text in lines of at most `width` columns that begin so; a longer word is broken.
pub(crate) fn wrapped(begin: &str, text: &str, width: usize) -> String {
    let room = width.saturating_sub(begin.len()).max(8);
    let indent = " ".repeat(begin.len());
    let (mut out, mut line, mut used) = (begin.to_owned(), String::new(), 0);
    for word in text.split_inclusive(' ') {
        let needed = word.trim_end().width();
        if used > 0 && used + needed > room {
            out += &format!("{}\n{indent}", line.trim_end());
            (line, used) = (String::new(), 0);
        }
        for char in word.chars() {
            let columns = char.width().unwrap_or(0);
            if char != ' ' && used + columns > room {
                out += &format!("{line}\n{indent}");
                (line, used) = (String::new(), 0);
            }
            line.push(char);
            used += columns;
        }
    }
    out + line.trim_end() + "\n"
}

/// A text as a word of a command line.
pub(crate) fn word(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:@".contains(&byte));
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_breaks_a_row_or_moves_the_cursor() {
        assert_eq!(printable("a\tb\nc\u{1b}[2J\u{9b}é"), "a\\tb\\nc\\u{1b}[2J\\u{9b}é");
    }

    #[test]
    fn no_value_reorders_the_text_around_it_and_emoji_stay_whole() {
        assert_eq!(printable("a\u{202e}b\u{2066}c\u{200f}"), "a\\u{202e}b\\u{2066}c\\u{200f}");
        assert_eq!(printable("👩\u{200d}🚒 é ضيف"), "👩\u{200d}🚒 é ضيف");
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let json = "{\"a\":\"\u{9b}2J \u{202e}\u{7f} \u{e0041} é\"}\n";
        let escaped = printable_document(json);
        assert_eq!(escaped, "{\"a\":\"\\u009b2J \\u202e\\u007f \\udb40\\udc41 é\"}\n");
        assert_eq!(printable_document("a\u{1b}]0;x\u{7}b\rc\t\r\n\u{0}"), "a\\u001b]0;x\\u0007b\\u000dc\t\r\n\\u0000");
        assert_eq!(printable_styled("\u{1b}[1mbold\u{9b}2J"), "\u{1b}[1mbold\\u009b2J");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&escaped), value(json));
    }

    #[test]
    fn lines_are_escaped_however_they_are_cut() {
        let json = "{\"a\":\"\u{9b}\"}\n{\"b\":\"\u{202e}\"}".as_bytes();
        for cut in 0..json.len() {
            let mut out = JsonLines::new(Vec::new());
            out.write_all(&json[..cut]).unwrap();
            out.write_all(&json[cut..]).unwrap();
            out.flush().unwrap();
            assert_eq!(
                out.to,
                br#"{"a":"\u009b"}
{"b":"\u202e"}"#,
                "{cut}"
            );
        }
    }

    #[test]
    fn no_cell_is_a_formula() {
        for (text, cell) in [
            ("=1+1", "'=1+1"),
            ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
            ("-2+3", "'-2+3"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("=5", "'=5"),
            ("+12125550123", "+12125550123"),
            ("-12.50", "-12.50"),
            ("a=b", "a=b"),
            ("", ""),
        ] {
            assert_eq!(tsv_cell(text), cell);
        }
    }
}
