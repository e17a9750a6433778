//! JSON Schemas of numbers. `format` tells client generators how wide a type must be.
//!
//! Without a `format`, generators choose 32 bits: `float` for amounts, which loses cents, and `int32` for sizes and times.

use rental_core::value::Money;
use serde_json::{Value, json};

/// An amount of money, 0 to [`Money::MAX`]. A `double` holds each of them without loss: they have at most 15 digits.
pub(crate) fn amount() -> Value {
    let max: Value = serde_json::from_str(&Money::MAX.to_string()).unwrap_or(Value::Null);
    json!({"type": "number", "format": "double", "minimum": 0, "maximum": max})
}

/// A whole number from..=to; `int64` unless 32 bits hold both bounds.
pub(crate) fn integer(from: i64, to: i64) -> Value {
    let mut schema = json!({"type": "integer", "minimum": from, "maximum": to});
    if i32::try_from(from).is_err() || i32::try_from(to).is_err() {
        schema["format"] = json!("int64");
    }
    schema
}

/// A whole number of `min` or more, without an upper bound.
pub(crate) fn at_least(min: i64) -> Value {
    json!({"type": "integer", "format": "int64", "minimum": min})
}
