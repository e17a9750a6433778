//! Values of a row as they stand in a file: what is blank, what a spreadsheet has spoilt, what fits a text field.

use crate::{body::shorten, value};

/// Most characters of a text field (decisions, Identity and values).
const MAX_TEXT: usize = 255;

/// The value without the white space around it; `None` for blank and for `-`, which statements print instead.
pub(super) fn filled(text: &str) -> Option<&str> {
    let text = text.trim();
    (!text.is_empty() && text != "-").then_some(text)
}

/// Text for a field of ours; `column` names it for the operator.
pub(super) fn text(given: &str, column: &str) -> Result<String, String> {
    if given.contains(['\n', '\r']) {
        return Err(format!("`{column}` has a line break in it; is a quotation mark missing?"));
    }
    value::text(given, MAX_TEXT, false).map_err(|rule| format!("`{column}` {rule}"))?;
    Ok(given.to_owned())
}

/// A number that identifies something, as text: without the quote that keeps spreadsheets away from it.
pub(super) fn identifier(given: &str, column: &str) -> Result<String, String> {
    let bare = given.trim_start_matches('\'').trim();
    if is_spoilt(bare) { Err(spoilt(bare, column)) } else { text(bare, column) }
}

/// Whether a spreadsheet took an identifier for a number and rounded it: `1.29143E+11`.
pub(super) fn is_spoilt(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once("E+").or_else(|| text.split_once("e+")).is_some_and(|(mantissa, exponent)| {
        let (whole, fraction) = mantissa.split_once(['.', ',']).unwrap_or((mantissa, "0"));
        digits(whole) && digits(fraction) && digits(exponent)
    })
}

/// What to do about such an identifier.
pub(super) fn spoilt(text: &str, column: &str) -> String {
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
    fn what_a_spreadsheet_rounded_is_told_from_a_plate() {
        for text in ["1.29143E+11", "1E+11", "6,12313e+10"] {
            assert!(is_spoilt(text) && identifier(text, "Tag").is_err_and(|why| why.contains("spreadsheet")), "{text}");
        }
        for text in ["1E11", "E+11", "12E45", "1.29143", "A1E+11", "99900000001"] {
            assert!(!is_spoilt(text), "{text}");
        }
    }

    #[test]
    fn text_has_a_bound_and_no_control_characters() {
        assert!(text(&"x".repeat(256), "Plaza").is_err_and(|why| why.contains("`Plaza`") && why.contains("255")));
        assert!(text("a\nb", "Plaza").is_err_and(|why| why.contains("quotation mark")));
        assert!(text("a\u{7}b", "Plaza").is_err());
        assert_eq!(identifier("'00412", "Tag").as_deref(), Ok("00412"));
    }
}
