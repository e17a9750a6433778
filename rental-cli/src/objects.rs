//! The object types of the API: their descriptions, and the flag of each field.

use rental_core::{
    resources::{self, event},
    schema::{FieldSpec, Presence, ResourceSpec},
};

/// Descriptions of all object types that commands create, change or show.
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

/// Returns the description of an object type, such as `vehicle`. Summaries, such as `import`, have none.
pub(crate) fn description(object: &str) -> Option<&'static ResourceSpec> {
    SPECS.iter().copied().find(|spec| spec.object == object)
}

/// Returns the flag of a field that an error names: `daily-rate` for `daily_rate`. `None` if no request has that field.
pub(crate) fn flag_of(field: &str) -> Option<String> {
    if field == "overlap_seconds" {
        return Some("overlap".into());
    }
    let known = SPECS.iter().flat_map(|spec| spec.fields);
    known.into_iter().find(|known| known.name == field && sendable(known)).map(|known| flag(known.name))
}

fn sendable(field: &FieldSpec) -> bool {
    field.create != Presence::Never || field.update != Presence::Never
}

/// Returns the flag of a field: its name in kebab-case. References lose `_id`, as in the filters of lists.
pub(crate) fn flag(field: &str) -> String {
    match field {
        "default_currency" => "currency".into(),
        "lines" => "line".into(),
        "events" => "event".into(),
        "customer_id" | "vehicle_id" | "rental_id" | "organization_id" => field.trim_end_matches("_id").into(),
        _ => field.replace('_', "-"),
    }
}
