//! Checks the event types of a webhook endpoint.

use super::suggestion::{did_you_mean, shorten};
use crate::{resources::event::EVENT_NAMES, value::FieldValue};
use serde_json::value::RawValue;

/// Checks a list of different event types. The error is the rule that it breaks.
pub(super) fn check(raw: &RawValue) -> Result<FieldValue, String> {
    let given: Vec<String> = serde_json::from_str(raw.get()).map_err(|_| "must be a list of event types".to_owned())?;
    if given.is_empty() || given.len() > EVENT_NAMES.len() {
        return Err(format!("must hold 1 to {} event types; leave it out or send null for all", EVENT_NAMES.len()));
    }
    for (at, name) in given.iter().enumerate() {
        if !EVENT_NAMES.contains(&name.as_str()) {
            let near = did_you_mean(name, EVENT_NAMES.iter().copied());
            return Err(format!("names no event type with `{}`{near}", shorten(name)));
        }
        if given[..at].contains(name) {
            return Err(format!("names `{name}` twice"));
        }
    }
    Ok(FieldValue::Texts(given))
}
