//! JSON Schemas that many parts of the document use.
//!
//! Numbers have a `format`. Without it, client generators choose 32 bits: `float` for amounts, which loses cents, and
//! `int32` for sizes and times.

use rental_core::value::Money;
use serde_json::{Map, Value, json};

/// An amount of money, 0 to [`Money::MAX`]. A `double` holds each of them without loss: they have at most 15 digits.
pub(crate) fn amount() -> Value {
    let max: Value = serde_json::from_str(&Money::MAX.to_string()).unwrap_or(Value::Null);
    json!({"type": "number", "format": "double", "minimum": 0, "maximum": max})
}

/// An amount with a sign, as far from 0 as [`amount`].
pub(crate) fn signed_amount() -> Value {
    let mut schema = amount();
    schema["minimum"] = serde_json::from_str(&format!("-{}", Money::MAX)).unwrap_or(Value::Null);
    schema
}

/// A sum of amounts, negative where more was given back than charged.
pub(crate) fn sum() -> Value {
    json!({"type": "number", "format": "double"})
}

/// A whole number from..=to: `int32` if 32 bits hold both bounds, else `int64`.
pub(crate) fn integer(from: i64, to: i64) -> Value {
    let is_small = i32::try_from(from).is_ok() && i32::try_from(to).is_ok();
    json!({"type": "integer", "format": if is_small { "int32" } else { "int64" }, "minimum": from, "maximum": to})
}

/// A whole number of `min` or more, without an upper bound.
pub(crate) fn at_least(min: i64) -> Value {
    json!({"type": "integer", "format": "int64", "minimum": min})
}

/// The schema with a description.
pub(crate) fn described(mut schema: Value, description: &str) -> Value {
    schema["description"] = json!(description);
    schema
}

/// The schema as a type with a name: `super::components` makes a component of it.
pub(crate) fn named(name: &str, mut schema: Value) -> Value {
    schema["title"] = json!(name);
    schema
}

/// One of these words, a type with a name.
pub(crate) fn word(name: &str, words: &[&str]) -> Value {
    json!({"title": name, "type": "string", "enum": words})
}

/// An id.
pub(crate) fn id(description: &str) -> Value {
    json!({"type": "string", "format": "uuid", "description": description})
}

/// A text with a description.
pub(crate) fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

/// An id or null.
pub(crate) fn optional_id(description: &str) -> Value {
    json!({"type": ["string", "null"], "format": "uuid", "description": description})
}

/// The place in a list, in the body of a request for its next page.
pub(crate) fn cursor() -> Value {
    json!({"type": ["string", "null"], "format": "uuid", "description": "`next_cursor` of the answer before; null for the first page."})
}

/// A page of a list with these objects.
pub(crate) fn page_of(item: Value) -> Value {
    let page = json!({
        "object": {"type": "string", "const": "list"},
        "has_more": {"type": "boolean"},
        "next_cursor": {"type": ["string", "null"], "description": "Pass it as `starting_after` for the next page; null when there is none."},
        "data": {"type": "array", "items": item},
    });
    object("", page)
}

/// An object that has all of these properties. An empty description is left out.
pub(crate) fn object(description: &str, properties: Value) -> Value {
    let names: Vec<&String> = properties.as_object().into_iter().flat_map(Map::keys).collect();
    let mut schema = json!({"type": "object"});
    if !description.is_empty() {
        schema["description"] = json!(description);
    }
    schema["required"] = json!(names);
    schema["properties"] = properties;
    schema
}
