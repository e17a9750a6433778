//! The lines of an invoice. A line has a text and an amount, or it bills a rental, toll or violation, which has both.

use super::{
    members::{Members, members},
    plain_value::one_value,
    suggestion::{did_you_mean, shorten},
    verb::Verb,
};
use crate::{
    schema::Kind,
    value::{FieldValue, SignedMoney},
};
use serde_json::value::RawValue;

/// Most lines in an invoice.
pub const MOST_LINES: usize = 200;

/// What a line can bill: the member with the id, and the resource.
const SOURCES: [(&str, &str); 3] = [("rental_id", "rental"), ("toll_id", "toll"), ("violation_id", "violation")];

/// The member of a stored line that no request sets.
const VEHICLE: &str = "vehicle";

/// Why a line that names what it bills has no negative amount.
const NO_DISCOUNT: &str = "must be 0 or more, as the line bills a rental, toll or violation: a discount is a line of its own, with a \
                           `description` and a negative `amount`";

/// The members of one line, in the order of its struct.
type Line = Vec<(&'static str, FieldValue)>;

/// Checks the list of lines. The error is the path of the first bad member and the rule that it breaks.
pub(super) fn check(raw: &RawValue, verb: Verb, digits: u32) -> Result<FieldValue, (String, String)> {
    let whole = |rule: &str| (String::new(), rule.to_owned());
    let given: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(|_| whole("must be a list of lines"))?;
    if given.is_empty() || given.len() > MOST_LINES {
        return Err(whole(&format!("must hold 1 to {MOST_LINES} lines")));
    }
    let lines: Result<Vec<Line>, _> = given.iter().enumerate().map(|(at, raw)| line(at, raw, verb, digits)).collect();
    lines.map(FieldValue::Objects)
}

fn line(at: usize, raw: &RawValue, verb: Verb, digits: u32) -> Result<Line, (String, String)> {
    let here = |rule: &str| (format!("[{at}]"), rule.to_owned());
    let sent = members(raw.get().as_bytes()).map_err(|_| here("must be an object, such as {\"toll_id\": \"...\"}"))?;
    let stored = (verb == Verb::Whole).then_some(VEHICLE);
    let sources = SOURCES.map(|(name, _)| name);
    let known: Vec<&str> = ["description", "amount"].into_iter().chain(sources).chain(stored).collect();
    check_names(&sent, &known).map_err(|rule| here(&rule))?;
    let find = |name: &str| {
        let found = sent.0.iter().find(|(member, _)| member == name).map(|(_, raw)| raw.get());
        found.filter(|text| *text != "null")
    };
    let value = |name: &'static str, kind: Kind| -> Result<_, (String, String)> {
        let Some(text) = find(name) else { return Ok((name, FieldValue::Null)) };
        let value = one_value(kind, text, digits).map_err(|rule| (format!("[{at}].{name}"), rule))?;
        Ok((name, value))
    };
    let sources = SOURCES.iter().filter(|(name, _)| find(name).is_some()).count();
    if sources > 1 {
        return Err(here("must bill one thing: a rental, a toll or a violation"));
    }
    if sources == 0 && (find("description").is_none() || find("amount").is_none()) {
        return Err(here("must have `description` and `amount`, or name a rental, toll or violation to bill"));
    }
    // Text and amount of their own can be a discount. What an object costs is 0 or more.
    let amount = match find("amount") {
        None => FieldValue::Null,
        Some(text) => {
            let amount = SignedMoney::parse(text, digits);
            let amount = amount.and_then(|amount| match sources {
                1.. if !amount.below_zero().is_zero() => Err(NO_DISCOUNT.into()),
                _ => Ok(FieldValue::SignedMoney(amount)),
            });
            amount.map_err(|rule| (format!("[{at}].amount"), rule))?
        }
    };
    let mut line = vec![value("description", Kind::Name(255))?, ("amount", amount)];
    for (name, object) in SOURCES {
        line.push(value(name, Kind::Reference(object))?);
    }
    line.push(value(VEHICLE, Kind::Text(600))?);
    Ok(line)
}

/// Checks that an object in a list has only known members, each once.
pub(super) fn check_names(sent: &Members<'_>, known: &[&'static str]) -> Result<(), String> {
    for (at, (name, _)) in sent.0.iter().enumerate() {
        if !known.iter().any(|known| known == name) {
            return Err(format!("has no `{}`{}", shorten(name), did_you_mean(name, known.iter().copied())));
        }
        if sent.0[..at].iter().any(|(earlier, _)| earlier == name) {
            return Err(format!("has `{name}` more than once"));
        }
    }
    Ok(())
}

/// The objects that lines bill: path (`lines[0].toll_id`), resource, and id as sent.
pub(super) fn references<'a>(field: &str, lines: &'a [Line]) -> Vec<(String, &'static str, &'a str)> {
    let mut named = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        for (name, object) in SOURCES {
            let id = line.iter().find(|(member, _)| *member == name).and_then(|(_, value)| value.plain());
            named.extend(id.map(|id| (format!("{field}[{at}].{name}"), object, id)));
        }
    }
    named
}
