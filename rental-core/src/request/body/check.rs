//! Checks the value of one field, by its kind.

use super::{
    assignments, credit_lines, duplicates, event_list, lines, plain_value::one_value, suggestion::shorten, verb::Verb,
};
use crate::{
    error::{FieldCode, FieldError},
    schema::{FieldSpec, Kind, MOST_INVOICES},
    value::{self, EarlierVehicle, FieldValue},
};
use serde_json::value::RawValue;

/// Checks the value of one field; `None` when a POST sends null. Amounts have at most `digits` decimals.
///
/// # Errors
/// One error for every rule that the value breaks.
pub(super) fn check(
    field: &FieldSpec,
    verb: Verb,
    raw: &RawValue,
    digits: u32,
) -> Result<Option<FieldValue>, Vec<FieldError>> {
    if raw.get() == "null" {
        return match verb {
            // Clients may send their unset fields as null instead of leaving them out.
            Verb::Create => Ok(None),
            Verb::Update | Verb::Whole if field.nullable => Ok(Some(FieldValue::Null)),
            Verb::Update | Verb::Whole => Err(vec![FieldError::new(field.name, FieldCode::Invalid, "cannot be null")]),
        };
    }
    if let Kind::Json(max) = field.kind {
        return check_json(field.name, raw, max).map(Some);
    }
    if let Kind::Lines | Kind::CreditLines | Kind::Assignments = field.kind {
        let wrong = |(place, rule): (String, String)| {
            vec![FieldError::new(&format!("{}{place}", field.name), FieldCode::Invalid, &rule)]
        };
        let checked = match field.kind {
            Kind::Lines => lines::check(raw, verb, digits),
            Kind::Assignments => assignments::check(raw),
            _ => credit_lines::check(raw, verb, digits),
        };
        return checked.map(Some).map_err(wrong);
    }
    if field.kind == Kind::EventTypes {
        return event_list::check(raw)
            .map(Some)
            .map_err(|rule| vec![FieldError::new(field.name, FieldCode::Invalid, &rule)]);
    }
    if let Kind::References(_) = field.kind {
        let ids: Option<Vec<String>> = serde_json::from_str(raw.get()).ok();
        let ids = ids.filter(|ids| ids.len() <= MOST_INVOICES && ids.iter().all(|id| value::id(id).is_some()));
        let rule = format!("must be a list of at most {MOST_INVOICES} ids");
        let wrong = || vec![FieldError::new(field.name, FieldCode::Invalid, &rule)];
        return ids.map(|ids| Some(FieldValue::Texts(ids))).ok_or_else(wrong);
    }
    if field.kind == Kind::EarlierVehicles {
        let vehicles: Option<Vec<EarlierVehicle>> = serde_json::from_str(raw.get()).ok();
        let vehicles = vehicles.filter(|vehicles| vehicles.len() <= EarlierVehicle::MOST);
        let rule = format!("must be a list of at most {} objects with `vehicle_id` and `until`", EarlierVehicle::MOST);
        let wrong = || vec![FieldError::new(field.name, FieldCode::Invalid, &rule)];
        let objects = |vehicles: Vec<EarlierVehicle>| vehicles.into_iter().map(EarlierVehicle::members).collect();
        return vehicles.map(|vehicles| Some(FieldValue::Objects(objects(vehicles)))).ok_or_else(wrong);
    }
    let value = one_value(field.kind, raw.get(), digits);
    value.map(Some).map_err(|rule| vec![FieldError::new(field.name, FieldCode::Invalid, &rule)])
}

fn check_json(name: &str, raw: &RawValue, max: usize) -> Result<FieldValue, Vec<FieldError>> {
    let text = raw.get();
    let refuse = |rule: &str| Err(vec![FieldError::new(name, FieldCode::Invalid, rule)]);
    if !text.starts_with('{') {
        return refuse("must be a JSON object");
    }
    if text.len() > max {
        return refuse(&format!("must be at most {max} bytes of JSON"));
    }
    match duplicates::find(name, text) {
        Err(rule) => refuse(&rule),
        Ok(paths) if paths.is_empty() => Ok(FieldValue::Json(raw.to_owned())),
        Ok(paths) => Err(paths.iter().map(|path| duplicate(path)).collect()),
    }
}

/// The error of a field that is sent more than once.
pub(super) fn duplicate(name: &str) -> FieldError {
    FieldError::new(&shorten(name), FieldCode::Duplicate, "is sent more than once")
}
