//! Finds duplicate keys in the JSON of `raw_data`, in one pass over its text.
//!
//! It does not parse numbers, so a number that no float can represent is kept as received.

use crate::error::FieldErrors;
use std::{borrow::Cow, collections::HashSet};

/// Greatest depth of nested objects and lists.
const MOST_DEPTH: usize = 128;

/// An object or list that contains the present position.
struct Open<'a> {
    /// The keys of an object so far; `None` for a list.
    keys: Option<HashSet<Cow<'a, str>>>,
    /// The key whose value is being read.
    key: Cow<'a, str>,
}

/// The paths of duplicate keys, at most as many as a response lists. Each path begins with `root`.
///
/// `text` must be one valid JSON value. The time is linear in its length.
///
/// # Errors
/// A sentence for the caller: the value is nested too deep, or a key is not Unicode text.
pub(super) fn find(root: &str, text: &str) -> Result<Vec<String>, String> {
    let bytes = text.as_bytes();
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut duplicates = Vec::new();
    // Whether the next string is a key: after `{`, and after `,` in an object.
    let mut key_next = false;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let end = if *byte == b'"' { end_of_string(bytes, at) } else { at + 1 };
        match byte {
            b'"' if key_next => {
                key_next = false;
                let key: Cow<'_, str> = match &text[at + 1..end - 1] {
                    plain if !plain.contains('\\') => Cow::Borrowed(plain),
                    _ => Cow::Owned(
                        serde_json::from_str(&text[at..end]).map_err(|error| format!("cannot be kept: {error}"))?,
                    ),
                };
                if let Some(object) = open.last_mut() {
                    let is_new = object.keys.as_mut().is_none_or(|keys| keys.insert(key.clone()));
                    object.key = key;
                    if !is_new && duplicates.len() < FieldErrors::MOST {
                        duplicates.push(path(root, &open));
                    }
                }
            }
            b'{' | b'[' => {
                let is_object = *byte == b'{';
                check_depth(open.len())?;
                open.push(Open { keys: is_object.then(HashSet::new), key: Cow::Borrowed("") });
                key_next = is_object;
            }
            b'}' | b']' => {
                open.pop();
                key_next = false;
            }
            b',' => key_next = open.last().is_some_and(|parent| parent.keys.is_some()),
            b':' | b' ' | b'\t' | b'\n' | b'\r' => {}
            // A string, a number, a boolean or null.
            _ => check_depth(open.len())?,
        }
        at = end;
    }
    Ok(duplicates)
}

fn check_depth(depth: usize) -> Result<(), String> {
    if depth > MOST_DEPTH { Err(format!("must be nested at most {MOST_DEPTH} levels deep")) } else { Ok(()) }
}

/// The offset after the closing quote of the string that begins at `start`.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The path of a key: `raw_data.form.name`. It contains no positions in lists.
fn path(root: &str, open: &[Open<'_>]) -> String {
    let mut path = root.to_owned();
    for object in open.iter().filter(|one| one.keys.is_some()) {
        path.push('.');
        path.push_str(&object.key);
        // A response shows the first 64 characters.
        if path.len() > 4 * 64 {
            break;
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(text: &str) -> Vec<String> {
        find("raw", text).unwrap()
    }

    #[test]
    fn duplicates_are_found_at_every_level_and_nowhere_else() {
        let nothing: [&str; 0] = [];
        assert_eq!(found(r#"{"a":{"a":1},"b":[{"a":1},{"a":1}],"c":"a","d":"\"a\":1,\"a\":1"}"#), nothing);
        assert_eq!(
            found(r#"{"a":1,"b":{"c":[[{"d":1,"d":2}]]},"a":{"e":1,"e":1}}"#),
            ["raw.b.c.d", "raw.a", "raw.a.e"]
        );
        assert_eq!(found(r#"{"a\\":1,"a\\":1,"\u0062":1,"b":1}"#), ["raw.a\\", "raw.b"]);
        assert_eq!(found(r#"{"a":[1,"a","a",{}],"":1,"":1}"#), ["raw."]);
    }

    #[test]
    fn a_key_that_is_no_text_and_too_deep_nesting_are_refused() {
        assert!(find("raw", r#"{"\ud800":1}"#).unwrap_err().starts_with("cannot be kept"));
        let nest = |depth: usize, inner: &str| format!("{}{inner}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(find("raw", &nest(128, "1")).is_ok() && find("raw", &nest(129, "")).is_ok());
        assert!(find("raw", &nest(129, "1")).is_err() && find("raw", &nest(130, "")).is_err());
    }

    #[test]
    fn no_more_paths_are_kept_than_a_response_lists() {
        let text = format!("{{{}\"a\":1}}", "\"a\":1,".repeat(10_000));
        assert_eq!(found(&text).len(), FieldErrors::MOST);
    }

    /// Writes `value` with the keys of its objects repeated, and counts the repetitions.
    fn with_repeated_keys(value: &serde_json::Value, repeated: &mut usize) -> String {
        match value {
            serde_json::Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| with_repeated_keys(item, repeated)).collect();
                format!("[{}]", items.join(" , "))
            }
            serde_json::Value::Object(members) => {
                let mut parts = Vec::new();
                for (key, value) in members {
                    let key = serde_json::to_string(key).unwrap();
                    parts.push(format!("{key}: {}", with_repeated_keys(value, repeated)));
                    if parts.len() % 2 == 0 {
                        parts.push(format!("{key}:1"));
                        *repeated += 1;
                    }
                }
                format!("{{{}}}", parts.join(","))
            }
            plain => plain.to_string(),
        }
    }

    proptest! {
        #[test]
        fn as_many_are_found_as_were_put_in(keys in proptest::collection::vec("[\"\\\\{}\\[\\]:,a-c]{0,4}", 1..12)) {
            let mut value = serde_json::json!({});
            for (at, key) in keys.iter().enumerate() {
                let inner = value.take();
                value = if at % 3 == 0 { serde_json::json!([inner, key]) } else { serde_json::json!({key: inner, "x": key, "y": at}) };
            }
            let mut repeated = 0;
            let text = with_repeated_keys(&value, &mut repeated);
            prop_assert_eq!(found(&text).len(), repeated.min(FieldErrors::MOST), "{}", text);
        }
    }
}
