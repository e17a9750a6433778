//! The list of a vehicle's assignments: objects with `kind`, `number`, `state`, `from` and `to`.

use super::{lines::check_names, members::members, plain_value::one_value};
use crate::{
    resources::assignment::{AssignmentKind, MOST_ASSIGNMENTS},
    schema::Kind,
    value::FieldValue,
};
use serde_json::value::RawValue;

/// The members of one assignment, in the order of its struct, and whether they are required.
const MEMBERS: [(&str, Kind, bool); 5] = [
    ("kind", Kind::Word(AssignmentKind::WORDS), true),
    ("number", Kind::Name(255), true),
    ("state", Kind::Text(255), false),
    ("from", Kind::Time, false),
    ("to", Kind::Time, false),
];

/// Checks the list. The error is the path of the first bad member and the rule that it breaks.
pub(super) fn check(raw: &RawValue) -> Result<FieldValue, (String, String)> {
    let whole = |rule: &str| (String::new(), rule.to_owned());
    let given: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(|_| whole("must be a list of assignments"))?;
    if given.len() > MOST_ASSIGNMENTS {
        return Err(whole(&format!("must hold at most {MOST_ASSIGNMENTS} assignments")));
    }
    let list: Result<Vec<_>, _> = given.iter().enumerate().map(|(at, raw)| assignment(at, raw)).collect();
    list.map(FieldValue::Objects)
}

fn assignment(at: usize, raw: &RawValue) -> Result<Vec<(&'static str, FieldValue)>, (String, String)> {
    let here = |rule: &str| (format!("[{at}]"), rule.to_owned());
    let example = "must be an object, such as {\"kind\": \"plate\", \"number\": \"ABC1234\", \"state\": \"NY\"}";
    let sent = members(raw.get().as_bytes()).map_err(|_| here(example))?;
    check_names(&sent, &MEMBERS.map(|(name, ..)| name)).map_err(|rule| here(&rule))?;
    let value = |(name, kind, required): (&'static str, Kind, bool)| {
        let found = sent.0.iter().find(|(member, _)| member == name).map(|(_, raw)| raw.get());
        match found.filter(|text| *text != "null") {
            None if required => Err((format!("[{at}].{name}"), "is required".to_owned())),
            None => Ok((name, FieldValue::Null)),
            Some(text) => {
                let value = one_value(kind, text, 0).map_err(|rule| (format!("[{at}].{name}"), rule))?;
                Ok((name, value))
            }
        }
    };
    MEMBERS.into_iter().map(value).collect()
}
