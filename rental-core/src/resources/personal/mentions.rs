//! Whether stored JSON mentions a person: an email address or a phone number, in any usual spelling and escape.

use std::borrow::Cow;

/// Whether JSON text contains one of these addresses or numbers, in a value or in a name.
#[must_use]
pub fn mentions(json: &str, words: &[String]) -> bool {
    !words.is_empty() && pieces(json).iter().any(|piece| words.iter().any(|word| has_word(piece, word)))
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

/// Whether `text` contains the address or number `word`, and not as a part of a longer one. Capital letters are the same as
/// small ones, and of a phone number only the digits count.
fn has_word(text: &str, word: &str) -> bool {
    if let Some(digits) = word.strip_prefix('+').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())) {
        return has_number(text, digits);
    }
    let (text, word) = (text.to_lowercase(), word.to_lowercase());
    let of_address = |letter: char| letter.is_alphanumeric() || "+-_@".contains(letter);
    let goes_on = |rest: &str| {
        let mut rest = rest.chars();
        match rest.next() {
            Some('.') => rest.next().is_some_and(of_address),
            next => next.is_some_and(of_address),
        }
    };
    !word.is_empty()
        && text.match_indices(&word).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            !before.is_some_and(|letter| of_address(letter) || letter == '.') && !goes_on(&text[at + word.len()..])
        })
}

/// Most characters between two digits of a phone number.
const MOST_BETWEEN_DIGITS: usize = 3;

/// Whether `text` contains a phone number with these digits, as people write it: `+49 157 998`, `0049-157-998`,
/// `+49 (0)157/998`.
fn has_number(text: &str, digits: &str) -> bool {
    let is_end = |letter: Option<char>| !letter.is_some_and(|letter| letter.is_alphanumeric() || "_@".contains(letter));
    let mut before = None;
    for (at, letter) in text.char_indices() {
        let begins = letter.is_ascii_digit() && is_end(before);
        before = Some(letter);
        if !begins {
            continue;
        }
        let international = text[at..].strip_prefix("00").and_then(|rest| after_number(rest, digits));
        let rest = international.or_else(|| after_number(&text[at..], digits));
        if rest.is_some_and(|rest| is_end(rest.chars().next())) {
            return true;
        }
    }
    false
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
            if between > MOST_BETWEEN_DIGITS
                || !(letter.is_whitespace() || "-./()\u{2010}\u{2011}\u{2013}".contains(letter))
            {
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
        for text in ["ada@x.com", "\"ada@x.com\"", "Mail Ada@X.com.", "(ada@x.com)", "a: ada@x.com, b"] {
            assert!(has_word(text, "ada@x.com"), "{text}");
        }
        for text in ["nada@x.com", "j.ada@x.com", "ada@x.com.au", "ada@x.community", "ada@x.co", ""] {
            assert!(!has_word(text, "ada@x.com"), "{text}");
        }
        assert!(has_word("call +14155550123!", "+14155550123") && !has_word("+141555501234", "+14155550123"));
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
        ] {
            assert!(has_word(text, "+4915799887766"), "{text}");
        }
        for text in [
            "+49157998877661",
            "34915799887766",
            "+49 157 9988 776",
            "+49 157 9988 7767",
            "0157 99887766",
            "a4915799887766",
            "4915799887766@x.com",
            "49 157 and 9988 7766",
            "4915799887766a",
            "",
        ] {
            assert!(!has_word(text, "+4915799887766"), "{text}");
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
