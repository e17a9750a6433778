//! The types of objects that the API returns, each with its description, and the flags that its fields have.

use rental_core::{
    event, resources,
    spec::{FieldSpec, Presence, ResourceSpec},
};

/// The description of each type of object that a command creates, changes or shows.
pub(crate) const SPECS: &[&ResourceSpec] = &[
    &resources::organization::SPEC,
    &resources::api_key::SPEC,
    &resources::webhook_endpoint::SPEC,
    &event::SPEC,
    &resources::delivery::SPEC,
    &resources::vehicle::SPEC,
    &resources::customer::SPEC,
    &resources::rental::SPEC,
    &resources::invoice::SPEC,
    &resources::toll::SPEC,
    &resources::violation::SPEC,
    &resources::lead::SPEC,
    &resources::audit_entry::SPEC,
];

/// The description of the type that an object names in its `object` member. Summaries, such as that of an import, have none.
pub(crate) fn description(object: &str) -> Option<&'static ResourceSpec> {
    SPECS.iter().copied().find(|spec| spec.object == object)
}

/// The flag for a field of the API that an error names, if some resource has such a field.
pub(crate) fn flag_of(field: &str) -> Option<String> {
    let known = SPECS.iter().flat_map(|spec| spec.fields);
    known.into_iter().find(|known| known.name == field && sendable(known)).map(|known| flag(known.name))
}

fn sendable(field: &FieldSpec) -> bool {
    field.create != Presence::Never || field.update != Presence::Never
}

/// `customer_id` is `--customer`, as in the filters; the rest is the name in kebab-case.
pub(crate) fn flag(field: &str) -> String {
    match field {
        "default_currency" => "currency".into(),
        "lines" => "line".into(),
        "events" => "event".into(),
        "customer_id" | "vehicle_id" | "rental_id" | "organization_id" => field.trim_end_matches("_id").into(),
        _ => field.replace('_', "-"),
    }
}
