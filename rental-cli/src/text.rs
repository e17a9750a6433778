//! Makes text from servers and files safe for a terminal.

/// Escapes control characters, so that no value can break a row or move the cursor.
pub(crate) fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, char| {
        if char.is_control() {
            out.extend(char.escape_default())
        } else {
            out.push(char)
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_breaks_a_row_or_moves_the_cursor() {
        assert_eq!(printable("a\tb\nc\u{1b}[2J\u{9b}é"), "a\\tb\\nc\\u{1b}[2J\\u{9b}é");
    }
}
