//! Text with bounds: plain text, e-mail addresses, phone numbers, language tags.
//!
//! Each function gives the text to store, or a sentence for the caller that says which rule it breaks.

use email_address::{EmailAddress, Options};

/// Most bytes of an e-mail address (RFC 5321, 4.5.3.1.3, less the angle brackets).
const EMAIL_MAX_BYTES: usize = 254;
/// Most bytes of a language tag; the longest registered ones stay under 40.
const LANGUAGE_MAX_BYTES: usize = 100;

/// Text of at most `max` characters without control characters; with `filled`, at least one that is not white space.
///
/// # Errors
/// A sentence that says which rule it breaks.
pub fn text(given: &str, max: usize, filled: bool) -> Result<(), String> {
    if given.len() > max && given.chars().nth(max).is_some() {
        return Err(format!("must be at most {max} characters"));
    }
    if given.chars().any(char::is_control) {
        return Err("must not contain control characters".into());
    }
    if filled && given.trim().is_empty() {
        return Err("must not be blank".into());
    }
    Ok(())
}

/// One e-mail address of at most 254 bytes, kept as given.
///
/// # Errors
/// A sentence that says which rule it breaks.
pub fn email(given: &str) -> Result<(), String> {
    if given.len() > EMAIL_MAX_BYTES {
        return Err(format!("must be at most {EMAIL_MAX_BYTES} bytes"));
    }
    let bare = Options::default().without_display_text();
    let fine =
        EmailAddress::parse_with_options(given, bare).is_ok() && !given.chars().any(|c| c.is_control() || c == ' ');
    if fine { Ok(()) } else { Err("must be one email address, such as ada@example.com".into()) }
}

/// A phone number in E.164: `+` and 7 to 15 digits, the first not 0.
///
/// # Errors
/// A sentence that says what E.164 looks like.
pub fn phone(given: &str) -> Result<(), String> {
    let digits = given.strip_prefix('+').unwrap_or("");
    let fine = (7..=15).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.starts_with('0');
    if fine { Ok(()) } else { Err("must be in E.164 form: + and 7 to 15 digits, such as +14155550123".into()) }
}

/// A well-formed BCP 47 tag in its canonical case: `en-us` becomes `en-US`.
///
/// # Errors
/// A sentence that says what a tag looks like.
pub fn language(given: &str) -> Result<String, String> {
    let tag =
        if given.len() > LANGUAGE_MAX_BYTES { None } else { oxilangtag::LanguageTag::parse_and_normalize(given).ok() };
    tag.map(oxilangtag::LanguageTag::into_inner)
        .ok_or_else(|| "must be a BCP 47 language tag, such as en or pt-BR".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_counted_in_characters_not_bytes() {
        assert!(text(&"é".repeat(255), 255, false).is_ok());
        assert!(text(&"é".repeat(256), 255, false).is_err());
        assert!(text("", 255, false).is_ok());
        assert!(text(" \u{a0}", 255, true).is_err());
    }

    #[test]
    fn control_characters_are_refused_anywhere() {
        for bad in ["a\0b", "a\nb", "\u{7f}", "\u{85}", "tab\there"] {
            assert!(text(bad, 255, false).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn one_email_address_and_nothing_else() {
        for good in ["ada@example.com", "a.b+c@sub.example.co.uk", "o'neil@example.ie"] {
            assert!(email(good).is_ok(), "{good}");
        }
        let long = format!("{}@example.com", "a".repeat(250));
        for bad in [
            "",
            "ada",
            "@example.com",
            "ada@",
            "a@b@c",
            "Ada <ada@example.com>",
            "a@b.com,c@d.com",
            "a b@example.com",
            &long,
        ] {
            assert!(email(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn phones_are_e164() {
        for good in ["+14155550123", "+1234567", "+123456789012345"] {
            assert!(phone(good).is_ok(), "{good}");
        }
        for bad in [
            "14155550123",
            "+0123456789",
            "+123456",
            "+1234567890123456",
            "+1 415 555",
            "+1415555012a",
            "+",
            "",
            "+１2345678",
        ] {
            assert!(phone(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn language_tags_are_stored_in_canonical_case() {
        for (given, canonical) in
            [("en", "en"), ("EN-us", "en-US"), ("zh-hant-tw", "zh-Hant-TW"), ("sr-latn", "sr-Latn")]
        {
            assert_eq!(language(given).as_deref(), Ok(canonical));
        }
        for bad in ["", "e", "en_US", "en--US", "english-language-of-england", "-en", "en-"] {
            assert!(language(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_a_rule_panic(given in "\\PC{0,300}") {
            let _ = (text(&given, 255, true), email(&given), phone(&given), language(&given));
        }

        #[test]
        fn canonical_tags_are_stable(given in "[a-zA-Z]{2,3}(-[a-zA-Z]{4})?(-[a-zA-Z]{2})?") {
            if let Ok(tag) = language(&given) {
                prop_assert_eq!(language(&tag), Ok(tag.clone()));
            }
        }
    }
}
