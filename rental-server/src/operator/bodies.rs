//! Bodies that several actions of operators take.

use rental_core::{
    error::{Error, FieldCode},
    request::page,
    value::Timestamp,
};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

/// The longest overlap of the rotation of an API key or token: 30 days.
pub(super) const MAX_OVERLAP_SECS: i64 = 30 * 24 * 3600;
/// The overlap of a rotation whose body names none: 24 hours.
const DEFAULT_OVERLAP_SECS: i64 = 24 * 3600;

/// A body that takes `fields` alone. An empty body has none of them.
pub(super) fn optional<'b, T: Deserialize<'b> + Default>(body: &'b [u8], fields: &str) -> Result<T, Error> {
    if body.is_empty() {
        return Ok(T::default());
    }
    object(body, fields)
}

/// A body that takes `fields` alone.
pub(super) fn object<'b, T: Deserialize<'b>>(body: &'b [u8], fields: &str) -> Result<T, Error> {
    members(body).map_err(|why| Error::Malformed(format!("The body takes {fields} alone: {why}.")))
}

/// The members of a JSON object. A list is refused here: serde would take its items for the members of a struct.
fn members<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, String> {
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err("it is not a JSON object".to_owned());
    }
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

/// A time from which an action looks at what happened.
pub(super) fn bound(name: &str, given: Option<&str>) -> Result<Timestamp, Error> {
    let text = given.ok_or_else(|| Error::field(name, FieldCode::Missing, "is required"))?;
    Timestamp::parse_bound(text).ok_or_else(|| Error::field(name, FieldCode::Invalid, &Timestamp::rule(text)))
}

/// Checks that the body is empty or `{}`.
pub(super) fn nothing(body: &[u8]) -> Result<(), Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    if !body.is_empty() {
        members::<Nothing>(body).map_err(|why| Error::Malformed(format!("The body must be empty or {{}}: {why}.")))?;
    }
    Ok(())
}

/// The seconds for which a rotation keeps the old key or secret in force, at most `max`.
pub(super) fn overlap_secs(body: &[u8], max: i64) -> Result<i64, Error> {
    #[derive(Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Rotation {
        overlap_seconds: Option<Value>,
    }
    let Rotation { overlap_seconds } = optional(body, "`overlap_seconds`")?;
    let rule = || format!("must be a whole number of seconds from 0 to {max} ({} days)", max / 86_400);
    let given = overlap_seconds.filter(|seconds| !seconds.is_null());
    given
        .map_or(Some(DEFAULT_OVERLAP_SECS), |seconds| seconds.as_i64())
        .filter(|seconds| (0..=max).contains(seconds))
        .ok_or_else(|| Error::field("overlap_seconds", FieldCode::Invalid, &rule()))
}

/// `starting_after` of a page.
pub(super) fn cursor(text: Option<&str>) -> Result<Option<Uuid>, Error> {
    let wrong = || Error::field("starting_after", FieldCode::Invalid, "must be the `next_cursor` of an earlier answer");
    text.map(|text| page::id(text).ok_or_else(wrong)).transpose()
}
