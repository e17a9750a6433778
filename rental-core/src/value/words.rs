//! Enums whose variants are words in JSON. The macro takes each word once.

/// Declares an enum with the word of each variant in JSON: `WORDS` for descriptions, `parse`,
/// `as_str`, `Display` and serde.
macro_rules! words {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Eq, PartialEq, serde::Deserialize, serde::Serialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// The words of all variants, in the order of their declaration.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word of this variant in JSON.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The variant with this word; `None` for any other word. Case matters.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl $crate::value::FromField for $name {
            fn from_field(value: &$crate::value::FieldValue) -> Option<Self> {
                match value {
                    $crate::value::FieldValue::Word(word) => Self::parse(word),
                    _ => None,
                }
            }

            fn index_value(&self) -> Option<$crate::value::IndexValue<'_>> {
                Some($crate::value::IndexValue::Text(self.as_str()))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use words;

#[cfg(test)]
mod tests {
    #![expect(unreachable_pub, reason = "the macro declares public types")]

    words! {
        /// Two words.
        pub enum Answer {
            /// Agreed.
            Yes = "YES",
            /// Refused.
            NotNow = "not_now",
        }
    }

    #[test]
    fn a_variant_has_one_word_in_text_json_and_the_list() {
        assert_eq!(Answer::WORDS, ["YES", "not_now"]);
        for (answer, word) in [(Answer::Yes, "YES"), (Answer::NotNow, "not_now")] {
            assert_eq!((answer.as_str(), answer.to_string().as_str()), (word, word));
            let json = format!("\"{word}\"");
            assert_eq!(Answer::parse(word), Some(answer));
            assert_eq!(serde_json::to_string(&answer).unwrap(), json);
            assert_eq!(serde_json::from_str::<Answer>(&json).unwrap(), answer);
        }
        assert!(serde_json::from_str::<Answer>("\"yes\"").is_err());
        assert_eq!(Answer::parse("yes"), None);
    }
}
