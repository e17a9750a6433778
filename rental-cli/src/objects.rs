//! The types of objects that the API returns, each with its description.

use rental_core::{event, resources, spec::ResourceSpec};

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
