//! Checks of single values: blank values, identifiers that a spreadsheet rounded, and lengths of texts.

use super::mangled;
use crate::{
    request::body::shorten,
    value::{Name, Text},
};
use std::borrow::Cow;

/// Most characters of a text field (decisions, Identity and values).
const MAX_TEXT: usize = 255;

/// The value without surrounding white space; `None` for blank values and for a dash alone, which means the same.
pub(super) fn filled(text: &str) -> Option<&str> {
    let text = text.trim();
    (!matches!(text, "" | "-" | "\u{2013}" | "\u{2212}")).then_some(text)
}

/// Whether a cell calls its row a total.
pub(super) fn is_total(cell: &str) -> bool {
    const WORDS: [&str; 17] = [
        "total",
        "totals",
        "subtotal",
        "grandtotal",
        "sum",
        "summe",
        "gesamt",
        "gesamtsumme",
        "gesamtbetrag",
        "zwischensumme",
        "totaal",
        "totale",
        "totaux",
        "soustotal",
        "somme",
        "suma",
        "合計",
    ];
    let Some(first) = cell.trim_start().chars().next().filter(|first| first.is_alphabetic()) else { return false };
    if !"TSGZ合".contains(first.to_uppercase().next().unwrap_or(first)) {
        return false;
    }
    let letters: String = cell.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect();
    let word = cell.split_whitespace().next().unwrap_or_default().trim_end_matches(':').to_lowercase();
    WORDS.iter().any(|total| *total == letters || *total == word)
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

/// Checks an identifier, without what a spreadsheet added to it.
pub(super) fn identifier(given: &str, column: &str) -> Result<Text, String> {
    let bare = bare(given);
    match loss(&bare, column) {
        Some(why) => Err(why),
        None => text(&bare, column),
    }
}

/// Checks the number of a transaction or summons. People and programs write long numbers with spaces: `61 231 234 567`.
pub(super) fn number(given: &str, column: &str) -> Result<Text, String> {
    let bare = bare(given);
    // As the number of a transaction, `6E10` is one that a spreadsheet rounded. A plate can be so.
    let is_exponent = |(whole, exponent): (&str, &str)| are_digits(whole) && are_digits(exponent);
    let plain: String = bare.chars().filter(|c| !c.is_whitespace() && !matches!(c, '(' | ')' | '+')).collect();
    let plain = ["×10^", "x10^", "X10^", "*10^"].iter().fold(plain, |plain, power| plain.replace(power, "E"));
    if is_rounded(&plain) || plain.split_once(['E', 'e']).is_some_and(is_exponent) {
        return Err(rounded(&bare, column));
    }
    let is_formula = given.trim_start().starts_with('=') && bare.contains('(');
    if mangled::is_other_value(&bare) || is_formula {
        return Err(lost(&bare, column));
    }
    let is_spaced = bare.contains(char::is_whitespace) && bare.chars().all(|c| c.is_ascii_digit() || c.is_whitespace());
    match is_spaced {
        true => identifier(&bare.replace(char::is_whitespace, ""), column),
        false => identifier(&bare, column),
    }
}

/// An identifier without what spreadsheets and other programs add: a leading quote, `="..."` around it, `.0` after a number,
/// delimiters of thousands, and characters that nobody sees. Full-width characters become those of ASCII.
pub(super) fn bare(given: &str) -> Cow<'_, str> {
    match visible(given) {
        Cow::Borrowed(given) => without_additions(given),
        Cow::Owned(given) => Cow::Owned(without_additions(&given).into_owned()),
    }
}

/// The text without characters of no width, and with full-width characters as those of ASCII.
fn visible(given: &str) -> Cow<'_, str> {
    if given.is_ascii() {
        return Cow::Borrowed(given);
    }
    let visible = given.chars().filter_map(|c| match c {
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => None,
        '\u{2060}'..='\u{2069}' | '\u{feff}' => None,
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0),
        c => Some(c),
    });
    Cow::Owned(visible.collect())
}

fn without_additions(given: &str) -> Cow<'_, str> {
    let quoted = given.trim().trim_start_matches(['\'', '\u{2018}', '\u{2019}', '`']).trim();
    let bare = match quoted.strip_prefix('=') {
        // The closing quotation mark can be lost with the end of a cell.
        Some(formula) => formula.trim().trim_matches('"').trim(),
        None => quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(quoted).trim(),
    };
    // `0.##` shows a whole number with a point behind it, and `+0` one with its sign.
    let unsigned = bare.strip_prefix('+').unwrap_or(bare);
    if let Some(whole) =
        [unsigned, unsigned.trim_end_matches(['.', ',', ';'])].into_iter().find(|text| are_digits(text))
    {
        return Cow::Borrowed(whole);
    }
    if let Some(digits) = ungrouped(bare) {
        return Cow::Owned(digits);
    }
    // Where people write decimal commas, so do spreadsheets.
    match bare.rsplit_once(['.', ',']).filter(|(_, zeros)| !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0'))
    {
        Some((whole, _)) if are_digits(whole.trim_end()) => Cow::Borrowed(whole.trim_end()),
        Some((whole, _)) => ungrouped(whole).map_or(Cow::Borrowed(bare), Cow::Owned),
        None => Cow::Borrowed(bare),
    }
}

/// The digits of a number that a program wrote in groups of three: `61,231,234,567`. A single point can be part of the
/// identifier, and so can spaces that people type.
fn ungrouped(text: &str) -> Option<String> {
    let delimiter = text.chars().find(|c| !c.is_ascii_digit())?;
    let least = match delimiter {
        '.' => 3,
        ',' | '\'' | '\u{2019}' | '\u{a0}' | '\u{2007}' | '\u{2009}' | '\u{202f}' => 2,
        _ => return None,
    };
    let groups: Vec<&str> = text.split(delimiter).collect();
    let (first, rest) = groups.split_first()?;
    let are_groups = (1..=3).contains(&first.len())
        && rest.iter().all(|group| group.len() == 3)
        && groups.iter().all(|group| are_digits(group));
    (groups.len() >= least && are_groups).then(|| groups.concat())
}

/// Why an identifier is none: a spreadsheet rounded it, or it is an error value, a word for nothing or only zeros.
pub(super) fn loss(bare: &str, column: &str) -> Option<String> {
    if is_rounded(bare) {
        return Some(rounded(bare, column));
    }
    if is_error_value(bare) {
        return Some(lost(bare, column));
    }
    if is_placeholder(bare) || is_word_for_nothing(bare) {
        let bare = shorten(bare);
        return Some(format!("`{column}` is {bare}, which identifies nothing; correct it, or leave it empty"));
    }
    let has_other_digits = bare.chars().any(|c| !c.is_ascii() && c.is_numeric());
    has_other_digits
        .then(|| format!("`{column}` is {}, which has other digits than 0 to 9; write it with these", shorten(bare)))
}

/// Whether a text is an error value of a spreadsheet (`#N/A`, `#REF!`, `########`) or a word for nothing (`N/A`, `null`).
fn is_error_value(text: &str) -> bool {
    const NOTHING: [&str; 20] = [
        "n/a",
        "na",
        "nan",
        "null",
        "none",
        "nil",
        "undefined",
        "unknown",
        "n.a.",
        "nat",
        "blank",
        "empty",
        "infinity",
        "-infinity",
        "loading...",
        "loading…",
        "error",
        "inf",
        "-inf",
        "n\\a",
    ];
    let lower = text.to_lowercase();
    let word = lower.trim_matches(['(', ')', '[', ']', '<', '>', '{', '}', ' ']);
    NOTHING.contains(&word) || lower.starts_with('#') || is_spreadsheet_error(text)
}

/// Whether a text is an error value of a spreadsheet, with or without its number sign. A plaza can begin with one: `#12 Main Plaza`.
fn is_spreadsheet_error(text: &str) -> bool {
    const ERRORS: [&str; 8] = ["n/a", "ref!", "value!", "name?", "div/0!", "null!", "num!", "spill!"];
    let lower = text.trim().trim_start_matches('=').to_lowercase();
    let word = lower.strip_prefix('#');
    let numbered = lower.split_once(':').filter(|(word, _)| matches!(word.trim(), "err" | "fehler" | "erreur"));
    let is_numbered = numbered.is_some_and(|(_, number)| are_digits(number.trim()));
    is_numbered
        || word.is_some_and(|word| word.bytes().all(|byte| byte == b'#') || ERRORS.contains(&word))
        || (lower.ends_with(['!', '?']) && ERRORS.contains(&lower.as_str()))
}

/// Checks that a value is no error value of a spreadsheet.
pub(super) fn known(given: &str, column: &str) -> Result<(), String> {
    if is_spreadsheet_error(given) { Err(lost(given, column)) } else { Ok(()) }
}

/// Checks the name of an agency, which is a part of the identity of a toll.
pub(super) fn agency(given: &str, column: &str) -> Result<Name, String> {
    if is_error_value(given) { Err(lost(given, column)) } else { name(given, column) }
}

fn lost(given: &str, column: &str) -> String {
    let given = shorten(given);
    format!(
        "`{column}` is {given}: its value is lost; download the file again and import it without opening it in a \
         spreadsheet"
    )
}

/// Whether a program wrote zeros or signs in place of a number that it did not have: `0`, `000000`, `0000-0000`, `--`, `?`, `[]`.
fn is_placeholder(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(|c| c.is_alphabetic() || (c.is_numeric() && c != '0'))
}

/// Whether a person wrote that there is no number, or none yet: `TBD`, `No plate`.
fn is_word_for_nothing(text: &str) -> bool {
    const WORDS: [&str; 15] = [
        "tbd",
        "tba",
        "pending",
        "nd",
        "unk",
        "unkn",
        "missing",
        "noplate",
        "blankplate",
        "notag",
        "notransponder",
        "noread",
        "unreadable",
        "notavailable",
        "notapplicable",
    ];
    // `ND` without a mark can be a plate.
    let letters: String = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    WORDS.contains(&letters.as_str()) && (letters.len() > 2 || letters.len() < text.len())
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a program parsed an identifier as a number and rounded it: `1.29143E+11`, `6.12312E10`, `1.29143D+11`. Plates such as `1E11` are
/// no such numbers.
pub(super) fn is_rounded(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let Some((mantissa, exponent)) = text.split_once(['E', 'e', 'D', 'd']) else { return false };
    let (mantissa, exponent) = (mantissa.trim_end(), exponent.trim_start());
    let (whole, fraction) = mantissa.split_once(['.', ',']).unwrap_or((mantissa, ""));
    // A second program added `.0` to what the first one had rounded.
    let exponent = exponent
        .rsplit_once(['.', ','])
        .filter(|(_, zeros)| zeros.bytes().all(|byte| byte == b'0'))
        .map_or(exponent, |(rest, _)| rest);
    let (signed, exponent) = exponent.strip_prefix('+').map_or((false, exponent), |rest| (true, rest));
    let number = are_digits(whole) && (fraction.is_empty() || are_digits(fraction)) && are_digits(exponent);
    number && (signed || !fraction.is_empty())
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
        for text in [
            "1.29143E+11",
            "1E+11",
            "6,12313e+10",
            "6.12312E10",
            "4.63123E9",
            "6.0e10",
            "6.12312E 10",
            "=\"6.12312E10\"",
            "+6.12312E+10",
            "-6.12312E+10",
            "6.12312E+10.0",
        ] {
            assert!(
                is_rounded(&bare(text)) && identifier(text, "Tag").is_err_and(|why| why.contains("spreadsheet")),
                "{text}"
            );
        }
        for text in ["1E11", "E+11", "12E45", "1.29143", "A1E+11", "99900000001"] {
            assert!(!is_rounded(text), "{text}");
        }
    }

    #[test]
    fn an_error_value_is_no_identifier() {
        for text in [
            "#N/A",
            "N/A",
            "n/a",
            "#REF!",
            "#VALUE!",
            "#NAME?",
            "########",
            "#",
            "null",
            "(none)",
            "=#N/A",
            "Infinity",
            "Loading...",
            "(blank)",
            "Error",
            "inf",
            "N\\A",
            "Err:502",
            "Erreur :502",
        ] {
            assert!(identifier(text, "Tag").is_err_and(|why| why.contains("is lost")), "{text}");
        }
        for text in ["NAN123", "NULL1", "A#1", "0A", "10"] {
            assert_eq!(identifier(text, "Tag").as_deref(), Ok(text));
        }
    }

    #[test]
    fn zeros_signs_and_words_for_nothing_are_no_identifiers() {
        for text in [
            "0",
            "000000",
            "0.0",
            "0000-0000",
            "=\"00000000000\"",
            "'0",
            "--",
            "-",
            "—",
            "***",
            "?",
            "[]",
            "…",
            "\u{2212}",
            "/",
            "TBD",
            "No plate",
            "no-plate",
            "T.B.D.",
            "Pending",
            "(no tag)",
            "n/d",
            "Not available",
        ] {
            assert!(identifier(text, "Tag").is_err_and(|why| why.contains("identifies nothing")), "{text}");
        }
        for text in ["TBD1", "NO PLATES", "ND", "É", "Ж123"] {
            assert_eq!(identifier(text, "Plate").as_deref(), Ok(text));
        }
    }

    #[test]
    fn what_a_program_added_to_an_identifier_is_removed() {
        for (given, expected) in [
            ("61231234567.0", "61231234567"),
            ("61231234567.00", "61231234567"),
            ("61231234567,0", "61231234567"),
            ("61231234567,00", "61231234567"),
            ("61.231.234.567,00", "61231234567"),
            ("=\"61231234567\"", "61231234567"),
            ("=\"00412345678\"", "00412345678"),
            ("\"00412345678\"", "00412345678"),
            ("'00412", "00412"),
            ("12.5", "12.5"),
            ("A.0", "A.0"),
            ("61231234567.", "61231234567"),
            ("61231234567,", "61231234567"),
            ("61231234567;", "61231234567"),
            ("61231234567 .0", "61231234567"),
            ("+61231234567", "61231234567"),
            ("\u{2019}00412", "00412"),
            ("`00412", "00412"),
            ("=\"00412", "00412"),
            ("A.", "A."),
            ("+A1", "+A1"),
        ] {
            assert_eq!(identifier(given, "Tag").as_deref(), Ok(expected), "{given}");
        }
    }

    #[test]
    fn an_identifier_is_one_in_all_spellings() {
        for given in [
            "61,231,234,567",
            "61.231.234.567",
            "61'231'234'567",
            "61\u{2019}231\u{2019}234\u{2019}567",
            "61\u{a0}231\u{a0}234\u{a0}567",
            "61\u{202f}231\u{202f}234\u{202f}567",
            "61,231,234,567.00",
            "=\"61,231,234,567\"",
            "\u{ff16}\u{ff11}\u{ff12}\u{ff13}\u{ff11}\u{ff12}\u{ff13}\u{ff14}\u{ff15}\u{ff16}\u{ff17}",
            "\u{200b}61231234567",
            "612\u{ad}31234567\u{feff}",
            "\u{202a}61231234567\u{202c}",
        ] {
            assert_eq!(identifier(given, "Tag").as_deref(), Ok("61231234567"), "{given}");
        }
        assert_eq!(identifier("\u{ff21}\u{ff22}\u{ff23}1234", "Plate").as_deref(), Ok("ABC1234"));
        for other in ["1,23", "12,3456", "61231,234", "A1,234", "412 345 678", "ABC-123", "12.345"] {
            assert_eq!(identifier(other, "Tag").as_deref(), Ok(other));
        }
        for digits in ["\u{661}\u{662}\u{663}", "12\u{664}", "\u{b2}31"] {
            assert!(identifier(digits, "Tag").is_err_and(|why| why.contains("digits")), "{digits}");
        }
        for rounded in ["1.29143D+11", "1.29143d11", "1D+11"] {
            assert!(identifier(rounded, "Tag").is_err_and(|why| why.contains("rounded")), "{rounded}");
        }
        assert_eq!(identifier("1D11", "Plate").as_deref(), Ok("1D11"));
    }

    #[test]
    fn the_number_of_a_transaction_is_one_with_and_without_spaces() {
        for given in ["61 231 234 567", "61231 234567", "6123\u{a0}1234567", "'61 231 234 567", "61231234567"] {
            assert_eq!(number(given, "Trans ID").as_deref(), Ok("61231234567"), "{given}");
        }
        for rounded in ["6E10", "+6.12312E10", "(6.12312E10)", "6.12312 E+10", "6e+10"] {
            assert!(number(rounded, "Trans ID").is_err_and(|why| why.contains("rounded")), "{rounded}");
        }
        for error in ["REF!", "#REF!", "=#N/A"] {
            assert!(number(error, "Trans ID").is_err_and(|why| why.contains("is lost")), "{error}");
        }
        for power in ["6.12312×10^10", "6.12312 x 10^10", "6.12312*10^10", "6×10^10"] {
            assert!(number(power, "Trans ID").is_err_and(|why| why.contains("rounded")), "{power}");
        }
        for value in ["TRUE", "6/2/2026", "Jun-26", "61231234567.5", "=\"6/2/2026\""] {
            assert!(number(value, "Trans ID").is_err_and(|why| why.contains("is lost")), "{value}");
        }
        for other in ["T 1234", "1234-567", "1,23", "E10", "A6E10"] {
            assert_eq!(number(other, "Trans ID").as_deref(), Ok(other));
        }
        assert!(number("000 000", "Trans ID").is_err());
    }

    #[test]
    fn an_error_value_is_no_agency_and_no_plaza() {
        for text in ["#N/A", "#REF!", "########", "REF!"] {
            assert!(known(text, "Plaza").is_err_and(|why| why.contains("is lost")), "{text}");
            assert!(agency(text, "Agency").is_err_and(|why| why.contains("is lost")), "{text}");
        }
        assert!(agency("N/A", "Agency").is_err());
        for plaza in ["#12 Main Plaza", "N/A", "Exit 4!", "GWB"] {
            assert_eq!(known(plaza, "Plaza"), Ok(()), "{plaza}");
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
