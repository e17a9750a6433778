//! Reads values from JSON strings, without a copy of the string.

use serde::{Deserializer, de::Visitor};

/// A value that `parse` makes of a string; `wrong` is the message for a string of which it makes none.
struct Written<P> {
    parse: P,
    wrong: &'static str,
}

/// Reads a string and parses it. `wrong` is the message for other strings.
pub(super) fn read_text<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: impl Fn(&str) -> Option<T>,
    wrong: &'static str,
) -> Result<T, D::Error> {
    deserializer.deserialize_str(Written { parse, wrong })
}

impl<T, P: Fn(&str) -> Option<T>> Visitor<'_> for Written<P> {
    type Value = T;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).ok_or_else(|| E::custom(self.wrong))
    }
}
