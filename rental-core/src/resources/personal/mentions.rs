//! Whether stored JSON mentions a person: an email address or a phone number, in any usual spelling and escape.

use crate::value::loose;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// Whether JSON text contains one of these addresses or numbers, in a value or in a name.
#[must_use]
pub fn mentions(json: &str, words: &[String]) -> bool {
    if words.is_empty() {
        return false;
    }
    let words: Vec<Word> = words.iter().map(|word| Word::new(word)).collect();
    let has_one = |text: &str| {
        let text = loose(text);
        words.iter().any(|word| word.is_in(&text))
    };
    let pieces = pieces(json);
    pieces.iter().any(|piece| {
        // Links and forms have `zoe%40example.com`, and forms a plus sign for a space.
        let is_decoded = |piece: &str| has_one(&percent_decode_str(piece).decode_utf8_lossy());
        has_one(piece) || (piece.contains('%') && (is_decoded(piece) || is_decoded(&piece.replace('+', " "))))
    })
}

/// What a text is searched for.
enum Word {
    /// The digits of a phone number, from the code of the country on.
    Phone(String),
    /// An email address, with its domain in each of its spellings.
    Email(Vec<String>),
}

impl Word {
    fn new(word: &str) -> Self {
        if let Some(digits) = word.strip_prefix('+').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())) {
            return Self::Phone(digits.to_owned());
        }
        let mut spellings = vec![loose(word)];
        if let Some((name, domain)) = word.rsplit_once('@') {
            let domains = [idna::domain_to_ascii(domain).ok(), Some(idna::domain_to_unicode(domain).0)];
            spellings.extend(domains.into_iter().flatten().map(|domain| loose(&format!("{name}@{domain}"))));
            spellings.sort_unstable();
            spellings.dedup();
        }
        Self::Email(spellings)
    }

    fn is_in(&self, text: &str) -> bool {
        match self {
            Self::Phone(digits) => has_number(text, digits),
            Self::Email(spellings) => spellings.iter().any(|spelling| has_word(text, spelling)),
        }
    }
}

/// The strings of JSON text without their escapes, and the text between them.
fn pieces(json: &str) -> Vec<Cow<'_, str>> {
    let (mut pieces, mut rest) = (Vec::new(), json);
    while let Some((between, string)) = rest.split_once('"') {
        pieces.push(Cow::Borrowed(between));
        let mut escaped = false;
        let end = string.find(|letter| {
            let ends = letter == '"' && !escaped;
            escaped = letter == '\\' && !escaped;
            ends
        });
        let (string, after) = end.map_or((string, ""), |end| (&string[..end], &string[end + 1..]));
        pieces.push(unescaped(string));
        rest = after;
    }
    pieces.push(Cow::Borrowed(rest));
    pieces
}

/// The content of a JSON string. A half of a surrogate pair, which customers can store in their own JSON, becomes U+FFFD.
fn unescaped(string: &str) -> Cow<'_, str> {
    let Some((before, mut rest)) = string.split_once('\\') else { return Cow::Borrowed(string) };
    let mut units: Vec<u16> = before.encode_utf16().collect();
    loop {
        let mut letters = rest.chars();
        match letters.next() {
            Some('u') => {
                let (digits, after) = letters.as_str().split_at_checked(4).unwrap_or((letters.as_str(), ""));
                units.push(u16::from_str_radix(digits, 16).unwrap_or(0xFFFD));
                rest = after;
            }
            Some('b' | 'f' | 'n' | 'r' | 't') => {
                units.push(u16::from(b' '));
                rest = letters.as_str();
            }
            // The escaped character itself: a quote, a slash or a backslash.
            _ => {
                let itself = rest.len() - letters.as_str().len();
                units.extend(rest[..itself].encode_utf16());
                rest = letters.as_str();
            }
        }
        let Some((plain, after)) = rest.split_once('\\') else { break };
        units.extend(plain.encode_utf16());
        rest = after;
    }
    units.extend(rest.encode_utf16());
    Cow::Owned(String::from_utf16_lossy(&units))
}

/// Whether `text` contains the address `word`, and not as a part of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    let of_address = |letter: char| letter.is_alphanumeric() || "+-_@".contains(letter);
    let goes_on = |rest: &str| {
        let mut rest = rest.chars();
        match rest.next() {
            Some('.') => rest.next().is_some_and(of_address),
            next => next.is_some_and(of_address),
        }
    };
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            !before.is_some_and(|letter| of_address(letter) || letter == '.') && !goes_on(&text[at + word.len()..])
        })
}

/// Most characters between two digits of a phone number.
const MOST_BETWEEN_DIGITS: usize = 3;

/// Fewest digits of a number without the code of its country that is searched for.
const LEAST_NATIONAL: usize = 7;
/// Codes of countries with two digits (ITU-T E.164). Those that begin with 1 or 7 have one, all others three.
const TWO_DIGITS: [&str; 44] = [
    "20", "27", "30", "31", "32", "33", "34", "36", "39", "40", "41", "43", "44", "45", "46", "47", "48", "49", "51",
    "52", "53", "54", "55", "56", "57", "58", "60", "61", "62", "63", "64", "65", "66", "81", "82", "84", "86", "90",
    "91", "92", "93", "94", "95", "98",
];

/// What is dialled before a number within its country, and the number without the code of the country. `None` for a number too
/// short to be told from others.
fn national(digits: &str) -> Option<(&'static str, &str)> {
    let length = match digits.get(..2)? {
        two if two.starts_with(['1', '7']) => 1,
        two if TWO_DIGITS.contains(&two) => 2,
        _ => 3,
    };
    let (code, number) = digits.split_at_checked(length)?;
    let trunk = match code {
        "7" => "8",
        "36" => "06",
        _ => "0",
    };
    (number.len() >= LEAST_NATIONAL).then_some((trunk, number))
}

/// Whether `text` contains a phone number with these digits, as people write it: `+49 157 998`, `0049-157-998`,
/// `+49 (0)157/998`, and within the country `0157 998`.
fn has_number(text: &str, digits: &str) -> bool {
    let is_end = |letter: Option<char>| !letter.is_some_and(|letter| letter.is_alphanumeric() || "_@".contains(letter));
    let ends = |rest: Option<&str>| rest.is_some_and(|rest| is_end(rest.chars().next()));
    let national = national(digits);
    let mut before = None;
    for (at, letter) in text.char_indices() {
        let begins = letter.is_ascii_digit() && is_end(before);
        before = Some(letter);
        if !begins {
            continue;
        }
        let rest = &text[at..];
        if ends(rest.strip_prefix("00").and_then(|rest| after_number(rest, digits))) || ends(after_number(rest, digits))
        {
            return true;
        }
        let Some((trunk, number)) = national.filter(|_| !is_in_international(&text[..at])) else { continue };
        if ends(rest.strip_prefix(trunk).and_then(|rest| after_number(rest, number)))
            || ends(after_number(rest, number))
        {
            return true;
        }
    }
    false
}

/// Whether a number that goes on after `text` has the code of a country: `+43 `, `0043 `.
fn is_in_international(text: &str) -> bool {
    let before = text.trim_end_matches(|letter: char| letter.is_ascii_digit() || is_between_digits(letter));
    let begun = text[before.len()..].trim_start_matches(is_between_digits);
    before.ends_with('+') || begun.strip_prefix("00").is_some_and(|code| code.contains(|c: char| c.is_ascii_digit()))
}

fn is_between_digits(letter: char) -> bool {
    letter.is_whitespace() || "-./()\u{2010}\u{2011}\u{2013}".contains(letter)
}

/// What follows these digits at the beginning of `text`.
fn after_number<'t>(text: &'t str, digits: &str) -> Option<&'t str> {
    let mut rest = text;
    for digit in digits.chars() {
        let mut between = 0;
        while !rest.starts_with(digit) {
            // `(0)` is dialled only within the country.
            let (letter, after) = match rest.strip_prefix("(0)") {
                Some(after) => ('(', after),
                None => rest.chars().next().map(|letter| (letter, &rest[letter.len_utf8()..]))?,
            };
            between += 1;
            if between > MOST_BETWEEN_DIGITS || !is_between_digits(letter) {
                return None;
            }
            rest = after;
        }
        rest = &rest[digit.len_utf8()..];
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_as_a_word_and_not_as_a_part_of_another() {
        for text in ["ada@x.com", "\"ada@x.com\"", "Mail ada@x.com.", "(ada@x.com)", "a: ada@x.com, b"] {
            assert!(has_word(text, "ada@x.com"), "{text}");
        }
        for text in ["nada@x.com", "j.ada@x.com", "ada@x.com.au", "ada@x.community", "ada@x.co", ""] {
            assert!(!has_word(text, "ada@x.com"), "{text}");
        }
        assert!(has_number("call +14155550123!", "14155550123") && !has_number("+141555501234", "14155550123"));
        assert!(!has_word("anything", ""));
    }

    #[test]
    fn a_phone_number_is_found_in_all_usual_spellings_and_not_in_other_numbers() {
        for text in [
            "+4915799887766",
            "4915799887766",
            "call +49 157 9988 7766.",
            "0049-157-99887766",
            "00 49 157 9988 7766",
            "+49 (0)157 / 9988-7766",
            "+49 (157) 9988.7766",
            "49\u{a0}157\u{a0}9988\u{2011}7766, after 6",
            "2 people, +49 157 99887766",
            "0157 99887766",
            "(0157) 9988-7766",
            "0 157/99 88 77 66",
            "15799887766",
            "10:00 0157 99887766",
            "2026-06-01 0157 99887766",
            "+43 1 234, 0157 99887766",
        ] {
            assert!(has_number(text, "4915799887766"), "{text}");
        }
        for text in [
            "+49157998877661",
            "34915799887766",
            "+49 157 9988 776",
            "+49 157 9988 7767",
            "+15799887766",
            "+1 (579) 988-7766",
            "+43 157 99887766",
            "0043 157 99887766",
            "0157 9988776",
            "0157 998877660",
            "8157 99887766",
            "a4915799887766",
            "4915799887766@x.com",
            "49 157 and 9988 7766",
            "4915799887766a",
            "",
        ] {
            assert!(!has_number(text, "4915799887766"), "{text}");
        }
    }

    #[test]
    fn a_phone_number_is_found_as_it_is_dialled_in_its_country() {
        for (digits, text) in [
            ("14155550123", "(415) 555-0123"),
            ("14155550123", "1-415-555-0123"),
            ("79123456789", "8 (912) 345-67-89"),
            ("36301234567", "06 30 123 4567"),
            ("390612345678", "06 1234 5678"),
            ("34612345678", "612 34 56 78"),
            ("3545551234", "555 1234"),
            ("989121234567", "0912 123 4567"),
            ("353861234567", "086 123 4567"),
        ] {
            assert!(has_number(text, digits), "{text}");
        }
        // A national number of fewer than 7 digits is not searched: order numbers would match it.
        assert!(has_number("+371 23456", "37123456") && !has_number("23456", "37123456"));
    }

    /// `Zoë` is known by an address with two accents, whose domain has a spelling in ASCII.
    #[test]
    fn a_person_is_found_in_every_spelling_of_an_address_or_number() {
        for known in ["zoë@exämple.com", "zoe\u{308}@exa\u{308}mple.com", "Zoë@xn--exmple-cua.com", "ZOË@EXÄMPLE.COM"]
        {
            let names = [known.to_owned(), "+4915799887766".to_owned()];
            for json in [
                r#"{"e":"zoë@exämple.com"}"#,
                "{\"e\":\"zoe\u{308}@exa\u{308}mple.com\"}",
                r#"{"e":"ZOË@EXÄMPLE.COM"}"#,
                r#"{"e":"zo\u00eb@ex\u00e4mple.com"}"#,
                r#"{"e":"zoë@xn--exmple-cua.com"}"#,
                r#"{"e":"Zoë <ZOË@XN--EXMPLE-CUA.COM>"}"#,
                r#"{"link":"mailto:zo%C3%AB%40ex%C3%A4mple.com?subject=Hi"}"#,
                r#"{"form":"email=zo%C3%AB%40xn--exmple-cua.com&phone=1"}"#,
                r#"{"e":"ｚｏë＠ｅｘämple．ｃｏｍ"}"#,
                r#"{"p":"+４９１５７９９８８７７６６"}"#,
                r#"{"p":"０１５７ ９９８８７７６６"}"#,
                r#"{"p":"٠١٥٧ ٩٩٨٨٧٧٦٦"}"#,
                r#"{"form":"phone=%2B49+157+99887766"}"#,
                r#"{"link":"tel:%2B49-157-99887766"}"#,
                r#"{"code":"+49","number":"15799887766"}"#,
                r#"{"p":15799887766}"#,
            ] {
                assert!(mentions(json, &names), "{known} {json}");
            }
            for json in [
                r#"{"e":"zoe@exämple.com"}"#,
                r#"{"e":"zoë@example.com"}"#,
                r#"{"e":"anzoë@exämple.com"}"#,
                r#"{"form":"100%"}"#,
            ] {
                assert!(!mentions(json, &names), "{known} {json}");
            }
        }
    }

    #[test]
    fn an_address_is_found_in_escaped_json() {
        let names = ["ada@x.com".to_owned(), "+14155550123".to_owned()];
        for json in [
            r#"{"text":"Hi\nada@x.com"}"#,
            r#"{"text":"\tada@x.com\r\n"}"#,
            r#"{"html":"\u003cada@x.com\u003e"}"#,
            r#"{"mail":"ada\u0040x.com"}"#,
            r#"{"mail":"\u0041da\u0040X\u002ECOM"}"#,
            r#"{"ada@x\u002ecom":1}"#,
            r#"{"a":{"b":["\ud83d\ude00ada@x.com"]}}"#,
            r#"{"a":"half a pair \ud83d ada\u0040x.com"}"#,
            r#"{"a":"\"quoted\" \\","b":"\"ada@x.com\""}"#,
            r#"{"a":"call \u002b14155550123"}"#,
            r#"{"a":"ada\u0040x.com","a":null}"#,
        ] {
            assert!(mentions(json, &names), "{json}");
        }
        for json in [
            r#"{"text":"\u006eada@x.com"}"#,
            r#"{"text":"ada@x.com\u002eau"}"#,
            r#"{"text":"j\u002eada@x.com"}"#,
            r#"{"a":"ada","b":"@x.com"}"#,
            r#"{"text":"\\u0061da@x.com"}"#,
            r#"{"text":"ada\u004"#,
            "{\"text\":\"ada\\",
        ] {
            assert!(!mentions(json, &names), "{json}");
        }
        assert!(!mentions(r#"{"a":"b"}"#, &[]));
    }
}
