//! Reads JSON.

use serde::{Deserialize, de::Error};

/// Parses JSON. Whether all of it is UTF-8 is found out once, which is faster than once for each string. Each type is compiled for
/// this reader only: those of `serde_json` for bytes would be a second copy of each.
///
/// # Errors
/// It is no JSON, or none of this type.
pub fn read_json<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, serde_json::Error> {
    serde_json::from_str(std::str::from_utf8(json).map_err(Error::custom)?)
}
