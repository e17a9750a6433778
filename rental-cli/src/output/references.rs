//! Names of the objects that rows refer to, instead of their ids. No I/O: the session looks them up.

use crate::output::record::Record;
use rental_core::{
    resources::spec_of,
    schema::{FieldSpec, Kind},
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
