//! Ids as text.

use uuid::Uuid;

/// Reads an id as this API writes it: a UUID in lower case with hyphens. Any other spelling is an unknown id.
#[must_use]
pub fn id(text: &str) -> Option<Uuid> {
    let plain = text.len() == 36 && !text.bytes().any(|byte| byte.is_ascii_uppercase());
    if plain { Uuid::try_parse(text).ok() } else { None }
}
