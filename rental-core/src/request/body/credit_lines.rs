//! The lines of a credit note. A request names the place of a line of the invoice; the rest of a stored line comes from there.

use super::{
    lines::MOST_LINES,
    members::members,
    plain_value::one_value,
    suggestion::{did_you_mean, shorten},
    verb::Verb,
};
use crate::{schema::Kind, value::FieldValue};
use serde_json::value::RawValue;

/// The members of a line, in the order of its struct, and whether a POST takes them.
const MEMBERS: [(&str, Kind, bool); 8] = [
    ("line", Kind::Integer(0, MOST_LINES as i64 - 1), true),
    ("description", Kind::Name(255), false),
    ("amount", Kind::Money, true),
    ("discount", Kind::Money, false),
    ("rebill", Kind::Boolean, true),
    ("rental_id", Kind::Reference("rental"), false),
    ("toll_id", Kind::Reference("toll"), false),
    ("violation_id", Kind::Reference("violation"), false),
];

type Line = Vec<(&'static str, FieldValue)>;

/// Checks the list of lines. The error is the path of the first bad member and the rule that it breaks.
pub(super) fn check(raw: &RawValue, verb: Verb, digits: u32) -> Result<FieldValue, (String, String)> {
    let whole = |rule: &str| (String::new(), rule.to_owned());
    let given: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(|_| whole("must be a list of lines"))?;
    if given.is_empty() || given.len() > MOST_LINES {
        return Err(whole(&format!("must hold 1 to {MOST_LINES} lines; leave it out to credit all that is left")));
    }
    let lines: Result<Vec<Line>, _> = given.iter().enumerate().map(|(at, raw)| line(at, raw, verb, digits)).collect();
    lines.map(FieldValue::Objects)
}

fn line(at: usize, raw: &RawValue, verb: Verb, digits: u32) -> Result<Line, (String, String)> {
    let here = |rule: &str| (format!("[{at}]"), rule.to_owned());
    let sent = members(raw.get().as_bytes()).map_err(|_| here("must be an object, such as {\"line\": 0}"))?;
    let known = || MEMBERS.iter().filter(|(_, _, sent)| *sent || verb == Verb::Whole).map(|(name, ..)| *name);
    for (place, (name, _)) in sent.0.iter().enumerate() {
        if !known().any(|known| known == name) {
            return Err(here(&format!("has no `{}`{}", shorten(name), did_you_mean(name, known()))));
        }
        if sent.0.iter().take(place).any(|(earlier, _)| earlier == name) {
            return Err(here(&format!("has `{name}` more than once")));
        }
    }
    let value = |(name, kind, _): (&'static str, Kind, bool)| {
        let found = sent.0.iter().find(|(member, _)| member == name).map(|(_, raw)| raw.get());
        match found.filter(|text| *text != "null") {
            Some(text) => one_value(kind, text, digits)
                .map(|value| (name, value))
                .map_err(|rule| (format!("[{at}].{name}"), rule)),
            None if name == "line" => {
                Err((format!("[{at}].line"), "is required: the first line of an invoice is 0".into()))
            }
            None => Ok((name, FieldValue::Null)),
        }
    };
    MEMBERS.into_iter().map(value).collect()
}
