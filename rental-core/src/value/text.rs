//! Text with rules: plain text, names, e-mail addresses, phone numbers, language tags.
//!
//! `parse` checks texts of requests and imported files. `Deserialize` is for stored records and responses and checks
//! nothing: a rule may become stricter after an older version stored a text, and that record must stay readable. So no
//! type of a request body may contain one of these types: `crate::request::body` reads bodies.

use super::compared::nfc;
use email_address::{EmailAddress, Options};
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// Most bytes of an e-mail address (RFC 5321, 4.5.3.1.3, less the angle brackets).
const EMAIL_MAX_BYTES: usize = 254;
/// Most lines of an address and of payment instructions, which documents show.
pub const MOST_LINES: usize = 20;
/// Most bytes of a language tag; the longest registered ones stay under 40.
const LANGUAGE_MAX_BYTES: usize = 100;

/// Declares a type of text with a private field. Each type defines its own `parse`.
macro_rules! text_type {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }
    };
}

text_type! {
    /// Text without control characters, except line breaks in a text with lines. The field's description gives its greatest
    /// length.
    Text
}
text_type! {
    /// Text without control characters that is not blank. The field's description gives its greatest length.
    Name
}
text_type! {
    /// One e-mail address of at most 254 bytes, in the spelling given.
    Email
}
text_type! {
    /// A phone number in E.164: `+` and 7 to 15 digits, the first not 0.
    Phone
}
text_type! {
    /// A well-formed BCP 47 language tag in its canonical case: `en-us` becomes `en-US`.
    Language
}

impl Text {
    /// Parses text of at most `most` characters.
    ///
    /// # Errors
    /// A sentence that says which rule it breaks.
    pub fn parse(given: impl Into<String>, most: usize) -> Result<Self, String> {
        let given = given.into();
        check(&given, most)?;
        Ok(Self(given))
    }

    /// Parses text of at most `most` characters in at most `most_lines` lines, with `\n` or `\r\n` between the lines.
    ///
    /// # Errors
    /// A sentence that says which rule it breaks.
    pub fn parse_lines(given: impl Into<String>, most: usize, most_lines: usize) -> Result<Self, String> {
        let given = given.into();
        if given.split('\n').count() > most_lines {
            return Err(format!("must be at most {most_lines} lines"));
        }
        if given.chars().nth(most).is_some() {
            return Err(format!("must be at most {most} characters"));
        }
        if given.replace("\r\n", "\n").chars().any(|c| c.is_control() && c != '\n') {
            return Err("must not contain control characters other than line breaks".into());
        }
        Ok(Self(given))
    }

    /// Removes the control characters and everything after the first `most` characters. For texts that the server
    /// composes.
    #[must_use]
    pub fn fit(text: &str, most: usize) -> Self {
        Self(text.chars().filter(|character| !character.is_control()).take(most).collect())
    }
}

impl Name {
    /// Parses text of at most `most` characters, of which at least one is not white space.
    ///
    /// # Errors
    /// A sentence that says which rule it breaks.
    pub fn parse(given: impl Into<String>, most: usize) -> Result<Self, String> {
        let given = given.into();
        check(&given, most)?;
        if given.trim().is_empty() { Err("must not be blank".into()) } else { Ok(Self(given)) }
    }

    /// Shortens the text like [`Text::fit`]; `None` when only white space is left.
    #[must_use]
    pub fn fit(text: &str, most: usize) -> Option<Self> {
        let Text(fitted) = Text::fit(text, most);
        if fitted.trim().is_empty() { None } else { Some(Self(fitted)) }
    }

    /// A name that is a constant of this program, so it is checked in debug builds only.
    pub(crate) fn constant(text: &'static str) -> Self {
        debug_assert!(Self::parse(text, 255).is_ok(), "{text:?} is no name");
        Self(text.to_owned())
    }
}

fn check(given: &str, most: usize) -> Result<(), String> {
    if given.len() > most && given.chars().nth(most).is_some() {
        return Err(format!("must be at most {most} characters"));
    }
    if given.chars().any(char::is_control) {
        return Err("must not contain control characters".into());
    }
    Ok(())
}

impl Email {
    /// Parses one address, without a display name.
    ///
    /// # Errors
    /// A sentence that says which rule it breaks.
    pub fn parse(given: impl Into<String>) -> Result<Self, String> {
        let given = given.into();
        if given.len() > EMAIL_MAX_BYTES {
            return Err(format!("must be at most {EMAIL_MAX_BYTES} bytes"));
        }
        let bare = Options::default().without_display_text();
        let fine = EmailAddress::parse_with_options(&nfc(&given), bare).is_ok()
            && !given.chars().any(|c| c.is_control() || c == ' ');
        if fine { Ok(Self(given)) } else { Err("must be one email address, such as ada@example.com".into()) }
    }
}

impl Phone {
    /// Parses a number in E.164. Spaces and hyphens are errors.
    ///
    /// # Errors
    /// A sentence that says what E.164 looks like.
    pub fn parse(given: impl Into<String>) -> Result<Self, String> {
        let given = given.into();
        let digits = given.strip_prefix('+').unwrap_or("");
        let fine = (7..=15).contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && !digits.starts_with('0');
        if fine {
            Ok(Self(given))
        } else {
            Err("must be in E.164 form: + and 7 to 15 digits, such as +14155550123".into())
        }
    }
}

impl Language {
    /// Parses a tag in any case.
    ///
    /// # Errors
    /// A sentence that says what a tag looks like.
    pub fn parse(given: &str) -> Result<Self, String> {
        let fits = given.len() <= LANGUAGE_MAX_BYTES;
        let tag = if fits { oxilangtag::LanguageTag::parse_and_normalize(given).ok() } else { None };
        tag.map(|tag| Self(tag.into_inner())).ok_or_else(|| "must be a BCP 47 language tag, such as en or pt-BR".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_counted_in_characters_not_bytes() {
        assert!(Text::parse("é".repeat(255), 255).is_ok());
        assert!(Text::parse("é".repeat(256), 255).is_err());
        assert!(Text::parse("", 255).is_ok());
        assert!(Name::parse(" \u{a0}", 255).is_err());
    }

    #[test]
    fn control_characters_are_refused_anywhere() {
        for bad in ["a\0b", "a\nb", "\u{7f}", "\u{85}", "tab\there"] {
            assert!(Text::parse(bad, 255).is_err() && Name::parse(bad, 255).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_text_with_lines_has_line_breaks_and_no_other_control_characters() {
        let parse = |text: &str, most| Text::parse_lines(text, most, MOST_LINES);
        for good in ["1 Main St\nMiami, FL 33101", "a\r\nb\nc\r\n", "\n\na", ""] {
            assert_eq!(parse(good, 500).as_deref(), Ok(good), "it is kept as it is");
        }
        for bad in ["a\rb", "a\r", "a\n\r", "a\r\r\nb", "a\tb", "a\0", "\u{1b}[31m", "a\u{85}b"] {
            assert!(parse(bad, 500).is_err(), "{bad:?}");
        }
        assert!(parse(&"é\n".repeat(MOST_LINES - 1), 500).is_ok());
        assert!(parse(&"\n".repeat(MOST_LINES), 500).is_err());
        assert!(Text::parse_lines("\n".repeat(MOST_LINES), 500, 500).is_ok());
        assert!(parse("ab\ncd", 5).is_ok() && parse("ab\ncd", 4).is_err());
    }

    #[test]
    fn one_email_address_and_nothing_else() {
        for good in [
            "ada@example.com",
            "a.b+c@sub.example.co.uk",
            "o'neil@example.ie",
            "zoë@exämple.com",
            "zoe\u{308}@exa\u{308}mple.com",
            "한@example.com",
            "\u{1112}\u{1161}\u{11ab}@example.com",
        ] {
            assert_eq!(Email::parse(good).as_deref(), Ok(good), "it is kept as it is");
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
            assert!(Email::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn phones_are_e164() {
        for good in ["+14155550123", "+1234567", "+123456789012345"] {
            assert!(Phone::parse(good).is_ok(), "{good}");
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
            assert!(Phone::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn language_tags_are_stored_in_canonical_case() {
        for (given, canonical) in
            [("en", "en"), ("EN-us", "en-US"), ("zh-hant-tw", "zh-Hant-TW"), ("sr-latn", "sr-Latn")]
        {
            assert_eq!(Language::parse(given).as_deref(), Ok(canonical));
        }
        for bad in ["", "e", "en_US", "en--US", "english-language-of-england", "-en", "en-"] {
            assert!(Language::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_an_older_version_stored_is_read_as_it_is() {
        let stored = "\"\\t(415) 555-0123\"";
        assert!(Phone::parse("\t(415) 555-0123").is_err());
        let phone: Phone = serde_json::from_str(stored).unwrap();
        assert_eq!(serde_json::to_string(&phone).unwrap(), stored);
        assert!(serde_json::from_str::<Phone>("4155550123").is_err(), "a number is no text");
    }

    proptest! {
        #[test]
        fn a_text_that_was_made_to_fit_passes_the_check(given in any::<String>(), most in 1usize..40) {
            let fitted = Text::fit(&given, most);
            prop_assert_eq!(Text::parse(&*fitted, most), Ok(fitted.clone()));
            if let Ok(text) = Text::parse(given, most) {
                prop_assert_eq!(fitted, text, "a text that fits stays as it is");
            }
        }

        #[test]
        fn no_text_makes_a_rule_panic(given in "\\PC{0,300}") {
            let _ = (Name::parse(&*given, 255), Email::parse(&*given), Phone::parse(&*given), Language::parse(&given));
        }

        #[test]
        fn canonical_tags_are_stable(given in "[a-zA-Z]{2,3}(-[a-zA-Z]{4})?(-[a-zA-Z]{2})?") {
            if let Ok(tag) = Language::parse(&given) {
                prop_assert_eq!(Language::parse(&tag), Ok(tag.clone()));
            }
        }
    }
}
