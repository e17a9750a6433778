//! Ids as text.

use uuid::Uuid;

/// Parses an id: a UUID of 36 characters, in lower case, with hyphens. `None` for any other spelling.
#[must_use]
pub fn id(text: &str) -> Option<Uuid> {
    let plain = text.len() == 36 && !text.bytes().any(|byte| byte.is_ascii_uppercase());
    if plain { Uuid::try_parse(text).ok() } else { None }
}
