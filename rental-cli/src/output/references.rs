//! Names of the objects that rows refer to, instead of their ids. No I/O: the session looks them up.

use crate::output::record::Record;
use rental_core::{
    resources::spec_of,
    schema::{FieldSpec, Kind, ResourceSpec},
};
use std::collections::HashMap;

/// Fields that name an object for people; the first that has a value counts.
const NAMING: [&str; 8] =
    ["name", "full_name", "invoice_number", "booking_id", "url", "summons_number", "email", "hint"];

/// Names by id.
#[derive(Default)]
pub(crate) struct Names(HashMap<String, String>);

impl Names {
    pub(crate) fn get(&self, id: &str) -> Option<&str> {
        self.0.get(id).map(String::as_str)
    }

    pub(crate) fn insert(&mut self, id: String, name: String) {
        self.0.insert(id, name);
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

/// The name of the column with names for a field that holds an id: `vehicle` for `vehicle_id`.
pub(super) fn name_column(field: &FieldSpec) -> Option<&'static str> {
    match (field.kind, field.name) {
        (Kind::Reference(_), name) => name.strip_suffix("_id"),
        (_, "organization_id") => Some("organization"),
        (Kind::Id, "resource_id") => Some("resource"),
        _ => None,
    }
}

/// The collection of the object that a field of a record names by its id.
pub(crate) fn plural(field: &FieldSpec, record: &Record) -> Option<String> {
    match (field.kind, field.name) {
        (Kind::Reference(object), _) => Some(spec_of(object)?.plural.to_owned()),
        (_, "organization_id") => Some("organizations".into()),
        // An audit entry tells by its path what it is about: `/admin/v1/api_keys/ID/revoke`.
        (Kind::Id, "resource_id") => {
            let path = record.text("path")?;
            let id = record.text("resource_id")?;
            let mut segments = path.strip_prefix("/admin/v1/")?.split('/');
            let plural = segments.next().filter(|plural| !plural.is_empty())?;
            // A longer path is about an object of the first one.
            let about_it = segments.next().is_none_or(|segment| segment == id);
            about_it.then(|| plural.to_owned())
        }
        _ => None,
    }
}

/// The objects that the page of one object names beside their ids, by id and collection: those that its fields refer to, and
/// those that its list names. Of a list of ids this is the last one, so that no field costs more than one request.
pub(super) fn named_beside(
    spec: &ResourceSpec,
    record: &Record,
    is_listed: impl Fn(&FieldSpec) -> bool,
) -> Vec<(String, String)> {
    let found = |field: &FieldSpec| {
        let text = record.text(field.name)?;
        match field.kind {
            Kind::References(object) => Some((ids(&text)?.pop()?, spec_of(object)?.plural.to_owned())),
            Kind::Reference(_) => Some((text, plural(field, record)?)),
            _ if is_listed(field) => Some((text, plural(field, record)?)),
            _ => None,
        }
    };
    spec.fields.iter().filter_map(found).collect()
}

/// The value of a field with the names of the objects whose ids it has: `ID (White Tesla)`.
pub(super) fn beside(field: &FieldSpec, text: &str, names: &Names) -> String {
    let named = |id: &str| names.get(id).map_or_else(|| id.to_owned(), |name| format!("{id} ({name})"));
    match field.kind {
        Kind::References(_) => match ids(text) {
            Some(ids) if ids.iter().any(|id| names.get(id).is_some()) => {
                ids.iter().map(|id| named(id)).collect::<Vec<_>>().join(", ")
            }
            _ => text.to_owned(),
        },
        _ => named(text),
    }
}

/// The ids of a list.
fn ids(json: &str) -> Option<Vec<String>> {
    serde_json::from_str(json).ok()
}

/// What a person calls an object.
pub(crate) fn name_of(record: &Record) -> Option<String> {
    NAMING.iter().find_map(|name| record.text(name))
}

/// By what a person recognizes any object: its name, else the number that an agency gave it, its plate, or where it came from.
pub(crate) fn recognized(record: &Record) -> Option<String> {
    let text = |name: &&str| record.text(name).filter(|text| !text.is_empty());
    let number = || ["transaction_id", "plate", "transponder_number", "source_channel"].iter().find_map(text);
    text(&"credit_note_number").or_else(|| name_of(record)).or_else(number)
}
