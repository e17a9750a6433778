//! The forms in which texts are compared. Objects keep the spelling that was sent.

use std::borrow::Cow;
use unicode_normalization::{UnicodeNormalization as _, is_nfc};

/// The text in Unicode's composed form (NFC): `é` is one character, also where a keyboard sent an `e` and an accent.
#[must_use]
pub fn nfc(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc(text) { Cow::Borrowed(text) } else { Cow::Owned(text.nfc().collect()) }
}

/// The text in NFC and small letters, for names that are the same in every case.
#[must_use]
pub fn folded(text: &str) -> String {
    let lower = text.to_lowercase();
    match nfc(&lower) {
        Cow::Owned(composed) => composed,
        Cow::Borrowed(_) => lower,
    }
}

/// The text as a search compares it, which must rather find too much: folded, and with full-width letters and the digits of
/// Arabic as those of ASCII.
#[must_use]
pub(crate) fn loose(text: &str) -> String {
    if text.is_ascii() {
        return text.to_lowercase();
    }
    let digit = |c: char| match c {
        '\u{660}'..='\u{669}' => char::from_u32(u32::from(c) - 0x660 + 0x30).unwrap_or(c),
        '\u{6f0}'..='\u{6f9}' => char::from_u32(u32::from(c) - 0x6f0 + 0x30).unwrap_or(c),
        c => c,
    };
    folded(&text.nfkc().map(digit).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_text_is_the_same_composed_and_decomposed() {
        for (one, other) in [
            ("José", "Jose\u{301}"),
            ("Å", "A\u{30a}"),
            ("Å", "\u{212b}"),
            ("ậ", "a\u{302}\u{323}"),
            ("ậ", "a\u{323}\u{302}"),
            ("한", "\u{1112}\u{1161}\u{11ab}"),
            ("が", "か\u{3099}"),
        ] {
            assert_eq!(nfc(one), nfc(other));
            assert_eq!(folded(one), folded(other));
        }
        assert_eq!(loose("＋４９ ｚOE\u{308}@Ｘ ٤٩ ۴۹"), "+49 zoë@x 49 49");
        assert_ne!(nfc("Jose"), nfc("José"));
        assert_eq!(folded("JOSE\u{301} NÚÑEZ"), "josé núñez");
        assert!(matches!(nfc("ASCII"), Cow::Borrowed("ASCII")) && matches!(nfc("José"), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn every_spelling_of_a_text_has_one_form(text in "\\PC{0,40}") {
            let decomposed: String = text.nfd().collect();
            prop_assert_eq!(nfc(&text), nfc(&decomposed));
            prop_assert_eq!(folded(&text), folded(&decomposed));
            prop_assert_eq!(folded(&folded(&text)), folded(&text));
        }
    }
}
