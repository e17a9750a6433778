//! Parses a JSON object and keeps duplicate members.

use crate::error::Error;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// The members of a JSON object in order, duplicates included.
#[derive(Default)]
pub(crate) struct Members<'a>(pub(crate) Vec<(String, &'a RawValue)>);

/// Parses a JSON object.
///
/// # Errors
/// [`Error::Malformed`] when the body is not one JSON object.
pub(super) fn members(body: &[u8]) -> Result<Members<'_>, Error> {
    serde_json::from_slice(body).map_err(|error| Error::Malformed(format!("The body is not a JSON object: {error}.")))
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    members.push((name, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}
