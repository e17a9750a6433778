//! Checks of single values: blank values, identifiers that a spreadsheet rounded, and lengths of texts.

use crate::{
    request::body::shorten,
    value::{Name, Text},
};

/// Most characters of a text field (decisions, Identity and values).
const MAX_TEXT: usize = 255;

/// The value without surrounding white space; `None` for blank values and for `-`, which means the same.
pub(super) fn filled(text: &str) -> Option<&str> {
    let text = text.trim();
    (!text.is_empty() && text != "-").then_some(text)
}

/// Checks a text. `column` names it in the message.
pub(super) fn text(given: &str, column: &str) -> Result<Text, String> {
    on_one_line(given, column)?;
    Text::parse(given, MAX_TEXT).map_err(|rule| format!("`{column}` {rule}"))
}

/// Checks a text that must not be blank.
pub(super) fn name(given: &str, column: &str) -> Result<Name, String> {
    on_one_line(given, column)?;
    Name::parse(given, MAX_TEXT).map_err(|rule| format!("`{column}` {rule}"))
}

fn on_one_line(given: &str, column: &str) -> Result<(), String> {
    if given.contains(['\n', '\r']) {
        return Err(format!("`{column}` has a line break in it; is a quotation mark missing?"));
    }
    Ok(())
}

/// Checks an identifier and removes the leading quote that marks a text for spreadsheets.
pub(super) fn identifier(given: &str, column: &str) -> Result<Text, String> {
    let bare = given.trim_start_matches('\'').trim();
    if is_rounded(bare) { Err(rounded(bare, column)) } else { text(bare, column) }
}

/// Whether a spreadsheet parsed an identifier as a number and rounded it: `1.29143E+11`.
pub(super) fn is_rounded(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once("E+").or_else(|| text.split_once("e+")).is_some_and(|(mantissa, exponent)| {
        let (whole, fraction) = mantissa.split_once(['.', ',']).unwrap_or((mantissa, "0"));
        digits(whole) && digits(fraction) && digits(exponent)
    })
}

/// The message about such an identifier.
pub(super) fn rounded(text: &str, column: &str) -> String {
    let text = shorten(text);
    format!(
        "`{column}` is {text}: a spreadsheet has rounded it and its digits are lost; download the file again and \
         import it without opening it in a spreadsheet, or keep this column as text there"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rounded_identifier_is_not_a_plate() {
        for text in ["1.29143E+11", "1E+11", "6,12313e+10"] {
            assert!(
                is_rounded(text) && identifier(text, "Tag").is_err_and(|why| why.contains("spreadsheet")),
                "{text}"
            );
        }
        for text in ["1E11", "E+11", "12E45", "1.29143", "A1E+11", "99900000001"] {
            assert!(!is_rounded(text), "{text}");
        }
    }

    #[test]
    fn text_has_a_limit_and_no_control_characters() {
        assert!(text(&"x".repeat(256), "Plaza").is_err_and(|why| why.contains("`Plaza`") && why.contains("255")));
        assert!(text("a\nb", "Plaza").is_err_and(|why| why.contains("quotation mark")));
        assert!(text("a\u{7}b", "Plaza").is_err());
        assert_eq!(identifier("'00412", "Tag").as_deref(), Ok("00412"));
    }
}
